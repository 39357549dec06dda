//! Margins without an edge: what is lacking counts less and less, but never nothing.

use super::{Reduction, reduction_number, share};
use crate::autograd::Saves;
use crate::op::Operand;
use crate::ops::{Mul, Neg, check_float};
use crate::{
    Backward, Cause, Device, Error, Forward, Grads, Kernel as _, Key, Op, Result, Tensor, composite, cpu,
    grads, shown,
};
use cresset_dispatch::KeySet;
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::functions::FloatTernary;
use cresset_kernels::{Float, elementwise};

/// `log(1 + e^(-x y))` for targets `y` of 1 and -1.
#[derive(Clone, Debug)]
pub struct SoftMarginLoss {
    /// What becomes of the losses of single elements.
    pub reduction: Reduction,
}

const BACKWARD: &str = "aten::soft_margin_loss_backward";

impl Op for SoftMarginLoss {
    const NAME: &'static str = "aten::soft_margin_loss";
    const BACKWARD: &'static str = "SoftMarginLossBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let inputs = [ctx.grad(), ctx.saved(0), ctx.saved(1)];
        grads!(ctx; {
            let _span = composite(BACKWARD, inputs, |visit| visit(self.argument()));
            let recorded = KeySet::AUTOGRAD.here().contains(Key::AUTOGRAD);
            match recorded || !are_alike(&inputs[1..]) {
                true => self.slope(inputs)?,
                false => self.slope_on_host(inputs)?,
            }
        })
    }

    fn arguments(&self, [x, target]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Tensor(target.argument()));
        visit(self.argument());
    }
}

/// Whether all are tensors of the host of one type and shape.
fn are_alike(tensors: &[&Tensor]) -> bool {
    let first = tensors[0];
    let alike = |x: &&Tensor| (x.dtype(), x.shape()) == (first.dtype(), first.shape()) && x.device().is_cpu();
    tensors.iter().all(alike)
}

impl Forward for SoftMarginLoss {
    fn forward(&self, [x, target]: [&Tensor; 2]) -> Result<Tensor> {
        check_float(Self::NAME, x)?;
        if observe::is_watched() && are_alike(&[x, target]) {
            return self.loss_shown([x, target]);
        }
        target.neg()?.mul(x)?.exp()?.log1p()?.reduced(self.reduction)
    }
}

impl SoftMarginLoss {
    fn argument(&self) -> Argument<'static> {
        Argument::Int(reduction_number(self.reduction))
    }

    /// Torch computes in the memory of the result, which becomes a number where it lies.
    fn loss_shown(&self, [x, target]: [&Tensor; 2]) -> Result<Tensor> {
        let empty = shown::empty_output(x.dtype())?;
        let out = Argument::Tensor(empty.argument());
        shown::within(Self::NAME, [x, target], &[self.argument(), out], || {
            let losses = shown::within(Neg::NAME, [target], &[out], || Neg.computed([target]))?;
            losses.mul_(x)?;
            losses.exp_()?;
            losses.log1p_()?;
            if self.reduction == Reduction::None {
                return Ok(losses);
            }
            let reduced = losses.reduced(self.reduction)?;
            shown::resized(&losses, &[], Argument::None)?;
            let number = shown::as_number(&losses);
            number.copy_(&reduced)?;
            Ok(number)
        })
    }

    /// `-y / (1 + e^(x y))`, times its gradient: by operators that have gradients themselves.
    fn slope(&self, [grad, x, target]: [&Tensor; 3]) -> Result<Tensor> {
        let slope = target.neg()?.mul(&x.mul(target)?.neg()?.sigmoid()?)?;
        slope.mul(grad)?.mul(share(self.reduction, slope.numel()))
    }

    /// As [`slope`](SoftMarginLoss::slope), by one kernel.
    fn slope_on_host(&self, inputs: [&Tensor; 3]) -> Result<Tensor> {
        let [_, x, _] = inputs;
        let share = share(self.reduction, x.numel());
        let out = match observe::is_watched() {
            true => self.slope_shown(inputs, share)?,
            false => Tensor::uninit(x.shape(), x.dtype(), Device::CPU)?,
        };
        cpu::map_all(inputs.map(Operand::Tensor), out.dtype(), &out, |[grad, x, target], out| {
            elementwise::float_ternary(Slope { share }, grad, x, target, out);
        })?;
        Ok(out)
    }

    /// Memory for the slope, after the calls that torch makes for it. What these leave is overwritten: they
    /// overflow where a margin is missed by far.
    fn slope_shown(&self, [grad, x, target]: [&Tensor; 3], share: f64) -> Result<Tensor> {
        let empty = shown::empty_output(x.dtype())?;
        let out = Argument::Tensor(empty.argument());
        shown::within(BACKWARD, [grad, x, target], &[self.argument(), out], || {
            let negative = target.neg()?;
            let products = negative.mul(x)?;
            let powers = products.exp()?;
            let slope = shown::within(Mul::NAME, [target, &powers], &[out], || {
                Mul.computed((target, Operand::Tensor(&powers)))
            })?;
            slope.mul_(-share)?;
            powers.add_(1)?;
            slope.div_(&powers)?;
            slope.mul_(grad)?;
            Ok(slope)
        })
    }
}

/// `-y / (1 + e^(x y))`, times a gradient and a share of it.
#[derive(Clone, Copy)]
struct Slope {
    share: f64,
}

impl FloatTernary for Slope {
    #[inline(always)]
    fn apply<T: Float>(self, grad: T, x: T, target: T) -> T {
        -target * (-(x * target)).sigmoid() * grad * T::narrow(self.share)
    }
}

impl Tensor {
    /// `log(1 + e^(-x y))` for targets `y` of 1 and -1.
    pub fn soft_margin_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        SoftMarginLoss { reduction }.call([self, target])
    }

    /// The cross-entropy of the sigmoid of each score with the `target`, as a mean over classes, the last
    /// dimension.
    pub fn multilabel_soft_margin_loss(
        &self,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: Reduction,
    ) -> Result<Tensor> {
        let Some(&classes) = self.shape().last() else {
            let text = "expects scores of at least one dimension";
            return Err(Error::new(Cause::Shape, "multilabel_soft_margin_loss", text));
        };
        // What is not needed any more is let go as torch's programs do.
        let of_target = |of: &Tensor, scores: &Tensor| of.mul(&scores.logsigmoid()?);
        let mut losses = {
            let right = of_target(target, self)?;
            let wrong = of_target(&target.rsub(1)?, &self.neg()?)?;
            right.add(&wrong)?
        };
        losses = losses.neg()?;
        if let Some(weight) = weight {
            losses = losses.mul(weight)?;
        }
        losses = losses.sum_dims(&[self.dim() as isize - 1], false)?.div(classes as i64)?;
        losses.reduced(reduction)
    }
}
