//! Losses for classification.

use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::loss;

pub use cresset_kernels::loss::Reduction;

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

/// Reductions by number, as traces and devices write them.
pub fn reduction_number(reduction: Reduction) -> i64 {
    match reduction {
        Reduction::None => 0,
        Reduction::Mean => 1,
        Reduction::Sum => 2,
    }
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

impl Tensor {
    /// The negative log-likelihood of the `target` classes, given log-probabilities.
    pub fn nll_loss(&self, target: &Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
        let arguments = |visit: &mut dyn FnMut(Argument<'_>)| {
            visit(Argument::Int(reduction_number(reduction)));
            visit(Argument::Int(IGNORED));
        };
        let _span = composite("aten::nll_loss_nd", ([self, target], weight), arguments);
        let _span = composite("aten::nll_loss", ([self, target], weight), arguments);
        let [loss, _] = NllLoss { reduction, ignore_index: IGNORED }.call(([self, target], weight))?;
        Ok(loss)
    }

    /// The mean cross-entropy between these scores, one row per sample, and the `target`
    /// classes.
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        const NAME: &str = "aten::cross_entropy_loss";
        let _span = composite(NAME, ([self, target], None), |visit| {
            visit(Argument::Int(reduction_number(Reduction::Mean)));
            visit(Argument::Int(IGNORED));
            visit(Argument::Float(0.0));
        });
        check_samples(NAME, self, target, None)?;
        self.log_softmax(1)?.nll_loss(target, None, Reduction::Mean)
    }
}
