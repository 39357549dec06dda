//! Averages and maxima of what windows see, with gradients.

use crate::computing::{computing, load, store};
use crate::functions::is_nan;
use crate::threads::{each_chunk, each_of};
use crate::wide::wide;
use crate::{DType, Float, Number, View, ViewMut};

/// What one window sees along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first place.
    pub start: usize,
    /// One more than the last.
    pub end: usize,
    /// From one place to the next.
    pub step: usize,
    /// How many places the window counts, in the input or not.
    pub count: usize,
}

/// The windows of a plane of up to three dimensions, as what they see along each.
#[derive(Clone, Debug)]
pub struct Windows {
    /// Sizes of the plane.
    pub input: [usize; 3],
    /// Per dimension, what each window sees.
    pub spans: [Vec<Span>; 3],
}

/// Elements of the planes that one thread takes at a time.
const PIECE: usize = 1 << 14;

impl Windows {
    fn area(&self) -> usize {
        self.input.iter().product()
    }

    fn count(&self) -> usize {
        self.spans.iter().map(Vec::len).product()
    }

    /// Whether windows are squares of two by two, side by side.
    fn are_squares(&self) -> bool {
        let pairs = |spans: &[Span]| {
            spans
                .iter()
                .enumerate()
                .all(|(i, span)| (span.start, span.end, span.step) == (2 * i, 2 * i + 2, 1))
        };
        let [deep, high, wide] = &self.spans;
        self.input[0] == 1 && deep.len() == 1 && deep[0].end == 1 && pairs(high) && pairs(wide)
    }

    /// Planes of one piece, by their size alone.
    fn together(&self) -> usize {
        (PIECE / self.area().max(1)).max(1)
    }

    /// Nanoseconds of one pass over so many planes, roughly.
    fn cost(&self, planes: usize) -> usize {
        planes * (self.area() + self.count())
    }

    /// Calls `f` with each window.
    fn each(&self, mut f: impl FnMut([Span; 3])) {
        let [deep, high, wide] = &self.spans;
        for &z in deep {
            for &y in high {
                wide.iter().for_each(|&x| f([z, y, x]));
            }
        }
    }

    /// Calls `f` with each place that a window sees.
    fn places(&self, [deep, high, wide]: [Span; 3], mut f: impl FnMut(usize)) {
        for z in (deep.start..deep.end).step_by(deep.step) {
            for y in (high.start..high.end).step_by(high.step) {
                let row = (z * self.input[1] + y) * self.input[2];
                (wide.start..wide.end).step_by(wide.step).for_each(|x| f(row + x));
            }
        }
    }
}

/// What sums are divided by: a number, or how many places the window counts.
fn divisor<T: Float>(window: [Span; 3], given: Option<f64>) -> T {
    T::narrow(given.unwrap_or_else(|| window.iter().map(|span| span.count).product::<usize>() as f64))
}

/// `out[.., w]` is the average of what window `w` sees, or the sum divided by `divide_by`.
pub fn average(x: View<'_>, windows: &Windows, divide_by: Option<f64>, out: ViewMut<'_>) {
    let run = Averaging { windows, divide_by };
    if out.dtype() == DType::F64 { run.forward::<f64>(x, out) } else { run.forward::<f32>(x, out) }
}

/// The gradient of [`average`]: every window's gradient is shared by what it sees.
pub fn average_backward(grad: View<'_>, windows: &Windows, divide_by: Option<f64>, out: ViewMut<'_>) {
    let run = Averaging { windows, divide_by };
    if out.dtype() == DType::F64 { run.backward::<f64>(grad, out) } else { run.backward::<f32>(grad, out) }
}

struct Averaging<'a> {
    windows: &'a Windows,
    divide_by: Option<f64>,
}

impl Averaging<'_> {
    fn forward<T: Float>(&self, x: View<'_>, out: ViewMut<'_>) {
        let x = load::<T>(x);
        let (area, count) = (self.windows.area(), self.windows.count().max(1));
        let planes = out.layout().len() / count;
        store::<T>(out, |out| {
            each_chunk(out, count, self.windows.cost(planes), |i, out| {
                let (plane, mut out) = (&x[i * area..][..area], out.iter_mut());
                self.windows.each(|window| {
                    let mut sum = T::ZERO;
                    self.windows.places(window, |at| sum = sum + plane[at]);
                    if let Some(out) = out.next() {
                        *out = sum / divisor(window, self.divide_by);
                    }
                });
            });
        });
    }

    fn backward<T: Float>(&self, grad: View<'_>, out: ViewMut<'_>) {
        let grad = load::<T>(grad);
        let (area, count) = (self.windows.area().max(1), self.windows.count());
        let planes = out.layout().len() / area;
        store::<T>(out, |out| {
            each_chunk(out, area, self.windows.cost(planes), |i, plane| {
                plane.fill(T::ZERO);
                let mut grad = grad[i * count..][..count].iter();
                self.windows.each(|window| {
                    let share = grad.next().map_or(T::ZERO, |&grad| grad / divisor(window, self.divide_by));
                    self.windows.places(window, |at| plane[at] = plane[at] + share);
                });
            });
        });
    }
}

/// `out[.., w]` is the largest element that window `w` sees, or NaN if it sees one, and
/// `indices[.., w]` where in the plane it is.
pub fn maximum(x: View<'_>, windows: &Windows, out: ViewMut<'_>, indices: ViewMut<'_>) {
    computing!(out.dtype(), T => {
        let x = load::<T>(x);
        store::<T>(out, |out| store::<i64>(indices, |indices| maxima(&x, windows, out, indices)));
    });
}

fn maxima<T: Number>(x: &[T], windows: &Windows, out: &mut [T], indices: &mut [i64]) {
    let (area, count, together) = (windows.area().max(1), windows.count().max(1), windows.together());
    let squares = windows.are_squares();
    let cost = windows.cost(out.len() / count);
    let outputs = out.chunks_mut(together * count).zip(indices.chunks_mut(together * count));
    let pieces = outputs.zip(x.chunks(together * area)).collect();
    each_of(pieces, cost, |((out, indices), planes): ((&mut [T], &mut [i64]), &[T])| {
        let outputs = out.chunks_exact_mut(count).zip(indices.chunks_exact_mut(count));
        for ((out, indices), plane) in outputs.zip(planes.chunks_exact(area)) {
            if squares {
                maxima_of_squares(plane, windows.input[2], windows.spans[2].len(), out, indices);
            } else {
                maxima_of_plane(plane, windows, out, indices);
            }
        }
    });
}

fn maxima_of_plane<T: Number>(plane: &[T], windows: &Windows, out: &mut [T], indices: &mut [i64]) {
    let mut results = out.iter_mut().zip(indices);
    windows.each(|window| {
        let mut best: Option<usize> = None;
        windows.places(window, |at| {
            if best.is_none_or(|best| plane[at] > plane[best] || is_nan(plane[at])) {
                best = Some(at);
            }
        });
        if let (Some((out, index)), Some(best)) = (results.next(), best) {
            (*out, *index) = (plane[best], best as i64);
        }
    });
}

wide! {
    /// The same for windows of two by two; `across` of them in a row of `width` elements.
    fn maxima_of_squares[T: Number](plane: &[T], width: usize, across: usize, out: &mut [T], indices: &mut [i64]) {
        let results = out.chunks_exact_mut(across).zip(indices.chunks_exact_mut(across));
        for (row, ((out, indices), rows)) in results.zip(plane.chunks_exact(2 * width)).enumerate() {
            let (upper, lower) = rows.split_at(width);
            let pairs = upper.as_chunks::<2>().0.iter().zip(lower.as_chunks::<2>().0);
            for (column, ((out, index), (upper, lower))) in out.iter_mut().zip(indices).zip(pairs).enumerate() {
                let first = 2 * (row * width + column);
                let mut best = (upper[0], first);
                for (x, at) in [(upper[1], first + 1), (lower[0], first + width), (lower[1], first + width + 1)] {
                    best = if x > best.0 || is_nan(x) { (x, at) } else { best };
                }
                (*out, *index) = (best.0, best.1 as i64);
            }
        }
    }
}

/// `out[.., index]` gets the sum of all `grad` whose index it is. Planes of `out` have `area` places. A
/// window that saw nothing but padding has the index -1, and nobody gets its gradient.
///
/// # Panics
/// If an index is outside of its plane.
pub fn maximum_backward(grad: View<'_>, indices: View<'_>, area: usize, out: ViewMut<'_>) {
    let planes = out.layout().len().checked_div(area).unwrap_or(0);
    let count = grad.layout().len().checked_div(planes).unwrap_or(0);
    computing!(out.dtype(), T => {
        let (grad, indices) = (load::<T>(grad), load::<i64>(indices));
        store::<T>(out, |out| {
            let (cost, together) = (out.len() + 2 * grad.len(), (PIECE / area.max(1)).max(1));
            each_chunk(out, together * area.max(1), cost, |piece, planes| {
                planes.fill(0 as T);
                for (i, plane) in (piece * together..).zip(planes.chunks_exact_mut(area.max(1))) {
                    let windows = grad[i * count..][..count].iter().zip(&indices[i * count..]);
                    windows.filter(|&(_, &at)| at != -1).for_each(|(&grad, &at)| {
                        plane[at as usize] = plane[at as usize].plus(grad);
                    });
                }
            });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    fn pairs() -> Windows {
        let span = |start| Span { start, end: start + 2, step: 1, count: 2 };
        let whole = Span { start: 0, end: 1, step: 1, count: 1 };
        Windows { input: [1, 1, 3], spans: [vec![whole], vec![whole], vec![span(0), span(1)]] }
    }

    #[test]
    fn nan_wins_over_every_number() {
        let x = Array::new(&[1, 3], &[f32::NAN, 1.0, 2.0]);
        let (mut out, mut indices) = (Array::<f32>::zeros(&[1, 2]), Array::<i64>::zeros(&[1, 2]));
        maximum(x.view(), &pairs(), out.view_mut(), indices.view_mut());
        assert!(out.elements[0].is_nan());
        assert_eq!((out.elements[1], &indices.elements[..]), (2.0, &[0, 2][..]));
    }

    #[test]
    fn squares_give_what_any_windows_give_for_every_number_of_threads() {
        for [planes, rows, columns] in [[1, 2, 2], [3, 5, 7], [200, 12, 12], [7, 64, 33]] {
            let mut x = Array::<f32>::random(&[planes, rows, columns], 1);
            x.elements[1] = f32::NAN;
            x.elements[3] = f32::NAN;
            let last = x.elements.len() - 1;
            x.elements[last] = f32::NEG_INFINITY;
            let spans = |size: usize| {
                let span = |i| Span { start: 2 * i, end: 2 * i + 2, step: 1, count: 2 };
                (0..size / 2).map(span).collect::<Vec<_>>()
            };
            let whole = Span { start: 0, end: 1, step: 1, count: 1 };
            let windows =
                Windows { input: [1, rows, columns], spans: [vec![whole], spans(rows), spans(columns)] };
            assert!(windows.are_squares());
            let shape = [planes, rows / 2, columns / 2];
            let run = |threads: usize| {
                let (mut out, mut indices) = (Array::<f32>::zeros(&shape), Array::<i64>::zeros(&shape));
                let mut back = Array::new(&[planes, rows, columns], &vec![f32::NAN; planes * rows * columns]);
                crate::threads::with_threads(threads, || {
                    maximum(x.view(), &windows, out.view_mut(), indices.view_mut());
                    maximum_backward(out.view(), indices.view(), rows * columns, back.view_mut());
                });
                (out.elements, indices.elements, back.elements)
            };
            let (out, indices, back) = run(1);
            let (area, count) = (rows * columns, shape[1] * shape[2]);
            for plane in 0..planes {
                let (mut slow, mut places) = (vec![0.0; count], vec![0; count]);
                maxima_of_plane(&x.elements[plane * area..][..area], &windows, &mut slow, &mut places);
                assert_eq!(places, indices[plane * count..][..count]);
                let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&slow), bits(&out[plane * count..][..count]));
            }
            for threads in [2, 3] {
                let other = run(threads);
                assert!(
                    other.1 == indices && other.2.iter().zip(&back).all(|(a, b)| a.to_bits() == b.to_bits())
                );
            }
        }
    }

    #[test]
    fn a_window_of_padding_alone_gives_its_gradient_to_nobody() {
        let grad = Array::new(&[1, 2], &[2.0f64, 4.0]);
        let indices = Array::new(&[1, 2], &[-1i64, 2]);
        let mut out = Array::<f64>::zeros(&[1, 3]);
        maximum_backward(grad.view(), indices.view(), 3, out.view_mut());
        assert_eq!(out.elements, [0.0, 0.0, 4.0]);
    }

    #[test]
    fn what_two_windows_see_gets_both_gradients() {
        let grad = Array::new(&[1, 2], &[2.0f64, 4.0]);
        let mut out = Array::<f64>::zeros(&[1, 3]);
        average_backward(grad.view(), &pairs(), None, out.view_mut());
        assert_eq!(out.elements, [1.0, 3.0, 2.0]);
    }
}
