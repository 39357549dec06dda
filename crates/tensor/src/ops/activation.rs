//! Activations, and the derivatives that have operators of their own.

use super::check_float;
use crate::autograd::Saves;
use crate::op::{Operand, kernel_table};
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Float, elementwise, functions};

/// The larger of each element and 0.
#[derive(Clone, Debug)]
pub struct Relu;

impl Op for Relu {
    const NAME: &'static str = "aten::relu";
    const BACKWARD: &'static str = "ReluBackward0";
    const SAVES: Saves = Saves::Outputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let threshold = Scalar::Int(0);
        grads!(ctx; ThresholdBackward { threshold }.call([ctx.grad(), ctx.saved(0)])?)
    }
}

impl Kernel for Relu {
    kernel_table!(Relu);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        if x.dtype() == DType::Bool {
            return Err(Error::new(
                Cause::DType,
                Self::NAME,
                "not defined for bool; convert with to_dtype() first",
            ));
        }
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::map(x, out.dtype(), out, |x, out| elementwise::number_unary(functions::Relu, x, out))
    }
}

/// The gradient where the input was above the threshold, 0 elsewhere.
#[derive(Clone, Debug)]
pub struct ThresholdBackward {
    /// What the input must exceed.
    pub threshold: Scalar,
}

impl Op for ThresholdBackward {
    const NAME: &'static str = "aten::threshold_backward";
    const BACKWARD: &'static str = "ThresholdBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; self.clone().call([ctx.grad(), ctx.saved(1)])?, ctx.saved(1).zeros_like()?)
    }

    fn arguments(&self, [grad, x]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(grad.argument()));
        visit(Argument::Tensor(x.argument()));
        visit(super::scalar_argument(self.threshold));
    }
}

impl Kernel for ThresholdBackward {
    kernel_table!(ThresholdBackward);

    fn infer(&self, [grad, x]: [&Tensor; 2]) -> Result<Spec> {
        infer_like(Self::NAME, grad, x)
    }

    fn cpu(&self, [grad, x]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let f = functions::ThresholdBackward { threshold: self.threshold.as_f64() };
        binary(grad, x, out, |grad, x, out| elementwise::float_binary(f, grad, x, out))
    }
}

fn infer_like(op: &'static str, grad: &Tensor, saved: &Tensor) -> Result<Spec> {
    if grad.shape() != saved.shape() {
        let text = format_args!("gradient of shape {:?} for shape {:?}", grad.shape(), saved.shape());
        return Err(Error::new(Cause::Shape, op, text));
    }
    check_float(op, grad)?;
    Ok(Spec::like(grad))
}

fn binary(
    a: &Tensor,
    b: &Tensor,
    out: &Tensor,
    run: impl FnOnce(cresset_kernels::View<'_>, cresset_kernels::View<'_>, cresset_kernels::ViewMut<'_>),
) -> Result<()> {
    cpu::map2(Operand::Tensor(a), Operand::Tensor(b), out.dtype(), out, run)
}

/// `grad * (1 - y * y)`
#[derive(Clone, Debug)]
pub struct TanhBackward;

impl Op for TanhBackward {
    const NAME: &'static str = "aten::tanh_backward";
    const BACKWARD: &'static str = "TanhBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, y) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; ctx.grad().tanh_backward(y)?, ctx.grad().mul(&grad.mul(y)?.mul(-2.0)?)?)
    }
}

impl Kernel for TanhBackward {
    kernel_table!(TanhBackward);

    fn infer(&self, [grad, y]: [&Tensor; 2]) -> Result<Spec> {
        infer_like(Self::NAME, grad, y)
    }

    fn cpu(&self, [grad, y]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        binary(grad, y, out, |grad, y, out| elementwise::float_binary(functions::TanhBackward, grad, y, out))
    }
}

/// `grad * y * (1 - y)`
#[derive(Clone, Debug)]
pub struct SigmoidBackward;

impl Op for SigmoidBackward {
    const NAME: &'static str = "aten::sigmoid_backward";
    const BACKWARD: &'static str = "SigmoidBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, y) = (ctx.saved(0), ctx.saved(1));
        grads!(ctx; ctx.grad().sigmoid_backward(y)?, ctx.grad().mul(&grad.mul(&y.mul(2.0)?.rsub(1.0)?)?)?)
    }
}

impl Kernel for SigmoidBackward {
    kernel_table!(SigmoidBackward);

    fn infer(&self, [grad, y]: [&Tensor; 2]) -> Result<Spec> {
        infer_like(Self::NAME, grad, y)
    }

    fn cpu(&self, [grad, y]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        binary(grad, y, out, |grad, y, out| {
            elementwise::float_binary(functions::SigmoidBackward, grad, y, out)
        })
    }
}

/// `log(1 + e^(beta x)) / beta`, or `x` itself where `beta x` exceeds the threshold.
#[derive(Clone, Copy, Debug)]
pub struct Softplus {
    /// How sharp the bend is.
    pub beta: f64,
    /// Where the difference to `x` is not worth computing.
    pub threshold: f64,
}

impl Op for Softplus {
    const NAME: &'static str = "aten::softplus";
    const BACKWARD: &'static str = "SoftplusBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let scaled = ctx.saved(0).mul(self.beta)?;
        let curved = ctx.grad().mul(&scaled.sigmoid()?)?;
        grads!(ctx; ctx.grad().where_(&scaled.gt(self.threshold)?, &curved)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Float(self.beta));
        visit(Argument::Float(self.threshold));
    }
}

impl Kernel for Softplus {
    kernel_table!(Softplus);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_float(Self::NAME, x)?;
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::map(x, out.dtype(), out, |x, out| elementwise::unary(*self, x, out))
    }
}

impl functions::Unary for Softplus {
    fn apply<T: Float>(self, x: T) -> T {
        let (beta, threshold) = (T::narrow(self.beta), T::narrow(self.threshold));
        if x * beta > threshold { x } else { (x * beta).exp().ln_1p() / beta }
    }
}

impl Tensor {
    /// The larger of each element and 0.
    pub fn relu(&self) -> Result<Tensor> {
        Relu.call([self])
    }

    /// `log(1 + e^(beta x)) / beta`, or `x` itself where `beta x` exceeds the threshold.
    pub fn softplus(&self, beta: f64, threshold: f64) -> Result<Tensor> {
        Softplus { beta, threshold }.call([self])
    }

    pub(super) fn tanh_backward(&self, y: &Tensor) -> Result<Tensor> {
        TanhBackward.call([self, y])
    }

    pub(super) fn sigmoid_backward(&self, y: &Tensor) -> Result<Tensor> {
        SigmoidBackward.call([self, y])
    }
}
