//! Negative log-likelihood and cross-entropy of classes.

use super::{Reduction, reduction_number};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, loss};

/// The class number that does not count, unless said otherwise.
const IGNORED: i64 = -100;

/// The negative log-likelihood of the right class, and the total weight of the samples.
#[derive(Clone, Debug)]
pub struct NllLoss {
    /// What becomes of the losses of single samples.
    pub reduction: Reduction,
    /// Samples of this class do not count.
    pub ignore_index: i64,
}

/// Log-probabilities and classes, and a weight per class.
type Samples<'a> = ([&'a Tensor; 2], Option<&'a Tensor>);

impl Op for NllLoss {
    const NAME: &'static str = "aten::nll_loss_forward";
    const BACKWARD: &'static str = "NllLossBackward0";
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Samples<'a>;
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, target, weight, total) = (ctx.saved(0), ctx.saved(1), ctx.optional(2), ctx.saved(4));
        let gradient = NllLossBackward { reduction: self.reduction, ignore_index: self.ignore_index };
        grads!(ctx; gradient.call(([ctx.grad(), x, target, total], weight))?)
    }

    fn arguments(&self, inputs: Samples<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        sample_arguments(inputs, self.reduction, self.ignore_index, visit);
    }
}

fn sample_arguments(
    ([x, target], weight): Samples<'_>,
    reduction: Reduction,
    ignore: i64,
    visit: &mut dyn FnMut(Argument<'_>),
) {
    visit(Argument::Tensor(x.argument()));
    visit(Argument::Tensor(target.argument()));
    visit(weight.map_or(Argument::None, |weight| Argument::Tensor(weight.argument())));
    visit(Argument::Int(reduction_number(reduction)));
    visit(Argument::Int(ignore));
}

fn check_samples(
    op: &'static str,
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
) -> Result<(usize, usize)> {
    let (&[samples, classes], &[targets]) = (x.shape(), target.shape()) else {
        let text = format_args!(
            "expects shapes [samples, classes] and [samples], not {:?} and {:?}",
            x.shape(),
            target.shape()
        );
        return Err(Error::new(Cause::Shape, op, text));
    };
    if samples != targets {
        let text = format_args!("{samples} samples of shape {:?} but {targets} targets", x.shape());
        return Err(Error::new(Cause::Shape, op, text));
    }
    if !x.dtype().is_float() || target.dtype() != DType::I64 {
        let text =
            format_args!("expects floats and targets of i64, not {} and {}", x.dtype(), target.dtype());
        return Err(Error::new(Cause::DType, op, text));
    }
    match weight {
        Some(weight) if weight.shape() != [classes] || weight.dtype() != x.dtype() => {
            let text = format_args!(
                "expects a weight of {} and shape [{classes}], not {} and {:?}",
                x.dtype(),
                weight.dtype(),
                weight.shape()
            );
            Err(Error::new(Cause::Shape, op, text))
        }
        _ => Ok((samples, classes)),
    }
}

fn out_of_range(op: &'static str, error: cresset_kernels::OutOfRange) -> Error {
    Error::new(Cause::Index, op, format_args!("target {error}"))
}

impl Kernel for NllLoss {
    kernel_table!(NllLoss);

    fn infer(&self, ([x, target], weight): Samples<'_>) -> Result<[Spec; 2]> {
        let (samples, _) = check_samples(Self::NAME, x, target, weight)?;
        let shape: &[usize] = if matches!(self.reduction, Reduction::None) { &[samples] } else { &[] };
        Ok([Spec::new(shape, x.dtype()), Spec::new([], x.dtype())])
    }

    fn cpu(&self, ([x, target], weight): Samples<'_>, [out, total]: &[Tensor; 2]) -> Result<()> {
        let (reading, targets, weights) = (x.read(), target.read(), weight.map(Tensor::read));
        let weights = weight.zip(weights.as_ref()).map(|(weight, reading)| weight.elements(reading));
        let (mut writing, mut totalling) = (out.write(), total.write());
        loss::nll_loss(
            x.elements(&reading),
            target.elements(&targets),
            weights,
            self.reduction,
            self.ignore_index,
            out.elements_mut(&mut writing),
            total.elements_mut(&mut totalling),
        )
        .map_err(|error| out_of_range(Self::NAME, error))
    }
}

/// The gradient of [`NllLoss`].
#[derive(Clone, Debug)]
pub struct NllLossBackward {
    /// As in [`NllLoss`].
    pub reduction: Reduction,
    /// As in [`NllLoss`].
    pub ignore_index: i64,
}

impl Op for NllLossBackward {
    const NAME: &'static str = "aten::nll_loss_backward";
    const BACKWARD: &'static str = "NllLossBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    /// The gradient, log-probabilities, classes and total weight, and a weight per class.
    type Inputs<'a> = ([&'a Tensor; 4], Option<&'a Tensor>);
    type Output = Tensor;

    /// The gradient is linear in `grad`: what comes back is the same weighted sum again.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (target, weight) = (ctx.saved(2), ctx.optional(4));
        let loss = NllLoss { reduction: self.reduction, ignore_index: self.ignore_index };
        grads!(ctx; { let [sum, _] = loss.call(([ctx.grad(), target], weight))?; sum }, ctx.grad().zeros_like()?)
    }

    fn arguments(
        &self,
        ([grad, x, target, total], weight): Self::Inputs<'_>,
        visit: &mut dyn FnMut(Argument<'_>),
    ) {
        visit(Argument::Tensor(grad.argument()));
        sample_arguments(([x, target], weight), self.reduction, self.ignore_index, visit);
        visit(Argument::Tensor(total.argument()));
    }
}

impl Kernel for NllLossBackward {
    kernel_table!(NllLossBackward);

    fn infer(&self, ([grad, x, target, total], weight): Self::Inputs<'_>) -> Result<Spec> {
        let (samples, _) = check_samples(Self::NAME, x, target, weight)?;
        let expected = if matches!(self.reduction, Reduction::None) { samples } else { 1 };
        if grad.numel() != expected || total.numel() != 1 || grad.dtype() != x.dtype() {
            let text = format_args!(
                "gradient of shape {:?} and {} for {samples} samples",
                grad.shape(),
                grad.dtype()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(x))
    }

    fn cpu(&self, ([grad, _, target, total], weight): Self::Inputs<'_>, out: &Tensor) -> Result<()> {
        let (gradients, targets, totals) = (grad.read(), target.read(), total.read());
        let weights = weight.map(Tensor::read);
        let weights = weight.zip(weights.as_ref()).map(|(weight, reading)| weight.elements(reading));
        let mut writing = out.write();
        loss::nll_loss_backward(
            grad.elements(&gradients),
            target.elements(&targets),
            weights,
            self.reduction,
            self.ignore_index,
            total.elements(&totals),
            out.elements_mut(&mut writing),
        )
        .map_err(|error| out_of_range(Self::NAME, error))
    }
}

/// The options of losses over classes.
#[derive(Clone, Copy, Debug)]
pub struct ClassLoss<'a> {
    /// What each class weighs.
    pub weight: Option<&'a Tensor>,
    /// What becomes of the losses of single samples.
    pub reduction: Reduction,
    /// Samples of this class do not count.
    pub ignore_index: i64,
    /// The share of the target that is spread over all classes; for [`Tensor::cross_entropy_with`].
    pub label_smoothing: f64,
}

impl Default for ClassLoss<'_> {
    /// The mean over all samples, whose classes weigh the same.
    fn default() -> Self {
        ClassLoss { weight: None, reduction: Reduction::Mean, ignore_index: IGNORED, label_smoothing: 0.0 }
    }
}

impl ClassLoss<'_> {
    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Int(reduction_number(self.reduction)));
        visit(Argument::Int(self.ignore_index));
    }
}

/// The dimension of the classes: the only one of a single sample, else the second.
fn class_dim(x: &Tensor) -> usize {
    usize::from(x.dim() > 1)
}

/// Log-probabilities as a row per target, and the targets in a line.
fn rows(op: &'static str, x: &Tensor, target: &Tensor) -> Result<[Tensor; 2]> {
    let dim = class_dim(x);
    let others = x.shape().iter().enumerate().filter(|&(at, _)| at != dim).map(|(_, &size)| size);
    let Some(&classes) = x.shape().get(dim).filter(|_| others.eq(target.shape().iter().copied())) else {
        let text = format_args!(
            "expects scores of [classes] or [samples, classes, ..] and targets of the same shape without \
             classes, not {:?} and {:?}",
            x.shape(),
            target.shape()
        );
        return Err(Error::new(Cause::Shape, op, text));
    };
    let count = target.numel();
    let last = if x.dim() > 2 { x.movedim(&[1], &[-1])? } else { x.clone() };
    Ok([last.reshape([count, classes])?, target.reshape([count])?])
}

impl Tensor {
    /// The negative log-likelihood of the `target` classes, given log-probabilities.
    pub fn nll_loss(&self, target: &Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
        self.nll_loss_with(target, ClassLoss { weight, reduction, ..ClassLoss::default() })
    }

    /// As [`nll_loss`](Tensor::nll_loss), with all options. Classes are the second dimension, or
    /// the only one of a single sample.
    pub fn nll_loss_with(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        let [loss, _] = self.nll_loss_and_weight(target, how)?;
        Ok(loss)
    }

    /// The negative log-likelihood, and the total weight of the samples unless each is kept.
    fn nll_loss_and_weight(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<[Tensor; 2]> {
        const NAME: &str = "aten::nll_loss_nd";
        let (inputs, op) = (
            ([self, target], how.weight),
            NllLoss { reduction: how.reduction, ignore_index: how.ignore_index },
        );
        let _span = composite(NAME, inputs, |visit| how.arguments(visit));
        let inner = if self.dim() > 2 { "aten::nll_loss2d" } else { "aten::nll_loss" };
        let _span = composite(inner, inputs, |visit| how.arguments(visit));
        if self.dim() == 2 && target.dim() == 1 {
            return op.call(inputs);
        }
        let [x, line] = rows(NAME, self, target)?;
        let [loss, total] = op.call(([&x, &line], how.weight))?;
        let loss = if how.reduction == Reduction::None { loss.reshape(target.shape())? } else { loss };
        Ok([loss, total])
    }

    /// The mean cross-entropy between these scores, one row per sample, and the `target`
    /// classes.
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.cross_entropy_with(target, ClassLoss::default())
    }

    /// The cross-entropy between these scores and the `target`: classes, or if it has the shape of
    /// the scores, the probability of each class. Classes are the second dimension, or the only
    /// one of a single sample.
    pub fn cross_entropy_with(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        const NAME: &str = "aten::cross_entropy_loss";
        let smoothing = how.label_smoothing;
        let _span = composite(NAME, ([self, target], how.weight), |visit| {
            how.arguments(visit);
            visit(Argument::Float(smoothing));
        });
        if !(0.0..=1.0).contains(&smoothing) {
            let text = format_args!("expects a label smoothing from 0 to 1, not {smoothing}");
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        if self.dim() == 0 {
            return Err(Error::new(Cause::Shape, NAME, "expects scores of at least one dimension"));
        }
        let probabilities = self.shape() == target.shape();
        if !probabilities {
            rows(NAME, self, target)?;
        }
        let scores = self.log_softmax(class_dim(self) as isize)?;
        if probabilities {
            return scores.probability_loss(target, how);
        }
        let [loss, total] = scores.nll_loss_and_weight(target, how)?;
        if smoothing == 0.0 {
            return Ok(loss);
        }
        let classes = self.shape()[class_dim(self)] as f64;
        let smooth = scores.smooth_loss(target, &total, how)?;
        loss.mul(1.0 - smoothing)?.add(&smooth.mul(smoothing / classes)?)
    }

    /// The cross-entropy of log-probabilities with the probability of each class.
    fn probability_loss(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        const NAME: &str = "aten::cross_entropy_loss";
        if !target.dtype().is_float() || how.ignore_index >= 0 {
            let text = format_args!(
                "expects probabilities of floats and no class to ignore, not {} and class {}",
                target.dtype(),
                how.ignore_index
            );
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        let dim = class_dim(self);
        let classes = self.shape()[dim];
        let target = if how.label_smoothing > 0.0 {
            target.mul(1.0 - how.label_smoothing)?.add(how.label_smoothing / classes as f64)?
        } else {
            target.clone()
        };
        let product = self.weighted(how.weight)?.mul(&target)?;
        Ok(match how.reduction {
            Reduction::None => product.sum_dims(&[dim as isize], false)?.neg()?,
            Reduction::Sum => product.sum()?.neg()?,
            Reduction::Mean => product.sum()?.neg()?.div(self.numel() as f64 / classes as f64)?,
        })
    }

    /// The loss of log-probabilities for a target that is all classes alike.
    fn smooth_loss(&self, target: &Tensor, total: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        let losses = self.weighted(how.weight)?.sum_dims(&[class_dim(self) as isize], false)?.neg()?;
        let losses = losses.zero_where(&target.eq(how.ignore_index)?)?;
        match how.reduction {
            Reduction::None => Ok(losses),
            Reduction::Sum => losses.sum(),
            Reduction::Mean => losses.sum()?.div(total),
        }
    }

    /// This tensor times a weight per class.
    fn weighted(&self, weight: Option<&Tensor>) -> Result<Tensor> {
        let Some(weight) = weight else { return Ok(self.clone()) };
        let (dim, mut shape) = (class_dim(self), Dims::from_elem(1, self.dim()));
        shape[dim] = self.shape()[dim];
        if weight.shape() != [shape[dim]] {
            let text = format_args!("expects a weight of shape [{}], not {:?}", shape[dim], weight.shape());
            return Err(Error::new(Cause::Shape, "aten::cross_entropy_loss", text));
        }
        self.mul(&weight.reshape(shape)?)
    }
}
