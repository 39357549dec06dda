//! A rectifier whose slope below 0 is learned.

use super::map2;
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::kernel_table;
use crate::ops::{broadcast, check_float};
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_kernels::functions::FloatBinary;
use cresset_kernels::{Dims, Float};

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
        let _span = composite("aten::_prelu_kernel_backward", [grad, x, weight], |_| ());
        let above = x.gt(0.0)?;
        grads!(ctx;
            grad.where_(&above, &grad.mul(weight)?)?,
            grad.mul(x)?.zero_where(&above)?,
        )
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
        PreluKernel.call([self, &weight.view(&shape[..])?])
    }
}
