//! The logarithm of softmax.

use super::{check_dims, check_float};
use crate::autograd::Saves;
use crate::op::{Operand, kernel_table};
use crate::promote::float_type;
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::softmax;

/// `x - log(sum(exp(x)))` along a dimension.
#[derive(Clone, Debug)]
pub struct LogSoftmax {
    /// Which dimension.
    pub dim: usize,
}

impl Op for LogSoftmax {
    const NAME: &'static str = "aten::_log_softmax";
    const BACKWARD: &'static str = "LogSoftmaxBackward0";
    const SAVES: Saves = Saves::Outputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; LogSoftmaxBackward { dim: self.dim }.call([ctx.grad(), ctx.saved(0)])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.dim as i64));
        visit(Argument::Bool(false));
    }
}

impl Kernel for LogSoftmax {
    kernel_table!(LogSoftmax);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_dims(Self::NAME, &[self.dim], x)?;
        Ok(Spec::new(x.shape(), float_type(x.dtype())))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::map(x, out.dtype(), out, |x, out| softmax::log_softmax(x, self.dim, out))
    }
}

/// `grad - exp(y) * sum(grad)` along a dimension.
#[derive(Clone, Debug)]
pub struct LogSoftmaxBackward {
    /// Which dimension.
    pub dim: usize,
}

impl Op for LogSoftmaxBackward {
    const NAME: &'static str = "aten::_log_softmax_backward_data";
    const BACKWARD: &'static str = "LogSoftmaxBackwardDataBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, y) = (ctx.saved(0), ctx.saved(1));
        let (probabilities, dims) = (y.exp()?, [self.dim as isize]);
        grads!(ctx;
            ctx.grad().sub(&ctx.grad().mul(&probabilities)?.sum_dims(&dims, true)?)?,
            ctx.grad().mul(&probabilities)?.mul(&grad.sum_dims(&dims, true)?)?.neg()?,
        )
    }

    fn arguments(&self, [grad, y]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(grad.argument()));
        visit(Argument::Tensor(y.argument()));
        visit(Argument::Int(self.dim as i64));
    }
}

impl Kernel for LogSoftmaxBackward {
    kernel_table!(LogSoftmaxBackward);

    fn infer(&self, [grad, y]: [&Tensor; 2]) -> Result<Spec> {
        if grad.shape() != y.shape() {
            let text = format_args!("gradient of shape {:?} for shape {:?}", grad.shape(), y.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        check_dims(Self::NAME, &[self.dim], y)?;
        check_float(Self::NAME, grad)?;
        Ok(Spec::like(grad))
    }

    fn cpu(&self, [grad, y]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        cpu::map2(Operand::Tensor(grad), Operand::Tensor(y), out.dtype(), out, |grad, y, out| {
            softmax::log_softmax_backward(grad, y, self.dim, out);
        })
    }
}

impl Tensor {
    /// The logarithm of softmax along `dim`; negative ones count from the back.
    pub fn log_softmax(&self, dim: isize) -> Result<Tensor> {
        let dim = self.dim_index("aten::log_softmax", dim)?;
        let _span = composite("aten::log_softmax", [self], |visit| {
            visit(Argument::Int(dim as i64));
            visit(Argument::None);
        });
        LogSoftmax { dim }.call([self])
    }
}
