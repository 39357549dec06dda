//! A rectifier whose slope below 0 is learned.

use super::map2;
use crate::autocast;
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::kernel_table;
use crate::ops::{broadcast, check_float};
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads, shown};
use cresset_kernels::functions::{FloatBinary, FloatTernary};
use cresset_kernels::{Dims, Float, elementwise};

/// `x`, or `weight * x` below 0, for a weight that broadcasts.
#[derive(Clone, Copy, Debug)]
pub struct PreluKernel;

impl Op for PreluKernel {
    const NAME: &'static str = "aten::_prelu_kernel";
    const BACKWARD: &'static str = "PreluKernelBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, weight) = (ctx.grad(), ctx.saved(0), ctx.saved(1));
        if grad.device().is_cpu() {
            let [to_x, to_weight] = PreluKernelBackward.call([grad, x, weight])?;
            return grads!(ctx; to_x, to_weight);
        }
        let _span = composite("aten::_prelu_kernel_backward", [grad, x, weight], |_| ());
        let above = x.gt(0.0)?;
        grads!(ctx;
            grad.where_(&above, &grad.mul(weight)?)?,
            grad.mul(x)?.zero_where(&above)?,
        )
    }
}

/// The gradients of [`PreluKernel`] for its input and its weight, each of the input's shape.
#[derive(Clone, Copy, Debug)]
pub struct PreluKernelBackward;

impl Op for PreluKernelBackward {
    const NAME: &'static str = "aten::_prelu_kernel_backward";
    const BACKWARD: &'static str = "PreluKernelBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    const TAKES_MISSING: bool = true;
    /// The gradient, the input, and the weight.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, x, weight) = (ctx.saved(0), ctx.saved(1), ctx.saved(2));
        let (to_x, to_weight) = (ctx.grad_if_any(0), ctx.grad_if_any(1));
        let place = (x.dtype(), x.device());
        let below = |factor: Tensor| {
            let nothing = Tensor::zeros([], place)?;
            nothing.where_(&x.ge(0)?, &factor)
        };
        let times_grad = |given: Option<&Tensor>| match given {
            Some(given) => below(grad.mul(given)?),
            None => Tensor::zeros(x.shape(), place),
        };
        grads!(ctx;
            match (to_x, to_weight) {
                (Some(to_x), Some(to_weight)) => {
                    let by_x = to_weight.mul(x)?;
                    let bent = to_x.mul(weight)?.add(&by_x)?;
                    to_x.where_(&x.ge(0)?, &bent)?
                }
                (Some(to_x), None) => {
                    let bent = to_x.mul(weight)?;
                    to_x.where_(&x.ge(0)?, &bent)?
                }
                (None, Some(to_weight)) => below(to_weight.mul(x)?)?,
                (None, None) => Tensor::zeros(x.shape(), place)?,
            },
            times_grad(to_weight)?,
            times_grad(to_x)?,
        )
    }
}

impl Kernel for PreluKernelBackward {
    kernel_table!(PreluKernelBackward);

    fn infer(&self, [grad, x, weight]: [&Tensor; 3]) -> Result<[Spec; 2]> {
        let spec = PreluKernel.infer([x, weight])?;
        crate::ops::check_gradient(Self::NAME, grad, &spec)?;
        Ok([spec.clone(), spec])
    }

    fn cpu(&self, [grad, x, weight]: [&Tensor; 3], [to_x, to_weight]: &[Tensor; 2]) -> Result<()> {
        let operands = [grad.into(), x.into(), weight.into()];
        cpu::map_all(operands, to_x.dtype(), to_x, |[grad, x, weight], out| {
            elementwise::float_ternary(BentSlope, grad, x, weight, out);
        })?;
        map2(WeightSlope, grad, x, to_weight)
    }

    fn shown(&self, inputs: [&Tensor; 3]) -> Result<Option<[Tensor; 2]>> {
        for _ in 0..2 {
            shown::empty_output(inputs[1].dtype())?;
        }
        self.computed(inputs).map(Some)
    }
}

/// `grad`, or `weight * grad` where `x` was not above 0.
#[derive(Clone, Copy)]
struct BentSlope;

impl FloatTernary for BentSlope {
    #[inline(always)]
    fn apply<T: Float>(self, grad: T, x: T, weight: T) -> T {
        if x > T::ZERO { grad } else { weight * grad }
    }
}

/// `x * grad`, or 0 where `x` was above 0.
#[derive(Clone, Copy)]
struct WeightSlope;

impl FloatBinary for WeightSlope {
    #[inline(always)]
    fn apply<T: Float>(self, grad: T, x: T) -> T {
        if x > T::ZERO { T::ZERO } else { x * grad }
    }
}

impl Kernel for PreluKernel {
    kernel_table!(PreluKernel);

    fn infer(&self, [x, weight]: [&Tensor; 2]) -> Result<Spec> {
        check_float(Self::NAME, x)?;
        if x.dtype() != weight.dtype() {
            let text =
                format_args!("expects a weight of {}, as its input, not {}", x.dtype(), weight.dtype());
            return Err(Error::new(Cause::DType, Self::NAME, text));
        }
        if broadcast(Self::NAME, x.shape(), weight.shape())?[..] != *x.shape() {
            let text =
                format_args!("a weight of shape {:?} is too large for {:?}", weight.shape(), x.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x, weight]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        map2(Bent, x, weight, out)
    }

    fn shown(&self, inputs: [&Tensor; 2]) -> Result<Option<Tensor>> {
        self.infer(inputs)?;
        let out = inputs[0].empty_like()?;
        self.fill(inputs, &out, out.device())?;
        Ok(Some(out))
    }
}

#[derive(Clone, Copy)]
struct Bent;

impl FloatBinary for Bent {
    #[inline(always)]
    fn apply<T: Float>(self, x: T, weight: T) -> T {
        if x > T::ZERO { x } else { weight * x }
    }
}

impl Tensor {
    /// `x`, or `weight * x` below 0. The weight is one number, or one for each channel, which is
    /// dimension 1.
    pub fn prelu(&self, weight: &Tensor) -> Result<Tensor> {
        const NAME: &str = "aten::prelu";
        let _span = composite(NAME, [self, weight], |_| ());
        if let Some(cast) = autocast::casting(NAME, [self, weight], |[x, weight]| x.prelu(weight)) {
            return cast;
        }
        if weight.dim() > 1 {
            let text = format_args!("expects one weight, or one per channel, not shape {:?}", weight.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let channels = if self.dim() > 1 { self.shape()[1] } else { 1 };
        if weight.numel() != 1 && weight.numel() != channels {
            let text = format_args!(
                "{} weights for the {channels} channels of shape {:?}",
                weight.numel(),
                self.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        if weight.dim() == self.dim() {
            return PreluKernel.call([self, weight]);
        }
        let mut shape = Dims::from_elem(1, self.dim());
        if let Some(size) = shape.get_mut(1) {
            *size = weight.numel();
        }
        PreluKernel.call([self, &weight.reshape(&shape[..])?])
    }
}
