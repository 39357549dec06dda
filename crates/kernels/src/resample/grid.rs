//! Samples of planes and volumes at places that a grid names, each coordinate from -1 to 1.

use super::{Method, cubic};
use crate::computing::{load, store};
use crate::{DType, Float, Number as _, View, ViewMut};
use smallvec::SmallVec;

/// What lies beyond the edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// Zeros.
    Zeros,
    /// The nearest element.
    Nearest,
    /// The elements inside, mirrored.
    Mirrored,
}

/// How samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// What becomes of places between elements; anything but `NearestExact`.
    pub method: Method,
    /// What lies beyond the edges.
    pub border: Border,
    /// Whether -1 and 1 are the middles of the outer elements, not their edges.
    pub align_corners: bool,
}

/// One element that a sample is made of, along one dimension.
#[derive(Clone, Copy)]
struct Tap<T> {
    /// Which; none beyond the edges.
    at: Option<usize>,
    /// Its weight, with the first and second derivatives for the coordinate.
    weights: [T; 3],
}

type Taps<T> = SmallVec<[Tap<T>; 4]>;

impl Sampling {
    /// The elements that make a sample at `coordinate` of a dimension with `size` elements.
    fn taps<T: Float>(self, coordinate: T, size: usize) -> Taps<T> {
        let (half, count) = (T::narrow(0.5), T::narrow(size as f64));
        let (place, slope) = if self.align_corners {
            let slope = (count - T::ONE) * half;
            ((coordinate + T::ONE) * slope, slope)
        } else {
            let slope = count * half;
            ((coordinate + T::ONE) * slope - half, slope)
        };
        let inside = |at: T| (T::ZERO..count).contains(&at).then(|| at.wide() as usize);
        if self.method == Method::Cubic {
            let second = place.floor();
            let tap = |(k, [value, first, bend]): (usize, [f64; 3])| {
                let (at, _) = self.kept(second + T::narrow(k as f64 - 1.0), count);
                let weights = [T::narrow(value), T::narrow(first) * slope, T::narrow(bend) * slope * slope];
                Tap { at: inside(at), weights }
            };
            return cubic((place - second).wide()).into_iter().enumerate().map(tap).collect();
        }
        let (place, direction) = self.kept(place, count);
        if self.method != Method::Linear {
            let weights = [T::ONE, T::ZERO, T::ZERO];
            return SmallVec::from_slice(&[Tap { at: inside(place.round_even()), weights }]);
        }
        let (first, slope) = (place.floor(), slope * direction);
        let share = place - first;
        SmallVec::from_slice(&[
            Tap { at: inside(first), weights: [T::ONE - share, -slope, T::ZERO] },
            Tap { at: inside(first + T::ONE), weights: [share, slope, T::ZERO] },
        ])
    }

    /// Where a place beyond the edges leads, and how that moves with the place.
    fn kept<T: Float>(self, place: T, count: T) -> (T, T) {
        let last = count - T::ONE;
        let clipped = |(place, direction): (T, T)| {
            if place <= T::ZERO {
                (T::ZERO, T::ZERO)
            } else if place >= last {
                (last, T::ZERO)
            } else {
                (place, direction)
            }
        };
        match self.border {
            Border::Zeros => (place, T::ONE),
            Border::Nearest => clipped((place, T::ONE)),
            Border::Mirrored if self.align_corners => clipped(mirrored(place, T::ZERO, last)),
            Border::Mirrored => clipped(mirrored(place, -T::narrow(0.5), count)),
        }
    }
}

/// `place` mirrored at `low` and `span` above it until it lies between, and how it moves then.
fn mirrored<T: Float>(place: T, low: T, span: T) -> (T, T) {
    if span <= T::ZERO {
        return (T::ZERO, T::ZERO);
    }
    let above = place - low;
    let direction = if above < T::ZERO { -T::ONE } else { T::ONE };
    let above = above.abs();
    let (rest, turns) = (above % span, (above / span).floor());
    let two = T::ONE + T::ONE;
    if turns % two == T::ZERO { (rest + low, direction) } else { (span - rest + low, -direction) }
}

/// The sizes that one call has to do with, and how many places there are per sample of a batch.
struct Frame {
    channels: usize,
    sizes: SmallVec<[usize; 3]>,
    places: usize,
}

impl Frame {
    /// `x` is `[samples, channels, sizes..]`, `grid` `[samples, places.., rank]` with the last size first.
    fn new(x: &[usize], grid: &[usize]) -> Frame {
        let rank = x.len() - 2;
        assert_eq!(
            (grid.len(), grid[rank + 1], grid[0]),
            (x.len(), rank, x[0]),
            "sample: the grid names places in x"
        );
        Frame { channels: x[1], sizes: x[2..].into(), places: grid[1..=rank].iter().product() }
    }

    fn area(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Calls `f` for each place of each sample: the sample, the place, and the taps of each dimension.
    fn each<T: Float>(&self, grid: &[T], how: Sampling, mut f: impl FnMut(usize, usize, &[Taps<T>])) {
        let rank = self.sizes.len();
        for (number, coordinates) in grid.chunks_exact(rank).enumerate() {
            let taps: SmallVec<[Taps<T>; 3]> =
                (0..rank).map(|dim| how.taps(coordinates[rank - 1 - dim], self.sizes[dim])).collect();
            f(number / self.places, number % self.places, &taps);
        }
    }

    /// Calls `f` with each element that makes a sample: where it is in its plane, and its tap along
    /// each dimension.
    fn corners<T: Float>(&self, taps: &[Taps<T>], mut f: impl FnMut(usize, &[Tap<T>])) {
        let count: usize = taps.iter().map(SmallVec::len).product();
        for number in 0..count {
            let (mut rest, mut at, mut chosen) = (number, Some(0), SmallVec::<[Tap<T>; 3]>::new());
            for (taps, &size) in taps.iter().zip(&self.sizes) {
                let tap = taps[rest % taps.len()];
                rest /= taps.len();
                at = at.zip(tap.at).map(|(at, place)| at * size + place);
                chosen.push(tap);
            }
            if let Some(at) = at {
                f(at, &chosen);
            }
        }
    }
}

/// The weight of a corner, differentiated once for each dimension in `by`.
fn weight<T: Float>(corner: &[Tap<T>], by: &[usize]) -> T {
    let order = |dim: usize| by.iter().filter(|&&other| other == dim).count();
    corner.iter().enumerate().fold(T::ONE, |weight, (dim, tap)| weight * tap.weights[order(dim)])
}

// Runs `body` with `T` as the type to compute in.
macro_rules! floating {
    ($dtype:expr, $T:ident => $body:expr) => {
        if $dtype == DType::F64 {
            type $T = f64;
            $body
        } else {
            type $T = f32;
            $body
        }
    };
}

/// `out[n, c, p]` is a sample of `x[n, c]` at the place `grid[n, p]`.
pub fn sample(x: View<'_>, grid: View<'_>, how: Sampling, out: ViewMut<'_>) {
    let frame = Frame::new(x.shape(), grid.shape());
    floating!(out.dtype(), T => {
        let (x, grid) = (load::<T>(x), load::<T>(grid));
        store::<T>(out, |out| {
            out.fill(T::ZERO);
            frame.each(&grid, how, |n, p, taps| frame.corners(taps, |at, corner| {
                let weight = weight(corner, &[]);
                for c in n * frame.channels..(n + 1) * frame.channels {
                    out[c * frame.places + p] += weight * x[c * frame.area() + at];
                }
            }));
        });
    });
}

/// The gradients of [`sample`] for `x` and for the grid.
pub fn sample_backward(
    grad: View<'_>,
    x: View<'_>,
    grid: View<'_>,
    how: Sampling,
    [grad_x, grad_grid]: [ViewMut<'_>; 2],
) {
    let (frame, rank) = (Frame::new(x.shape(), grid.shape()), x.shape().len() - 2);
    floating!(grad_x.dtype(), T => {
        let (grad, x, grid) = (load::<T>(grad), load::<T>(x), load::<T>(grid));
        store::<T>(grad_x, |grad_x| store::<T>(grad_grid, |grad_grid| {
            grad_x.fill(T::ZERO);
            grad_grid.fill(T::ZERO);
            frame.each(&grid, how, |n, p, taps| frame.corners(taps, |at, corner| {
                let whole = weight(corner, &[]);
                let mut product = T::ZERO;
                for c in n * frame.channels..(n + 1) * frame.channels {
                    let grad = grad[c * frame.places + p];
                    grad_x[c * frame.area() + at] += whole * grad;
                    product += grad * x[c * frame.area() + at];
                }
                for dim in 0..rank {
                    let to = (n * frame.places + p) * rank + rank - 1 - dim;
                    grad_grid[to] += weight(corner, &[dim]) * product;
                }
            }));
        }));
    });
}

/// The gradients of [`sample_backward`] for `grad`, `x` and the grid, given directions in which the
/// gradients of `x` and of the grid change.
pub fn sample_double_backward(
    [towards_x, towards_grid]: [View<'_>; 2],
    grad: View<'_>,
    x: View<'_>,
    grid: View<'_>,
    how: Sampling,
    [out_grad, out_x, out_grid]: [ViewMut<'_>; 3],
) {
    let (frame, rank) = (Frame::new(x.shape(), grid.shape()), x.shape().len() - 2);
    floating!(out_x.dtype(), T => {
        let (grad, x, grid) = (load::<T>(grad), load::<T>(x), load::<T>(grid));
        let (towards_x, towards_grid) = (load::<T>(towards_x), load::<T>(towards_grid));
        store::<T>(out_grad, |out_grad| store::<T>(out_x, |out_x| store::<T>(out_grid, |out_grid| {
            [&mut *out_grad, out_x, out_grid].into_iter().for_each(|out| out.fill(T::ZERO));
            frame.each(&grid, how, |n, p, taps| frame.corners(taps, |at, corner| {
                let of_dim = |dim: usize| (n * frame.places + p) * rank + rank - 1 - dim;
                let whole = weight(corner, &[]);
                // How the weight changes as the place moves.
                let moved = |also: &[usize]| {
                    (0..rank).fold(T::ZERO, |sum, dim| {
                        let by: SmallVec<[usize; 2]> = also.iter().copied().chain([dim]).collect();
                        sum + towards_grid[of_dim(dim)] * weight(corner, &by)
                    })
                };
                let change = moved(&[]);
                let (mut of_x, mut of_direction) = (T::ZERO, T::ZERO);
                for c in n * frame.channels..(n + 1) * frame.channels {
                    let (here, there) = (c * frame.places + p, c * frame.area() + at);
                    out_grad[here] += whole * towards_x[there] + change * x[there];
                    out_x[there] += change * grad[here];
                    of_x += grad[here] * x[there];
                    of_direction += grad[here] * towards_x[there];
                }
                for dim in 0..rank {
                    out_grid[of_dim(dim)] += weight(corner, &[dim]) * of_direction + moved(&[dim]) * of_x;
                }
            }));
        })));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    fn sampled(coordinate: f64, how: Sampling) -> f64 {
        let x = Array::new(&[1, 1, 1, 3], &[1.0, 2.0, 4.0]);
        let grid = Array::new(&[1, 1, 1, 2], &[coordinate, 0.0]);
        let mut out = Array::<f64>::zeros(&[1, 1, 1, 1]);
        sample(x.view(), grid.view(), how, out.view_mut());
        out.elements[0]
    }

    const LINEAR: Sampling = Sampling { method: Method::Linear, border: Border::Zeros, align_corners: true };

    #[test]
    fn places_between_elements_are_between_their_values() {
        assert_eq!([-1.0, -0.5, 0.0, 1.0].map(|at| sampled(at, LINEAR)), [1.0, 1.5, 2.0, 4.0]);
        let nearest = Sampling { method: Method::Nearest, ..LINEAR };
        assert_eq!([-0.6, 0.1].map(|at| sampled(at, nearest)), [1.0, 2.0]);
    }

    #[test]
    fn beyond_the_edges_lies_what_the_border_says() {
        let with = |border| sampled(2.0, Sampling { border, ..LINEAR });
        assert_eq!([Border::Zeros, Border::Nearest, Border::Mirrored].map(with), [0.0, 4.0, 2.0]);
    }

    #[test]
    fn places_that_are_no_number_are_outside() {
        assert_eq!(sampled(f64::NAN, LINEAR), 0.0);
        assert!(!sampled(f64::INFINITY, Sampling { border: Border::Mirrored, ..LINEAR }).is_infinite());
    }
}
