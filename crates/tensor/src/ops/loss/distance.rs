//! Losses of how far predictions are from their targets.

use super::{Reduction, reduce, reduction_number, share};
use crate::autocast;
use crate::autograd::Saves;
use crate::op::{KernelFn, Table};
use crate::ops::broadcast;
use crate::promote::result_type;
use crate::{
    Backward, Cause, Error, Grads, Kernel, MemoryFormat, Op, Operand, Result, Spec, Tensor, composite, cpu,
    grads, shown,
};
use cresset_dispatch::observe::{self, Argument};
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
    /// Whether torch's kernel leaves its memory to an iterator over elements.
    const ITERATES: bool;
    /// Whether the derivative of its gradient adds up what a single loss gets; for others that is done
    /// where the gradient goes.
    const SUMS_ITSELF: bool;
    /// `grad` times the second derivative of what a difference costs.
    fn bend(&self, grad: &Tensor, x: &Tensor, target: &Tensor) -> Result<Tensor>;
    /// The parameter, where there is one.
    fn parameter(&self) -> Option<f64>;
    /// Kernels of the loss.
    fn table() -> &'static Table<KernelFn<DistanceLoss<Self>>>;
    /// Kernels of its gradient.
    fn gradient_table() -> &'static Table<KernelFn<DistanceLossBackward<Self>>>;
}

macro_rules! distances {
    ($($distance:ty: $name:literal, $node:literal, iterates $iterates:literal, sums itself $sums:literal,
        |$this:ident| $parameter:expr, |$grad:ident, $x:ident, $target:ident| $bend:expr;)*) => {$(
        impl NamedDistance for $distance {
            const NAME: &'static str = concat!("aten::", $name);
            const GRADIENT: &'static str = concat!("aten::", $name, "_backward");
            const NODES: [&'static str; 2] = [concat!($node, "0"), concat!($node, "Backward0")];

            const ITERATES: bool = $iterates;
            const SUMS_ITSELF: bool = $sums;

            fn bend(&self, $grad: &Tensor, $x: &Tensor, $target: &Tensor) -> Result<Tensor> {
                let $this = self;
                let _ = $this;
                $bend
            }

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
    Square: "mse_loss", "MseLossBackward", iterates true, sums itself false,
        |_this| None, |grad, _x, _target| grad.mul(2);
    SmoothL1: "smooth_l1_loss", "SmoothL1LossBackward", iterates true, sums itself false,
        |this| Some(this.beta),
        |grad, x, target| grad.mul(&near(x, target, this.beta)?.type_as(grad)?)?.div(this.beta);
    Huber: "huber_loss", "HuberLossBackward", iterates false, sums itself true,
        |this| Some(this.delta), |grad, x, target| grad.mul(&near(x, target, this.delta)?);
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

    fn shown(&self, [x, target]: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let spec = infer(Self::NAME, x, target)?;
        if D::ITERATES {
            return self.shown_iterated([x, target], &spec);
        }
        if x.shape() != &spec.shape[..] || x.dtype() != spec.dtype {
            return Ok(None);
        }
        let losses = x.empty_like()?;
        self.losses([x, target], &losses)?;
        losses.reduced(self.reduction).map(Some)
    }

    fn cpu(&self, [x, target]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let Spec { shape, .. } = infer(Self::NAME, x, target)?;
        reduce(self.reduction, &shape, out, |losses| self.losses([x, target], losses))
    }
}

impl<D: NamedDistance> DistanceLoss<D> {
    /// The loss of each element.
    fn losses(&self, [x, target]: [&Tensor; 2], losses: &Tensor) -> Result<()> {
        cpu::map2(x.into(), target.into(), losses.dtype(), losses, |x, target, out| {
            elementwise::float_binary(loss::Loss(self.distance), x, target, out);
        })
    }

    /// Torch's iterator takes memory for an output of all losses; reduced, it is then made a number where
    /// it lies, and the losses go elsewhere.
    fn shown_iterated(&self, [x, target]: [&Tensor; 2], spec: &Spec) -> Result<Option<Tensor>> {
        if self.reduction == Reduction::None {
            return Ok(None);
        }
        let whole = Tensor::uninit(&spec.shape, spec.dtype, x.device())?;
        shown::resized(&whole, &[], Argument::None)?;
        let out = shown::as_number(&whole);
        let losses = shown::iterated(spec, &[x, target], true)?;
        self.losses([x, target], &losses)?;
        match self.reduction {
            Reduction::Mean => shown::mean_into(&losses, &out)?,
            _ => shown::sum_into(&losses, &[], &out)?,
        }
        Ok(Some(out))
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
        let (again, grad, x, target) = (ctx.grad(), ctx.saved(0), ctx.saved(1), ctx.saved(2));
        let curved = || {
            let bent = self.distance.bend(&again.mul(grad)?, x, target)?;
            if self.reduction == Reduction::Mean {
                bent.div_(bent.numel() as i64)?;
            }
            Ok::<_, Error>(bent)
        };
        grads!(ctx;
            match D::SUMS_ITSELF && self.reduction != Reduction::None {
                true => self.clone().call([&grad.ones_like()?, x, target])?.mul(again)?.sum()?,
                false => self.clone().call([again, x, target])?,
            },
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

/// Whether each element of `x` lies nearer to its target than this.
fn near(x: &Tensor, target: &Tensor, within: f64) -> Result<Tensor> {
    x.sub(target)?.abs()?.lt(within)
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

    /// Torch makes zeros, and has them overwritten by the form of the operator that is told where to put
    /// its output.
    fn shown(&self, [grad, x, target]: [&Tensor; 3]) -> Result<Option<Tensor>> {
        let spec = self.infer([grad, x, target])?;
        if spec != Spec::like(x) {
            return Ok(None);
        }
        let out = x.zeros_like_with(MemoryFormat::Contiguous)?;
        let mut more = vec![Argument::Int(reduction_number(self.reduction))];
        more.extend(self.distance.parameter().map(Argument::Float));
        shown::into_out(Self::NAME, [grad, x, target], &more, &out, || {
            self.fill([grad, x, target], &out, out.device())
        })?;
        Ok(Some(out))
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

/// Predictions and targets of one shape. Kernels broadcast by themselves, but torch's function does so
/// before it calls them.
fn spread(op: &'static str, x: &Tensor, target: &Tensor) -> Result<[Tensor; 2]> {
    broadcast(op, x.shape(), target.shape())?;
    if !observe::is_watched() && x.shape() == target.shape() {
        return Ok([x.clone(), target.clone()]);
    }
    let both = Tensor::broadcast_tensors(&[x, target])?;
    both.try_into().map_err(|_| Error::new(Cause::Shape, "aten::broadcast_tensors", "gives two tensors"))
}

impl Tensor {
    /// The squared distance from `target`; both broadcast.
    pub fn mse_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let [x, target] = spread("aten::mse_loss", self, target)?;
        DistanceLoss { distance: Square, reduction }.call([&x, &target])
    }

    /// The distance from `target`, rounded off within `beta`; both broadcast. With a `beta` of 0 it
    /// is the distance itself.
    pub fn smooth_l1_loss(&self, target: &Tensor, beta: f64, reduction: Reduction) -> Result<Tensor> {
        let [x, target] = spread("aten::smooth_l1_loss", self, target)?;
        if beta == 0.0 {
            return x.absolute_loss(&target, reduction);
        }
        check_positive(SmoothL1::NAME, "beta", beta)?;
        DistanceLoss { distance: SmoothL1 { beta }, reduction }.call([&x, &target])
    }

    /// Half the squared distance from `target`, continued as a straight line beyond `delta`; both
    /// broadcast.
    pub fn huber_loss(&self, target: &Tensor, delta: f64, reduction: Reduction) -> Result<Tensor> {
        check_positive(Huber::NAME, "delta", delta)?;
        let [x, target] = spread("aten::huber_loss", self, target)?;
        DistanceLoss { distance: Huber { delta }, reduction }.call([&x, &target])
    }

    /// The distance from `target`; both broadcast.
    pub fn l1_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let [x, target] = spread("aten::l1_loss", self, target)?;
        x.absolute_loss(&target, reduction)
    }

    fn absolute_loss(&self, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
        let _span = composite("aten::l1_loss", [self, target], |visit| {
            visit(Argument::Int(reduction_number(reduction)));
        });
        if let Some(cast) =
            autocast::casting("aten::l1_loss", [self, target], |[x, y]| x.l1_loss(y, reduction))
        {
            return cast;
        }
        self.sub(target)?.abs()?.reduced(reduction)
    }
}
