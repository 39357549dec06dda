//! How far the right class of a sample lies above each of the others.

use super::Reduction;
use crate::computing::{load, store};
use crate::elementwise::pack;
use crate::scratch::Elements;
use crate::{DType, Float, OutOfRange, View, ViewMut};

/// What a margin loss of one class per sample is made of.
#[derive(Clone, Copy, Debug)]
pub struct ClassMargin {
    /// How far the right class should lie above the others.
    pub margin: f64,
    /// Whether what is lacking is squared.
    pub squared: bool,
    /// What becomes of the losses of single samples.
    pub reduction: Reduction,
}

/// The right class of each of the samples `[samples, classes]`.
struct Targets<'a> {
    of: Elements<'a, i64>,
    classes: usize,
}

impl<'a> Targets<'a> {
    fn new(shape: &[usize], target: View<'a>) -> Result<Targets<'a>, OutOfRange> {
        let &[samples, classes] = shape else { panic!("multi_margin: {shape:?} is not [samples, classes]") };
        let of = pack::<i64>(target);
        assert_eq!(of.len(), samples, "multi_margin: a class for each sample");
        match of.iter().find(|class| !(0..classes as i64).contains(*class)) {
            Some(&index) => Err(OutOfRange { index, size: classes }),
            None => Ok(Targets { of, classes }),
        }
    }

    /// The sample's right class, and its scores.
    fn sample<'s, T>(&self, n: usize, scores: &'s [T]) -> (usize, &'s [T]) {
        (self.of[n] as usize, &scores[n * self.classes..][..self.classes])
    }
}

/// `out` gets, per sample, the mean over classes of what the right one lacks, times the weight of that class;
/// or the mean or sum of that over all samples.
pub fn multi_margin(
    x: View<'_>,
    target: View<'_>,
    weight: Option<View<'_>>,
    how: ClassMargin,
    out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let targets = Targets::new(x.shape(), target)?;
    match out.dtype() {
        DType::F64 => forward::<f64>(x, &targets, weight, how, out),
        _ => forward::<f32>(x, &targets, weight, how, out),
    }
    Ok(())
}

fn forward<T: Float>(
    x: View<'_>,
    targets: &Targets<'_>,
    weight: Option<View<'_>>,
    how: ClassMargin,
    out: ViewMut<'_>,
) {
    let samples = x.shape()[0];
    let (x, weight) = (load::<T>(x), weight.map(load::<T>));
    let margin = T::narrow(how.margin);
    let loss = |n: usize| {
        let (right, scores) = targets.sample(n, &x);
        let mut sum = T::ZERO;
        for (class, &score) in scores.iter().enumerate() {
            let lack = margin - scores[right] + score;
            if class != right && lack > T::ZERO {
                let cost = if how.squared { lack * lack } else { lack };
                sum = sum + weight.as_ref().map_or(cost, |weight| cost * weight[right]);
            }
        }
        sum / T::narrow(targets.classes as f64)
    };
    store::<T>(out, |out| match how.reduction {
        Reduction::None => (0..samples).for_each(|n| out[n] = loss(n)),
        Reduction::Sum => out[0] = (0..samples).fold(T::ZERO, |sum, n| sum + loss(n)),
        Reduction::Mean => {
            out[0] = (0..samples).fold(T::ZERO, |sum, n| sum + loss(n)) / T::narrow(samples as f64);
        }
    });
}

/// The gradient of [`multi_margin`] for the scores, whose shape `out` has.
pub fn multi_margin_backward(
    grad: View<'_>,
    x: View<'_>,
    target: View<'_>,
    weight: Option<View<'_>>,
    how: ClassMargin,
    out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let targets = Targets::new(x.shape(), target)?;
    match out.dtype() {
        DType::F64 => backward::<f64>(grad, x, &targets, weight, how, out),
        _ => backward::<f32>(grad, x, &targets, weight, how, out),
    }
    Ok(())
}

fn backward<T: Float>(
    grad: View<'_>,
    x: View<'_>,
    targets: &Targets<'_>,
    weight: Option<View<'_>>,
    how: ClassMargin,
    out: ViewMut<'_>,
) {
    let samples = x.shape()[0];
    let (grad, x, weight) = (load::<T>(grad), load::<T>(x), weight.map(load::<T>));
    let among = targets.classes * if how.reduction == Reduction::Mean { samples } else { 1 };
    let (margin, share) = (T::narrow(how.margin), T::ONE / T::narrow(among as f64));
    store::<T>(out, |out| {
        for n in 0..samples {
            let (right, scores) = targets.sample(n, &x);
            let grad = grad[if how.reduction == Reduction::None { n } else { 0 }] * share;
            let slopes = &mut out[n * targets.classes..][..targets.classes];
            let mut sum = T::ZERO;
            for (class, &score) in scores.iter().enumerate() {
                let lack = margin - scores[right] + score;
                let slope = if class == right || lack <= T::ZERO {
                    T::ZERO
                } else {
                    let slope = if how.squared { (lack + lack) * grad } else { grad };
                    weight.as_ref().map_or(slope, |weight| slope * weight[right])
                };
                slopes[class] = slope;
                sum = sum + slope;
            }
            slopes[right] = T::ZERO - sum;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    #[test]
    fn the_right_class_should_lie_a_margin_above_the_others() {
        let (x, target) = (Array::new(&[1, 4], &[0.1f64, 0.2, 0.4, 0.8]), Array::new(&[1], &[3i64]));
        let how = ClassMargin { margin: 1.0, squared: false, reduction: Reduction::Mean };
        let (mut loss, mut grad) = (Array::<f64>::zeros(&[]), Array::<f64>::zeros(&[1, 4]));
        multi_margin(x.view(), target.view(), None, how, loss.view_mut()).unwrap();
        assert!((loss.elements[0] - 0.325).abs() < 1e-12);
        let one = Array::new(&[], &[1.0f64]);
        multi_margin_backward(one.view(), x.view(), target.view(), None, how, grad.view_mut()).unwrap();
        assert_eq!(grad.elements, [0.25, 0.25, 0.25, -0.75]);
    }

    #[test]
    fn a_class_that_is_none_is_named() {
        let (x, target) = (Array::<f32>::zeros(&[1, 2]), Array::new(&[1], &[-1i64]));
        let how = ClassMargin { margin: 1.0, squared: true, reduction: Reduction::Sum };
        let mut loss = Array::<f32>::zeros(&[]);
        let error = multi_margin(x.view(), target.view(), None, how, loss.view_mut());
        assert_eq!(error, Err(OutOfRange { index: -1, size: 2 }));
    }
}
