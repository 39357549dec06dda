//! Negative log likelihood of classes, with its gradient.

use super::Reduction;
use crate::elementwise::{Single, fill, floats, pack, to_vec};
use crate::scratch::Elements;
use crate::{DType, Dims, Float, OutOfRange, Scalar, View, ViewMut};

/// `out = -weight[t] * input[i, t]` for the target `t` of each sample `i`, reduced.
///
/// `input` is `[samples, classes, ..]` or the `[classes]` of one sample, `target` has its shape without classes
/// and is of i64; samples whose target is `ignore_index` count for nothing. `total_weight` gets the sum of the
/// weights. `out` has one element per target, or just one.
pub fn nll_loss(
    input: View<'_>,
    target: View<'_>,
    weight: Option<View<'_>>,
    reduction: Reduction,
    ignore_index: i64,
    out: ViewMut<'_>,
    total_weight: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let samples = Samples::new(input.shape(), target, weight, ignore_index)?;
    floats!(input.dtype(), T => forward::<T>(input, &samples, reduction, out, total_weight), single => {
        let (mut wide, mut total) = (Single::zeros(out.shape()), Single::zeros(total_weight.shape()));
        let input = Single::load(input);
        forward::<f32>(input.view(), &samples, reduction, wide.view_mut(), total.view_mut());
        wide.store(out);
        total.store(total_weight);
    });
    Ok(())
}

/// The gradient of [`nll_loss`] for its input, whose shape `out` has.
pub fn nll_loss_backward(
    grad: View<'_>,
    target: View<'_>,
    weight: Option<View<'_>>,
    reduction: Reduction,
    ignore_index: i64,
    total_weight: View<'_>,
    mut out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let samples = Samples::new(out.shape(), target, weight, ignore_index)?;
    fill(Scalar::Float(0.0), out.reborrow());
    let grad = to_vec::<f64>(grad);
    let total = to_vec::<f64>(total_weight);
    floats!(out.dtype(), T => backward::<T>(&grad, &samples, reduction, total[0], out), single => {
        let mut wide = Single::zeros(out.shape());
        backward::<f32>(&grad, &samples, reduction, total[0], wide.view_mut());
        wide.store(out);
    });
    Ok(())
}

/// Which class each sample is of, and what it weighs.
struct Samples<'a> {
    target: Elements<'a, i64>,
    weight: Option<Vec<f64>>,
    ignore_index: i64,
}

impl<'a> Samples<'a> {
    fn new(
        input: &[usize],
        target: View<'a>,
        weight: Option<View<'_>>,
        ignore_index: i64,
    ) -> Result<Samples<'a>, OutOfRange> {
        let class_dim = usize::from(input.len() > 1);
        let size = *input.get(class_dim).unwrap_or_else(|| panic!("nll_loss: {input:?} has no classes"));
        let others = input.iter().enumerate().filter(|&(dim, _)| dim != class_dim).map(|(_, size)| size);
        assert!(others.eq(target.shape()), "nll_loss: one target per sample");
        assert!(weight.is_none_or(|weight| weight.shape() == [size]), "nll_loss: one weight per class");
        let target = pack::<i64>(target);
        let outside = |&&t: &&i64| t != ignore_index && !usize::try_from(t).is_ok_and(|t| t < size);
        if let Some(&index) = target.iter().find(outside) {
            return Err(OutOfRange { index, size });
        }
        Ok(Samples { target, weight: weight.map(|weight| to_vec(weight)), ignore_index })
    }

    /// Sample, class and weight of each sample that counts.
    fn counted(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let counted = self.target.iter().enumerate().filter(|&(_, &t)| t != self.ignore_index);
        counted.map(|(i, &t)| (i, t as usize, self.weight.as_ref().map_or(1.0, |weight| weight[t as usize])))
    }
}

/// Where the score of a class of the sample with this number lies.
fn place(input: &[usize], sample: usize, class: usize) -> Dims {
    let (class_dim, mut rest) = (usize::from(input.len() > 1), sample);
    let mut place = Dims::from_elem(class, input.len());
    for dim in (0..input.len()).rev().filter(|&dim| dim != class_dim) {
        place[dim] = rest % input[dim];
        rest /= input[dim];
    }
    place
}

fn forward<T: Float>(
    input: View<'_>,
    samples: &Samples<'_>,
    reduction: Reduction,
    mut out: ViewMut<'_>,
    total_weight: ViewMut<'_>,
) {
    let (shape, input) = (input.shape(), input.array::<T>());
    let score = |i, t| if shape.len() == 2 { input[[i, t]] } else { input[&place(shape, i, t)[..]] };
    let losses = samples.counted().map(|(i, t, weight)| (i, -weight * score(i, t).wide(), weight));
    if reduction == Reduction::None {
        assert_eq!(out.layout().len(), samples.target.len(), "nll_loss: one loss per sample");
        let mut each = vec![T::ZERO; samples.target.len()];
        losses.for_each(|(i, loss, _)| each[i] = T::narrow(loss));
        out.array::<T>().iter_mut().zip(each).for_each(|(out, loss)| *out = loss);
        return fill(Scalar::Float(0.0), total_weight);
    }
    assert_eq!(out.layout().len(), 1, "nll_loss: one loss in all");
    // Double precision, for sums over many samples.
    let (loss, total) =
        losses.fold((0.0, 0.0), |(sum, total), (_, loss, weight)| (sum + loss, total + weight));
    let loss = if reduction == Reduction::Mean { loss / total } else { loss };
    fill(Scalar::Float(loss), out);
    fill(Scalar::Float(total), total_weight);
}

fn backward<T: Float>(
    grad: &[f64],
    samples: &Samples<'_>,
    reduction: Reduction,
    total: f64,
    mut out: ViewMut<'_>,
) {
    let shape = Dims::from_slice(out.shape());
    let mut out = out.array::<T>();
    for (i, t, weight) in samples.counted() {
        let grad = match reduction {
            Reduction::None => grad[i],
            Reduction::Mean => grad[0] / total,
            Reduction::Sum => grad[0],
        };
        let slope = T::narrow(-weight * grad);
        if shape.len() == 2 {
            out[[i, t]] = slope;
        } else {
            out[&place(&shape, i, t)[..]] = slope;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::f16;
    use crate::testing::Array;

    const INPUT: [f32; 6] = [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0];

    fn loss(
        weight: Option<View<'_>>,
        target: [i64; 2],
        reduction: Reduction,
    ) -> Result<(Vec<f32>, f32), OutOfRange> {
        let (input, target) = (Array::new(&[2, 3], &INPUT), Array::new(&[2], &target));
        let shape: &[usize] = if reduction == Reduction::None { &[2] } else { &[] };
        let (mut out, mut total) = (Array::<f32>::zeros(shape), Array::<f32>::zeros(&[]));
        nll_loss(input.view(), target.view(), weight, reduction, -100, out.view_mut(), total.view_mut())?;
        Ok((out.elements, total.elements[0]))
    }

    #[test]
    fn the_loss_is_what_the_target_class_lacks() {
        assert_eq!(loss(None, [0, 2], Reduction::None), Ok((vec![1.0, 6.0], 0.0)));
        assert_eq!(loss(None, [0, 2], Reduction::Sum), Ok((vec![7.0], 2.0)));
        assert_eq!(loss(None, [0, 2], Reduction::Mean), Ok((vec![3.5], 2.0)));
    }

    #[test]
    fn weights_count_and_ignored_samples_do_not() {
        let weight = Array::new(&[3], &[3.0f32, 1.0, 1.0]);
        assert_eq!(loss(Some(weight.view()), [0, 2], Reduction::Mean), Ok((vec![9.0 / 4.0], 4.0)));
        assert_eq!(loss(None, [-100, 2], Reduction::Mean), Ok((vec![6.0], 1.0)));
        assert_eq!(loss(None, [-100, 2], Reduction::None), Ok((vec![0.0, 6.0], 0.0)));
    }

    #[test]
    fn a_target_beyond_the_classes_is_named() {
        let error = loss(None, [0, 3], Reduction::Mean).unwrap_err();
        assert_eq!(error.to_string(), "index 3 is out of range for size 3");
        assert_eq!(loss(None, [-1, 0], Reduction::Sum), Err(OutOfRange { index: -1, size: 3 }));
    }

    #[test]
    fn the_gradient_goes_to_the_target_classes() {
        let target = Array::new(&[2], &[0i64, 2]);
        let (one, total) = (Array::new(&[], &[1.0f32]), Array::new(&[], &[2.0f32]));
        let mut out = Array::new(&[2, 3], &INPUT);
        nll_loss_backward(
            one.view(),
            target.view(),
            None,
            Reduction::Mean,
            -100,
            total.view(),
            out.view_mut(),
        )
        .unwrap();
        assert_eq!(out.elements, [-0.5, 0.0, 0.0, 0.0, 0.0, -0.5]);
        let grad = Array::new(&[2], &[1.0f32, 4.0]);
        nll_loss_backward(grad.view(), target.view(), None, Reduction::None, 0, total.view(), out.view_mut())
            .unwrap();
        assert_eq!(out.elements, [0.0, 0.0, 0.0, 0.0, 0.0, -4.0]);
        let mut half = Array::<f16>::zeros(&[2, 3]);
        nll_loss_backward(
            one.view(),
            target.view(),
            None,
            Reduction::Sum,
            -100,
            total.view(),
            half.view_mut(),
        )
        .unwrap();
        assert_eq!(half.wide(), [-1.0, 0.0, 0.0, 0.0, 0.0, -1.0]);
    }
}
