//! Losses of how far predictions are from their targets.

use super::{Reduction, reduce, reduction_number, share};
use crate::autograd::Saves;
use crate::op::{KernelFn, Table};
use crate::ops::broadcast;
use crate::promote::result_type;
use crate::{
    Backward, Cause, Error, Grads, Kernel, Op, Operand, Result, Spec, Tensor, composite, cpu, grads,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::elementwise;
use cresset_kernels::loss::{self, Distance, Huber, SmoothL1, Square};
use std::fmt::Debug;

/// The loss of predictions, the first input, for their targets.
#[derive(Clone, Debug)]
pub struct DistanceLoss<D> {
    /// What a difference costs.
    pub distance: D,
    /// What becomes of the losses of single elements.
    pub reduction: Reduction,
}

/// The gradient of a [`DistanceLoss`] for its predictions.
#[derive(Clone, Debug)]
pub struct DistanceLossBackward<D> {
    /// As in [`DistanceLoss`].
    pub distance: D,
    /// As in [`DistanceLoss`].
    pub reduction: Reduction,
}

/// A distance that is an operator: its names, and a place for the kernels of devices.
pub trait NamedDistance: Distance + Debug + Send + Sync + 'static {
    /// The name of the loss.
    const NAME: &'static str;
    /// The name of its gradient.
    const GRADIENT: &'static str;
    /// Their nodes in the backward graph.
    const NODES: [&'static str; 2];
    /// The parameter, where there is one.
    fn parameter(&self) -> Option<f64>;
    /// Kernels of the loss.
    fn table() -> &'static Table<KernelFn<DistanceLoss<Self>>>;
    /// Kernels of its gradient.
    fn gradient_table() -> &'static Table<KernelFn<DistanceLossBackward<Self>>>;
}

macro_rules! distances {
    ($($distance:ty: $name:literal, $node:literal, |$this:ident| $parameter:expr;)*) => {$(
        impl NamedDistance for $distance {
            const NAME: &'static str = concat!("aten::", $name);
            const GRADIENT: &'static str = concat!("aten::", $name, "_backward");
            const NODES: [&'static str; 2] = [concat!($node, "0"), concat!($node, "Backward0")];

            fn parameter(&self) -> Option<f64> {
                let $this = self;
                $parameter
            }

            fn table() -> &'static Table<KernelFn<DistanceLoss<Self>>> {
                static TABLE: Table<KernelFn<DistanceLoss<$distance>>> = Table::new();
                &TABLE
            }

            fn gradient_table() -> &'static Table<KernelFn<DistanceLossBackward<Self>>> {
                static TABLE: Table<KernelFn<DistanceLossBackward<$distance>>> = Table::new();
                &TABLE
            }
        }
    )*};
}

distances! {
    Square: "mse_loss", "MseLossBackward", |_this| None;
    SmoothL1: "smooth_l1_loss", "SmoothL1LossBackward", |this| Some(this.beta);
    Huber: "huber_loss", "HuberLossBackward", |this| Some(this.delta);
}

fn infer(op: &'static str, x: &Tensor, target: &Tensor) -> Result<Spec> {
    let (shape, dtype) = (broadcast(op, x.shape(), target.shape())?, result_type(x, Operand::Tensor(target)));
    if !dtype.is_float() {
        let text = format_args!("expects floats, not {} and {}", x.dtype(), target.dtype());
        return Err(Error::new(Cause::DType, op, text));
    }
    Ok(Spec { shape, dtype })
}

impl<D: NamedDistance> Op for DistanceLoss<D> {
    const NAME: &'static str = D::NAME;
    const BACKWARD: &'static str = D::NODES[0];
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    /// The loss is the same both ways, so the target's gradient is that of a prediction.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, target) = (ctx.saved(0), ctx.saved(1));
        let gradient = || DistanceLossBackward { distance: self.distance, reduction: self.reduction };
        grads!(ctx; gradient().call([ctx.grad(), x, target])?, gradient().call([ctx.grad(), target, x])?)
    }

    fn arguments(&self, [x, target]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Tensor(target.argument()));
        visit(Argument::Int(reduction_number(self.reduction)));
        self.distance.parameter().into_iter().for_each(|parameter| visit(Argument::Float(parameter)));
    }
}

impl<D: NamedDistance> Kernel for DistanceLoss<D> {
    fn table() -> &'static Table<KernelFn<Self>> {
        D::table()
    }

    fn infer(&self, [x, target]: [&Tensor; 2]) -> Result<Spec> {
        let spec = infer(Self::NAME, x, target)?;
        Ok(if self.reduction == Reduction::None { spec } else { Spec::new([], spec.dtype) })
    }

    fn cpu(&self, [x, target]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let Spec { shape, dtype } = infer(Self::NAME, x, target)?;
        reduce(self.reduction, &shape, out, |losses| {
            cpu::map2(x.into(), target.into(), dtype, losses, |x, target, out| {
                elementwise::float_binary(loss::Loss(self.distance), x, target, out);
            })
        })
    }
}

impl<D: NamedDistance> Op for DistanceLossBackward<D> {
    const NAME: &'static str = D::GRADIENT;
    const BACKWARD: &'static str = D::NODES[1];
    const SAVES: Saves = Saves::Inputs;
    /// The gradient of the loss, the predictions, the targets.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, target) = (ctx.saved(0), ctx.saved(1), ctx.saved(2));
        let curved = || {
            let share = share(self.reduction, ctx.grad().numel());
            bend(self.distance, &ctx.grad().mul(grad)?.mul(share)?, x, target)
        };
        grads!(ctx;
            self.clone().call([&Tensor::ones([], (grad.dtype(), grad.device()))?, x, target])?.mul(ctx.grad())?,
            curved()?,
            curved()?.neg()?,
        )
    }

    fn arguments(&self, inputs: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(Argument::Int(reduction_number(self.reduction)));
        self.distance.parameter().into_iter().for_each(|parameter| visit(Argument::Float(parameter)));
    }
}

/// `grad` times the second derivative of the loss.
fn bend(distance: impl Distance, grad: &Tensor, x: &Tensor, target: &Tensor) -> Result<Tensor> {
    let (within, by) = distance.bend();
    if within.is_infinite() {
        return grad.mul(by);
    }
    let bent = x.sub(target)?.abs()?.lt(within)?;
    bent.choose(&grad.mul(by)?, 0)
}

impl<D: NamedDistance> Kernel for DistanceLossBackward<D> {
    fn table() -> &'static Table<KernelFn<Self>> {
        D::gradient_table()
    }

    fn infer(&self, [grad, x, target]: [&Tensor; 3]) -> Result<Spec> {
        let spec = infer(Self::NAME, x, target)?;
        if broadcast(Self::NAME, grad.shape(), &spec.shape)? != spec.shape {
            let text =
                format_args!("gradient of shape {:?} for losses of {:?}", grad.shape(), &spec.shape[..]);
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(spec)
    }

    fn cpu(&self, [grad, x, target]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        let f = loss::LossBackward { distance: self.distance, share: share(self.reduction, out.numel()) };
        let operands = [grad.into(), x.into(), target.into()];
        cpu::map_all(operands, out.dtype(), out, |[grad, x, target], out| {
            elementwise::float_ternary(f, grad, x, target, out);
        })
    }
}

fn check_positive(op: &'static str, name: &str, value: f64) -> Result<()> {
    if value > 0.0 {
        return Ok(());
    }
    Err(Error::new(Cause::Argument, op, format_args!("expects {name} above 0, not {value}")))
}

impl Tensor {
    /// The squared distance from `target`; both broadcast.
    pub fn mse_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        DistanceLoss { distance: Square, reduction }.call([self, target])
    }

    /// The distance from `target`, rounded off within `beta`; both broadcast. With a `beta` of 0 it
    /// is the distance itself.
    pub fn smooth_l1_loss(&self, target: &Tensor, beta: f64, reduction: Reduction) -> Result<Tensor> {
        if beta == 0.0 {
            return self.l1_loss(target, reduction);
        }
        check_positive(SmoothL1::NAME, "beta", beta)?;
        DistanceLoss { distance: SmoothL1 { beta }, reduction }.call([self, target])
    }

    /// Half the squared distance from `target`, continued as a straight line beyond `delta`; both
    /// broadcast.
    pub fn huber_loss(&self, target: &Tensor, delta: f64, reduction: Reduction) -> Result<Tensor> {
        check_positive(Huber::NAME, "delta", delta)?;
        DistanceLoss { distance: Huber { delta }, reduction }.call([self, target])
    }

    /// The distance from `target`; both broadcast.
    pub fn l1_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let _span = composite("aten::l1_loss", [self, target], |visit| {
            visit(Argument::Int(reduction_number(reduction)));
        });
        self.sub(target)?.abs()?.reduced(reduction)
    }
}
