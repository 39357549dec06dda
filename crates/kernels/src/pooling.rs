//! Averages and maxima of what windows see, with gradients.

use crate::computing::{computing, load, store};
use crate::functions::is_nan;
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

impl Windows {
    fn area(&self) -> usize {
        self.input.iter().product()
    }

    fn count(&self) -> usize {
        self.spans.iter().map(Vec::len).product()
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
        let planes = x.chunks_exact(self.windows.area().max(1));
        store::<T>(out, |out| {
            for (out, plane) in out.chunks_exact_mut(self.windows.count().max(1)).zip(planes) {
                let mut out = out.iter_mut();
                self.windows.each(|window| {
                    let mut sum = T::ZERO;
                    self.windows.places(window, |at| sum = sum + plane[at]);
                    if let Some(out) = out.next() {
                        *out = sum / divisor(window, self.divide_by);
                    }
                });
            }
        });
    }

    fn backward<T: Float>(&self, grad: View<'_>, out: ViewMut<'_>) {
        let grad = load::<T>(grad);
        let grads = grad.chunks_exact(self.windows.count().max(1));
        store::<T>(out, |out| {
            out.fill(T::ZERO);
            for (plane, grad) in out.chunks_exact_mut(self.windows.area().max(1)).zip(grads) {
                let mut grad = grad.iter();
                self.windows.each(|window| {
                    let share = grad.next().map_or(T::ZERO, |&grad| grad / divisor(window, self.divide_by));
                    self.windows.places(window, |at| plane[at] = plane[at] + share);
                });
            }
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
    let planes = x.chunks_exact(windows.area().max(1));
    let count = windows.count().max(1);
    let outputs = out.chunks_exact_mut(count).zip(indices.chunks_exact_mut(count));
    for ((out, indices), plane) in outputs.zip(planes) {
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
}

/// `out[.., index]` gets the sum of all `grad` whose index it is. Planes of `out` have `area` places.
///
/// # Panics
/// If an index is outside of its plane.
pub fn maximum_backward(grad: View<'_>, indices: View<'_>, area: usize, out: ViewMut<'_>) {
    let planes = out.layout().len().checked_div(area).unwrap_or(0);
    let count = grad.layout().len().checked_div(planes).unwrap_or(0).max(1);
    computing!(out.dtype(), T => {
        let (grad, indices) = (load::<T>(grad), load::<i64>(indices));
        store::<T>(out, |out| {
            out.fill(0 as T);
            let windows = grad.chunks_exact(count).zip(indices.chunks_exact(count));
            for (plane, (grad, indices)) in out.chunks_exact_mut(area.max(1)).zip(windows) {
                grad.iter().zip(indices).for_each(|(&grad, &at)| plane[at as usize] = plane[at as usize].plus(grad));
            }
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
    fn what_two_windows_see_gets_both_gradients() {
        let grad = Array::new(&[1, 2], &[2.0f64, 4.0]);
        let mut out = Array::<f64>::zeros(&[1, 3]);
        average_backward(grad.view(), &pairs(), None, out.view_mut());
        assert_eq!(out.elements, [1.0, 3.0, 2.0]);
    }
}
