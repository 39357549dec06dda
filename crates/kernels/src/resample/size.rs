//! Planes and volumes of another size.
//!
//! Every method works along one dimension at a time, as a matrix with few elements per row; the
//! gradient is the same matrix the other way.

use super::{Method, cubic};
use crate::computing::{load, store};
use crate::rows::order_by;
use crate::scratch::Scratch;
use crate::{DType, Float, View, ViewMut};

/// Which elements, with which weights, make each element along one dimension.
#[derive(Clone, Debug)]
pub struct Line {
    from: usize,
    /// How many elements make one.
    reach: usize,
    sources: Vec<usize>,
    weights: Vec<f64>,
}

impl Line {
    /// `to` elements made of `from`, neither of them 0. With `align_corners` the first and last lie on
    /// each other, else the outer edges of the elements do; `scale` is how many become of one, if that
    /// is not just `to / from`. `dtype` says how exactly nearest elements are found.
    pub fn new(
        method: Method,
        from: usize,
        to: usize,
        align_corners: bool,
        scale: Option<f64>,
        dtype: DType,
    ) -> Line {
        let reach = match method {
            Method::Nearest | Method::NearestExact => 1,
            Method::Linear => 2,
            Method::Cubic => 4,
        };
        let mut line = Line { from, reach, sources: Vec::new(), weights: Vec::new() };
        let step = step(from, to, align_corners, scale);
        for at in 0..to {
            match method {
                Method::Nearest | Method::NearestExact => {
                    let exact = method == Method::NearestExact;
                    let source = if dtype == DType::F64 {
                        nearest(at, step, exact)
                    } else {
                        nearest_single(at, step, exact)
                    };
                    line.push(source, 1.0);
                }
                Method::Linear => {
                    let place = place(at, step, align_corners).max(0.0);
                    let first = (place.floor() as usize).min(from - 1);
                    let share = (place - first as f64).clamp(0.0, 1.0);
                    line.push(first, 1.0 - share);
                    line.push(first + 1, share);
                }
                Method::Cubic => {
                    let place = place(at, step, align_corners);
                    let second = place.floor();
                    for (k, [weight, ..]) in cubic(place - second).into_iter().enumerate() {
                        line.push((second + k as f64 - 1.0).max(0.0) as usize, weight);
                    }
                }
            }
        }
        line
    }

    /// Beyond the last element is the last again.
    fn push(&mut self, source: usize, weight: f64) {
        self.sources.push(source.min(self.from - 1));
        self.weights.push(weight);
    }

    fn to(&self) -> usize {
        self.sources.len() / self.reach
    }

    /// Per element, the numbers and weights of those that make it.
    fn taps(&self, at: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = at * self.reach..(at + 1) * self.reach;
        self.sources[range.clone()].iter().copied().zip(self.weights[range].iter().copied())
    }

    /// `x` seen as `[.., from, inner]` to `[.., to, inner]`.
    fn forward<T: Float>(&self, x: &[T], inner: usize) -> Scratch<T> {
        let mut out = Scratch::zeros(x.len() / self.from * self.to());
        let outer = out.chunks_exact_mut(self.to() * inner).zip(x.chunks_exact(self.from * inner));
        for (out, x) in outer {
            for (at, out) in out.chunks_exact_mut(inner).enumerate() {
                for (source, weight) in self.taps(at) {
                    add_scaled(out, &x[source * inner..][..inner], T::narrow(weight));
                }
            }
        }
        out
    }

    /// `grad` seen as `[.., to, inner]` back to `[.., from, inner]`.
    fn backward<T: Float>(&self, grad: &[T], inner: usize) -> Scratch<T> {
        let mut out = Scratch::zeros(grad.len() / self.to() * self.from);
        let outer = out.chunks_exact_mut(self.from * inner).zip(grad.chunks_exact(self.to() * inner));
        for (out, grad) in outer {
            for (at, grad) in grad.chunks_exact(inner).enumerate() {
                for (source, weight) in self.taps(at) {
                    add_scaled(&mut out[source * inner..][..inner], grad, T::narrow(weight));
                }
            }
        }
        out
    }
}

fn add_scaled<T: Float>(out: &mut [T], x: &[T], factor: T) {
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = *out + x * factor);
}

/// How far apart in the input neighbours of the output are.
fn step(from: usize, to: usize, align_corners: bool, scale: Option<f64>) -> f64 {
    if align_corners {
        return if to > 1 { (from - 1) as f64 / (to - 1) as f64 } else { 0.0 };
    }
    scale.filter(|&scale| scale > 0.0).map_or(from as f64 / to as f64, |scale| 1.0 / scale)
}

/// Where in the input an element of the output lies.
fn place(at: usize, step: f64, align_corners: bool) -> f64 {
    if align_corners { at as f64 * step } else { (at as f64 + 0.5) * step - 0.5 }
}

fn nearest(at: usize, step: f64, exact: bool) -> usize {
    let place = if exact { place(at, step, false).max(0.0) + 0.5 } else { place(at, step, true) };
    (place as f32).floor() as usize
}

/// In single precision, as torch: which element is nearest may hang on the last bit.
fn nearest_single(at: usize, step: f64, exact: bool) -> usize {
    let (at, step) = (at as f32, step as f32);
    let place = if exact { ((at + 0.5) * step - 0.5).max(0.0) + 0.5 } else { at * step };
    place.floor() as usize
}

/// `x` with its last dimensions, one per line, made of other sizes.
pub fn resize(x: View<'_>, lines: &[Line], out: ViewMut<'_>) {
    if out.dtype() == DType::F64 { run::<f64>(x, lines, out, true) } else { run::<f32>(x, lines, out, true) }
}

/// The gradient of [`resize`].
pub fn resize_backward(grad: View<'_>, lines: &[Line], out: ViewMut<'_>) {
    if out.dtype() == DType::F64 {
        run::<f64>(grad, lines, out, false);
    } else {
        run::<f32>(grad, lines, out, false);
    }
}

fn run<T: Float>(x: View<'_>, lines: &[Line], out: ViewMut<'_>, forward: bool) {
    let mut elements = load::<T>(x).into_scratch();
    let size = |line: &Line, done: bool| if done == forward { line.to() } else { line.from };
    let mut sizes: Vec<usize> = lines.iter().map(|line| size(line, false)).collect();
    // Dimensions that shrink come first, so that nothing in between is larger than both ends.
    let mut order: Vec<usize> = (0..lines.len()).rev().collect();
    order_by(&mut order, |&a, &b| (size(&lines[a], true) > sizes[a]) <= (size(&lines[b], true) > sizes[b]));
    for dim in order {
        let (line, inner) = (&lines[dim], sizes[dim + 1..].iter().product());
        elements = if forward { line.forward(&elements, inner) } else { line.backward(&elements, inner) };
        sizes[dim] = size(line, true);
    }
    store::<T>(out, |out| out.copy_from_slice(&elements));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    fn resized(method: Method, align_corners: bool, x: &[f64], to: usize) -> Vec<f64> {
        let line = Line::new(method, x.len(), to, align_corners, None, DType::F64);
        let (x, mut out) = (Array::new(&[x.len()], x), Array::<f64>::zeros(&[to]));
        resize(x.view(), &[line], out.view_mut());
        out.elements
    }

    #[test]
    fn corners_are_aligned_or_edges_are() {
        assert_eq!(resized(Method::Linear, true, &[0.0, 2.0], 3), [0.0, 1.0, 2.0]);
        assert_eq!(resized(Method::Linear, false, &[0.0, 2.0], 4), [0.0, 0.5, 1.5, 2.0]);
    }

    #[test]
    fn nearest_takes_elements_whole() {
        assert_eq!(resized(Method::Nearest, false, &[1.0, 2.0], 5), [1.0, 1.0, 1.0, 2.0, 2.0]);
        assert_eq!(resized(Method::NearestExact, false, &[1.0, 2.0, 3.0, 4.0], 2), [2.0, 4.0]);
    }

    #[test]
    fn the_same_size_changes_nothing() {
        let x = [3.0, -1.0, 4.0];
        for method in [Method::Nearest, Method::NearestExact, Method::Linear, Method::Cubic] {
            assert_eq!(resized(method, false, &x, 3), x);
        }
    }

    #[test]
    fn the_gradient_is_the_transposed() {
        let lines =
            [(3, 5), (4, 2)].map(|(from, to)| Line::new(Method::Cubic, from, to, false, None, DType::F64));
        let (x, grad) = (Array::<f64>::random(&[2, 3, 4], 1), Array::<f64>::random(&[2, 5, 2], 2));
        let (mut out, mut back) = (Array::<f64>::zeros(&[2, 5, 2]), Array::<f64>::zeros(&[2, 3, 4]));
        resize(x.view(), &lines, out.view_mut());
        resize_backward(grad.view(), &lines, back.view_mut());
        let dot = |a: &Array<f64>, b: &Array<f64>| {
            a.elements.iter().zip(&b.elements).map(|(a, b)| a * b).sum::<f64>()
        };
        assert!((dot(&out, &grad) - dot(&x, &back)).abs() < 1e-9);
    }
}
