//! Losses of probabilities, their logits and whole distributions.

use super::{Reduction, reduce, reduction_number, share};
use crate::autocast;
use crate::autograd::{self, Saves};
use crate::op::{InPlace as _, Inputs as _, kernel_table};
use crate::ops::{Mul, broadcast};
use crate::{
    Backward, Cause, Error, Forward, Grads, Kernel, Op, Result, Spec, Tensor, composite, cpu, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{elementwise, loss, with_dtype};

/// The cross-entropy of probabilities with what is true.
#[derive(Clone, Debug)]
pub struct BinaryCrossEntropy {
    /// What becomes of the losses of single elements.
    pub reduction: Reduction,
}

/// Probabilities and truths, and a weight per element.
type Judged<'a> = ([&'a Tensor; 2], Option<&'a Tensor>);

impl Op for BinaryCrossEntropy {
    const NAME: &'static str = "aten::binary_cross_entropy";
    const BACKWARD: &'static str = "BinaryCrossEntropyBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = Judged<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, target, weight) = (ctx.grad(), ctx.saved(0), ctx.saved(1), ctx.optional(2));
        let gradient = BinaryCrossEntropyBackward { reduction: self.reduction };
        grads!(ctx;
            gradient.call(([grad, x, target], weight))?,
            {
                let slope = x.logit(None)?;
                slope.neg_()?;
                slope.mul_(grad)?;
                shared_in_place(slope, weight, self.reduction)?
            },
        )
    }

    fn arguments(&self, inputs: Judged<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|given| visit(given.into_argument()));
        visit(Argument::Int(reduction_number(self.reduction)));
    }
}

/// A gradient per element, weighted, and divided by how many there are if the loss is their mean.
fn shared(gradient: &Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
    let weighted = weight.map_or_else(|| Ok(gradient.clone()), |weight| gradient.mul(weight))?;
    match reduction {
        Reduction::Mean => weighted.div(weighted.numel() as i64),
        Reduction::None | Reduction::Sum => Ok(weighted),
    }
}

/// As [`shared`], of a gradient that nobody else has, and whose mean is a new tensor.
fn averaged(gradient: Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
    if let Some(weight) = weight {
        gradient.mul_(weight)?;
    }
    shared(&gradient, None, reduction)
}

/// As [`shared`], of a gradient that nobody else has.
fn shared_in_place(gradient: Tensor, weight: Option<&Tensor>, reduction: Reduction) -> Result<Tensor> {
    if let Some(weight) = weight {
        gradient.mul_(weight)?;
    }
    if reduction == Reduction::Mean {
        gradient.div_(gradient.numel() as i64)?;
    }
    Ok(gradient)
}

fn check_judged(op: &'static str, x: &Tensor, target: &Tensor, weights: &[Option<&Tensor>]) -> Result<()> {
    if x.shape() != target.shape() {
        let text = format_args!(
            "expects a truth for each prediction, not shapes {:?} and {:?}",
            x.shape(),
            target.shape()
        );
        return Err(Error::new(Cause::Shape, op, text));
    }
    for weight in weights.iter().flatten() {
        if broadcast(op, weight.shape(), x.shape())?[..] != *x.shape() {
            let text =
                format_args!("a weight of shape {:?} for predictions of {:?}", weight.shape(), x.shape());
            return Err(Error::new(Cause::Shape, op, text));
        }
    }
    Ok(())
}

fn infer(op: &'static str, x: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<Spec> {
    check_judged(op, x, target, &[weight])?;
    let others = [Some(target), weight];
    if !x.dtype().is_float() || others.iter().flatten().any(|other| other.dtype() != x.dtype()) {
        let text = format_args!(
            "expects floats of one type, not {}, {} and a weight of {:?}",
            x.dtype(),
            target.dtype(),
            weight.map(Tensor::dtype)
        );
        return Err(Error::new(Cause::DType, op, text));
    }
    Ok(Spec::like(x))
}

/// What keeps certainty from dividing by zero.
const LEAST: f64 = 1e-12;

/// Refuses what is no probability.
fn check_probabilities(op: &'static str, x: &Tensor) -> Result<()> {
    let reading = x.read();
    let outside = with_dtype!(x.dtype(), [floats] T => {
        let elements = x.elements(&reading).array::<T>();
        elements.iter().map(|x| cresset_kernels::Float::wide(*x)).find(|x| !(0.0..=1.0).contains(x))
    }, else None);
    match outside {
        None => Ok(()),
        Some(value) => {
            let text = format_args!("expects probabilities from 0 to 1, not {value}");
            Err(Error::new(Cause::Argument, op, text))
        }
    }
}

impl Kernel for BinaryCrossEntropy {
    kernel_table!(BinaryCrossEntropy);

    fn infer(&self, ([x, target], weight): Judged<'_>) -> Result<Spec> {
        let spec = infer(Self::NAME, x, target, weight)?;
        Ok(if self.reduction == Reduction::None { spec } else { Spec::new([], spec.dtype) })
    }

    fn cpu(&self, ([x, target], weight): Judged<'_>, out: &Tensor) -> Result<()> {
        reduce(self.reduction, x.shape(), out, |losses| {
            cross_entropies(x, target, losses)?;
            weight.map_or(Ok(()), |weight| Mul.cpu_in_place((losses, weight.into())))
        })
    }

    /// Torch puts the reduced loss where the losses lay.
    fn shown(&self, ([x, target], weight): Judged<'_>) -> Result<Option<Tensor>> {
        infer(Self::NAME, x, target, weight)?;
        let losses = x.empty_like()?;
        for tensor in [&losses, x, target] {
            tensor.squeeze()?;
        }
        cross_entropies(x, target, &losses)?;
        if let Some(weight) = weight {
            losses.mul_(weight)?;
        }
        if self.reduction == Reduction::None {
            return Ok(Some(losses));
        }
        let reduced = losses.reduced(self.reduction)?;
        shown::within("aten::resize_as_", [&losses, &reduced], &[Argument::None], || {
            shown::resized(&losses, &[], Argument::None).map(|()| losses.clone())
        })?;
        let out = shown::as_number(&losses);
        out.copy_(&reduced)?;
        Ok(Some(out))
    }
}

fn cross_entropies(x: &Tensor, target: &Tensor, losses: &Tensor) -> Result<()> {
    check_probabilities(BinaryCrossEntropy::NAME, x)?;
    cpu::map2(x.into(), target.into(), losses.dtype(), losses, |x, target, out| {
        elementwise::float_binary(loss::BinaryCrossEntropy, x, target, out);
    })
}

/// The gradient of [`BinaryCrossEntropy`] for the probabilities.
#[derive(Clone, Debug)]
pub struct BinaryCrossEntropyBackward {
    /// As in [`BinaryCrossEntropy`].
    pub reduction: Reduction,
}

impl Op for BinaryCrossEntropyBackward {
    const NAME: &'static str = "aten::binary_cross_entropy_backward";
    const BACKWARD: &'static str = "BinaryCrossEntropyBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    /// The gradient of the loss, probabilities and truths, and a weight per element.
    type Inputs<'a> = ([&'a Tensor; 3], Option<&'a Tensor>);
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, target, weight) = (ctx.saved(0), ctx.saved(1), ctx.saved(2), ctx.optional(3));
        let again = ctx.grad();
        // As in torch, certainty is kept from dividing by zero here too.
        let beyond = |x: &Tensor| x.add(LEAST);
        grads!(ctx;
            {
                let doubt = beyond(&shown::less(1, x)?)?;
                let spread = beyond(x)?.mul(&doubt)?;
                let slope = x.sub(target)?.div(&spread)?;
                slope.mul_(again)?;
                averaged(slope, weight, self.reduction)?
            },
            {
                let (belief, doubt) = (beyond(x)?, beyond(&shown::less(1, x)?)?);
                let squares = [doubt.pow(2)?, belief.pow(2)?];
                let spread = squares[1].mul(&squares[0])?;
                // x^2 - 2 x target + target
                let twice = x.mul(2)?.mul(target)?;
                let bend = x.mul(x)?.sub(&twice)?.add(target)?.div(&spread)?;
                bend.mul_(&again.mul(grad)?)?;
                averaged(bend, weight, self.reduction)?
            },
            {
                let slope = again.neg()?.mul(grad)?;
                if let Some(weight) = weight {
                    slope.mul_(weight)?;
                }
                let spread = shown::less(1, x)?;
                spread.mul_(x)?;
                spread.clamp_min_(LEAST)?;
                slope.div_(&spread)?;
                shared_in_place(slope, None, self.reduction)?
            },
        )
    }

    fn arguments(&self, inputs: Self::Inputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|given| visit(given.into_argument()));
        visit(Argument::Int(reduction_number(self.reduction)));
    }
}

impl Kernel for BinaryCrossEntropyBackward {
    kernel_table!(BinaryCrossEntropyBackward);

    fn infer(&self, ([grad, x, target], weight): Self::Inputs<'_>) -> Result<Spec> {
        let spec = infer(Self::NAME, x, target, weight)?;
        if broadcast(Self::NAME, grad.shape(), &spec.shape)? != spec.shape {
            let text = format_args!("gradient of shape {:?} for losses of {:?}", grad.shape(), x.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(spec)
    }

    fn shown(&self, inputs: Self::Inputs<'_>) -> Result<Option<Tensor>> {
        self.infer(inputs)?;
        let ([grad, x, target], weight) = inputs;
        let out = x.empty_like()?;
        for tensor in [&out, grad, x, target] {
            tensor.squeeze()?;
        }
        self.fill(inputs, &out, out.device())?;
        if let Some(weight) = weight {
            shown::within("aten::mul_", [&out, weight], &[], || Ok(out.clone()))?;
        }
        if self.reduction == Reduction::Mean {
            shown::divide(&out, x.numel())?;
        }
        Ok(Some(out))
    }

    fn cpu(&self, ([grad, x, target], weight): Self::Inputs<'_>, out: &Tensor) -> Result<()> {
        let f = loss::BinaryCrossEntropyBackward { share: share(self.reduction, out.numel()) };
        let operands = [grad.into(), x.into(), target.into()];
        cpu::map_all(operands, out.dtype(), out, |[grad, x, target], out| {
            elementwise::float_ternary(f, grad, x, target, out);
        })?;
        weight.map_or(Ok(()), |weight| Mul.cpu_in_place((out, weight.into())))
    }
}

/// The cross-entropy of logits with what is true.
#[derive(Clone, Debug)]
pub struct BinaryCrossEntropyWithLogits {
    /// What becomes of the losses of single elements.
    pub reduction: Reduction,
}

impl Op for BinaryCrossEntropyWithLogits {
    const NAME: &'static str = "aten::binary_cross_entropy_with_logits";
    const BACKWARD: &'static str = "BinaryCrossEntropyWithLogitsBackward0";
    const SAVES: Saves = Saves::Inputs;
    /// Logits, truths, a weight per element, and what truth weighs against falsehood.
    type Inputs<'a> = [Option<&'a Tensor>; 4];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, target, weight) = (ctx.grad(), ctx.saved(0), ctx.saved(1), ctx.optional(2));
        grads!(ctx;
            // A pass that is recorded needs each step again.
            if autograd::is_grad_enabled() {
                let slope = match ctx.optional(3) {
                    Some(positive) => {
                        let truth = positive.mul(target)?;
                        let rest = truth.add(1)?.sub(target)?;
                        rest.mul(&x.sigmoid()?)?.sub(&truth)?
                    }
                    None => x.sigmoid()?.sub(target)?,
                };
                let slope = slope.mul(grad)?;
                let weighted = weight.map_or_else(|| Ok(slope.clone()), |weight| slope.mul(weight))?;
                drop(slope);
                shared_in_place(weighted, None, self.reduction)?
            } else {
                let slope = self.slope(x, target, ctx.optional(3))?;
                slope.mul_(grad)?;
                shared_in_place(slope, weight, self.reduction)?
            },
            {
                let slope = match ctx.optional(3) {
                    Some(positive) => {
                        let slope = x.neg()?.logsigmoid()?;
                        let other = x.logsigmoid()?;
                        other.mul_(positive)?;
                        slope.sub_(&other)?;
                        slope.mul_(grad)?;
                        slope
                    }
                    None => x.neg()?.mul(grad)?,
                };
                shared_in_place(slope, weight, self.reduction)?
            },
        )
    }

    fn arguments(&self, inputs: Self::Inputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|given| visit(given.into_argument()));
        visit(Argument::Int(reduction_number(self.reduction)));
    }
}

impl BinaryCrossEntropyWithLogits {
    /// How the loss of each element changes with its logit, in memory of its own.
    fn slope(&self, x: &Tensor, target: &Tensor, positive: Option<&Tensor>) -> Result<Tensor> {
        let Some(positive) = positive else {
            let probability = x.sigmoid()?;
            probability.sub_(target)?;
            return Ok(probability);
        };
        let truth = positive.mul(target)?;
        let slope = truth.add(1)?;
        slope.sub_(target)?;
        slope.mul_(&x.sigmoid()?)?;
        slope.sub_(&truth)?;
        Ok(slope)
    }
}

impl Forward for BinaryCrossEntropyWithLogits {
    fn forward(&self, [x, target, weight, positive]: Self::Inputs<'_>) -> Result<Tensor> {
        let (Some(x), Some(target)) = (x, target) else {
            return Err(Error::new(Cause::Argument, Self::NAME, "expects logits and truths"));
        };
        check_judged(Self::NAME, x, target, &[weight, positive])?;
        if !x.dtype().is_float() {
            return Err(Error::new(
                Cause::DType,
                Self::NAME,
                format_args!("expects floats, not {}", x.dtype()),
            ));
        }
        let logarithm = x.logsigmoid()?;
        if let Some(positive) = positive {
            let stress = positive.sub(1)?.mul(target)?;
            stress.add_(1)?;
            logarithm.mul_(&stress)?;
        }
        let losses = shown::less(1, target)?;
        losses.mul_(x)?;
        losses.sub_(&logarithm)?;
        if let Some(weight) = weight {
            losses.mul_(weight)?;
        }
        losses.reduced(self.reduction)
    }
}

impl Tensor {
    /// The cross-entropy of these probabilities with the `target`, each weighted if weights are given.
    pub fn binary_cross_entropy(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        let weight = weight.map(|weight| {
            weight.expand(broadcast(BinaryCrossEntropy::NAME, target.shape(), weight.shape())?)
        });
        let weight = weight.transpose()?;
        BinaryCrossEntropy { reduction }.call(([self, target], weight.as_ref()))
    }

    /// The cross-entropy of the sigmoid of these logits with the `target`. Losses are weighted if
    /// weights are given; `positive` says what truth weighs against falsehood.
    pub fn binary_cross_entropy_with_logits(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        positive: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        BinaryCrossEntropyWithLogits { reduction }.call([Some(self), Some(target), weight, positive])
    }

    /// What these log-probabilities lack of the distribution `target`, or of that with the logarithm
    /// `target`; both broadcast.
    pub fn kl_div(&self, target: &Tensor, log_target: bool, reduction: Reduction) -> Result<Tensor> {
        let _span = composite("aten::kl_div", [self, target], |visit| {
            visit(Argument::Int(reduction_number(reduction)));
            visit(Argument::Bool(log_target));
        });
        if let Some(cast) =
            autocast::casting("aten::kl_div", [self, target], |[x, y]| x.kl_div(y, log_target, reduction))
        {
            return cast;
        }
        let losses = if log_target {
            let apart = target.sub(self)?;
            target.exp()?.mul(&apart)?
        } else {
            let product = target.mul(self)?;
            target.xlogy(target)?.sub(&product)?
        };
        losses.reduced(reduction)
    }

    /// As [`kl_div`](Tensor::kl_div), summed over each distribution and averaged over the first
    /// dimension: the divergence by its mathematical definition.
    pub fn kl_div_per_sample(&self, target: &Tensor, log_target: bool) -> Result<Tensor> {
        let total = self.kl_div(target, log_target, Reduction::Sum)?;
        match self.shape() {
            [] => Ok(total),
            [samples, ..] => total.div(*samples as i64),
        }
    }
}
