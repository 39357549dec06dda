//! How far the right classes of a sample, several at a time, lie above the wrong ones.

use super::Reduction;
use crate::computing::{load, store};
use crate::elementwise::pack;
use crate::scratch::Elements;
use crate::{DType, Float, OutOfRange, View, ViewMut};

/// Scores `[samples, classes]`, and per sample its classes in front of the first -1.
struct Labels<'a> {
    target: Elements<'a, i64>,
    classes: usize,
}

impl<'a> Labels<'a> {
    fn new(shape: &[usize], target: View<'a>) -> Result<Labels<'a>, OutOfRange> {
        let &[_, classes] = shape else { panic!("multilabel_margin: {shape:?} is not [samples, classes]") };
        assert_eq!(target.shape(), shape, "multilabel_margin: a class or -1 for each score");
        let target = pack::<i64>(target);
        match target.iter().find(|class| !(-1..classes as i64).contains(*class)) {
            Some(&index) => Err(OutOfRange { index, size: classes }),
            None => Ok(Labels { target, classes }),
        }
    }

    /// The right classes of sample `n`.
    fn right(&self, n: usize) -> impl Iterator<Item = usize> {
        let listed = self.target[n * self.classes..][..self.classes].iter();
        listed.take_while(|&&class| class >= 0).map(|&class| class as usize)
    }

    /// Calls `f` with a right and a wrong class of sample `n`, for all pairs of them.
    fn pairs(&self, n: usize, mut f: impl FnMut(usize, usize)) {
        let mut is_right = vec![false; self.classes];
        self.right(n).for_each(|class| is_right[class] = true);
        for class in self.right(n) {
            (0..self.classes).filter(|&wrong| !is_right[wrong]).for_each(|wrong| f(class, wrong));
        }
    }
}

/// The first output gets, per sample, the mean over classes of what right ones lack to lie 1 above wrong ones;
/// or the mean or sum of that over all samples. The second gets 1 for right classes and 0 for wrong ones.
pub fn multilabel_margin(
    x: View<'_>,
    target: View<'_>,
    reduction: Reduction,
    (out, right): (ViewMut<'_>, ViewMut<'_>),
) -> Result<(), OutOfRange> {
    let labels = Labels::new(x.shape(), target)?;
    if out.dtype() == DType::F64 {
        forward::<f64>(x, &labels, reduction, (out, right))
    } else {
        forward::<f32>(x, &labels, reduction, (out, right))
    }
    Ok(())
}

fn forward<T: Float>(
    x: View<'_>,
    labels: &Labels<'_>,
    reduction: Reduction,
    (out, right): (ViewMut<'_>, ViewMut<'_>),
) {
    let samples = x.shape()[0];
    let x = load::<T>(x);
    let loss = |n: usize| {
        let (scores, mut sum) = (&x[n * labels.classes..], T::ZERO);
        labels.pairs(n, |right, wrong| {
            let lack = T::ONE - scores[right] + scores[wrong];
            sum = if lack > T::ZERO { sum + lack } else { sum };
        });
        sum / T::narrow(labels.classes as f64)
    };
    store::<T>(out, |out| match reduction {
        Reduction::None => (0..samples).for_each(|n| out[n] = loss(n)),
        Reduction::Sum => out[0] = (0..samples).fold(T::ZERO, |sum, n| sum + loss(n)),
        Reduction::Mean => {
            out[0] = (0..samples).fold(T::ZERO, |sum, n| sum + loss(n)) / T::narrow(samples as f64);
        }
    });
    store::<T>(right, |right| {
        right.fill(T::ZERO);
        for n in 0..samples {
            labels.right(n).for_each(|class| right[n * labels.classes + class] = T::ONE);
        }
    });
}

/// The gradient of [`multilabel_margin`] for the scores, whose shape `out` has.
pub fn multilabel_margin_backward(
    grad: View<'_>,
    x: View<'_>,
    target: View<'_>,
    reduction: Reduction,
    out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let labels = Labels::new(x.shape(), target)?;
    if out.dtype() == DType::F64 {
        backward::<f64>(grad, x, &labels, reduction, out);
    } else {
        backward::<f32>(grad, x, &labels, reduction, out);
    }
    Ok(())
}

fn backward<T: Float>(
    grad: View<'_>,
    x: View<'_>,
    labels: &Labels<'_>,
    reduction: Reduction,
    out: ViewMut<'_>,
) {
    let samples = x.shape()[0];
    let (grad, x) = (load::<T>(grad), load::<T>(x));
    let among = labels.classes * if reduction == Reduction::Mean { samples } else { 1 };
    store::<T>(out, |out| {
        out.fill(T::ZERO);
        for n in 0..samples {
            let grad = grad[if reduction == Reduction::None { n } else { 0 }] / T::narrow(among as f64);
            let start = n * labels.classes;
            labels.pairs(n, |right, wrong| {
                let (right, wrong) = (start + right, start + wrong);
                if T::ONE - x[right] + x[wrong] > T::ZERO {
                    out[right] = out[right] - grad;
                    out[wrong] = out[wrong] + grad;
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    #[test]
    fn right_classes_should_lie_one_above_wrong_ones() {
        let x = Array::new(&[1, 4], &[0.1f64, 0.2, 0.4, 0.8]);
        let target = Array::new(&[1, 4], &[3i64, 0, -1, 1]);
        let (mut loss, mut grad) = (Array::<f64>::zeros(&[]), Array::<f64>::zeros(&[1, 4]));
        let mut right = Array::<f64>::zeros(&[1, 4]);
        let outs = (loss.view_mut(), right.view_mut());
        multilabel_margin(x.view(), target.view(), Reduction::Mean, outs).unwrap();
        assert!((loss.elements[0] - 0.85).abs() < 1e-12);
        assert_eq!(right.elements, [1.0, 0.0, 0.0, 1.0]);
        let one = Array::new(&[], &[1.0f64]);
        multilabel_margin_backward(one.view(), x.view(), target.view(), Reduction::Mean, grad.view_mut())
            .unwrap();
        assert_eq!(grad.elements, [-0.5, 0.5, 0.5, -0.5]);
    }

    #[test]
    fn a_class_that_is_none_is_named() {
        let (x, target) = (Array::<f32>::zeros(&[1, 2]), Array::new(&[1, 2], &[2i64, -1]));
        let (mut loss, mut right) = (Array::<f32>::zeros(&[]), Array::<f32>::zeros(&[1, 2]));
        let outs = (loss.view_mut(), right.view_mut());
        let error = multilabel_margin(x.view(), target.view(), Reduction::Sum, outs);
        assert_eq!(error, Err(OutOfRange { index: 2, size: 2 }));
    }
}
