//! How far to go: a point where the loss has fallen enough, and its slope has flattened enough.

use super::largest;
use cresset_tensor::{Result, Tensor};

/// How much of the expected fall is enough.
const FALL: f64 = 1e-4;
/// How much of the slope may be left.
const SLOPE: f64 = 0.9;
/// The smallest interval that is searched.
const NARROW: f64 = 1e-9;

/// Where a line was looked at.
#[derive(Clone)]
pub(super) struct Point {
    /// How far along the line; the first length to try, for where a search begins.
    pub(super) length: f64,
    pub(super) loss: f64,
    pub(super) grad: Tensor,
    /// The slope of the loss along the line.
    pub(super) slope: f64,
}

impl Point {
    pub(super) fn new(length: f64, loss: f64, grad: Tensor, direction: &Tensor) -> Result<Point> {
        let slope = grad.dot(direction)?.item()?.as_f64();
        Ok(Point { length, loss, grad, slope })
    }

    /// Whether the loss is not as low as `from` leads to expect.
    fn is_high(&self, from: &Point) -> bool {
        self.loss > from.loss + FALL * self.length * from.slope
    }

    fn is_flat(&self, from: &Point) -> bool {
        self.slope.abs() <= -SLOPE * from.slope
    }
}

/// Where a search ended.
pub(super) struct Found {
    pub(super) loss: f64,
    pub(super) grad: Tensor,
    pub(super) length: f64,
    pub(super) looks: usize,
}

/// An interval with a good point inside, or a good point.
enum Reached {
    Point(Point),
    Interval([Point; 2]),
}

/// Searches along `direction`, looking at most `most` times besides the first.
pub(super) fn strong_wolfe(
    look: &mut dyn FnMut(f64) -> Result<Point>,
    from: &Point,
    direction: &Tensor,
    most: usize,
) -> Result<Found> {
    let mut looks = 1;
    let first = look(from.length)?;
    let mut turns = 0;
    let reached = enclose(look, from, first, &mut turns, most)?;
    looks += turns;
    let point = match reached {
        Reached::Point(point) => point,
        Reached::Interval(interval) => {
            let before = turns;
            let point = narrow(look, from, interval, largest(direction)?, &mut turns, most)?;
            looks += turns - before;
            point
        }
    };
    Ok(Found { loss: point.loss, grad: point.grad, length: point.length, looks })
}

/// Goes further until the loss rises or its slope turns.
fn enclose(
    look: &mut dyn FnMut(f64) -> Result<Point>,
    from: &Point,
    mut point: Point,
    turns: &mut usize,
    most: usize,
) -> Result<Reached> {
    let start = Point { length: 0.0, ..from.clone() };
    let mut last = start.clone();
    while *turns < most {
        if point.is_high(from) || (*turns > 1 && point.loss >= last.loss) {
            return Ok(Reached::Interval([last, point]));
        }
        if point.is_flat(from) {
            return Ok(Reached::Point(point));
        }
        if point.slope >= 0.0 {
            return Ok(Reached::Interval([last, point]));
        }
        let bounds = (point.length + 0.01 * (point.length - last.length), point.length * 10.0);
        let next = look(interpolate(&last, &point, Some(bounds)))?;
        last = std::mem::replace(&mut point, next);
        *turns += 1;
    }
    Ok(Reached::Interval([start, point]))
}

/// Makes an interval smaller until one of its ends is good.
fn narrow(
    look: &mut dyn FnMut(f64) -> Result<Point>,
    from: &Point,
    mut ends: [Point; 2],
    scale: f64,
    turns: &mut usize,
    most: usize,
) -> Result<Point> {
    let lower = |ends: &[Point; 2]| if ends[0].loss <= ends[1].loss { 0 } else { 1 };
    let mut low = lower(&ends);
    let mut stuck = false;
    while *turns < most {
        if (ends[1].length - ends[0].length).abs() * scale < NARROW {
            break;
        }
        let length = inside(&ends, &mut stuck);
        let point = look(length)?;
        *turns += 1;
        if point.is_high(from) || point.loss >= ends[low].loss {
            ends[1 - low] = point;
            low = lower(&ends);
            continue;
        }
        let done = point.is_flat(from);
        if !done && point.slope * (ends[1 - low].length - ends[low].length) >= 0.0 {
            ends[1 - low] = ends[low].clone();
        }
        ends[low] = point;
        if done {
            break;
        }
    }
    Ok(ends[low].clone())
}

/// The next length to try inside an interval, kept away from ends that it keeps running into.
fn inside(ends: &[Point; 2], stuck: &mut bool) -> f64 {
    let length = interpolate(&ends[0], &ends[1], None);
    let (min, max) = (ends[0].length.min(ends[1].length), ends[0].length.max(ends[1].length));
    let margin = 0.1 * (max - min);
    let is_near = (max - length).min(length - min) < margin;
    if is_near && (*stuck || length >= max || length <= min) {
        *stuck = false;
        return if (length - max).abs() < (length - min).abs() { max - margin } else { min + margin };
    }
    *stuck = is_near;
    length
}

/// The lowest place of the cubic through two points and their slopes, within bounds: the points
/// themselves if there are none.
fn interpolate(a: &Point, b: &Point, bounds: Option<(f64, f64)>) -> f64 {
    let (min, max) = bounds.unwrap_or((a.length.min(b.length), a.length.max(b.length)));
    let middle = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.length - b.length);
    let square = middle * middle - a.slope * b.slope;
    if square < 0.0 || square.is_nan() {
        return (min + max) / 2.0;
    }
    let (root, [near, far]) = (square.sqrt(), if a.length <= b.length { [a, b] } else { [b, a] });
    let share = (far.slope + root - middle) / (far.slope - near.slope + 2.0 * root);
    (far.length - (far.length - near.length) * share).max(min).min(max)
}
