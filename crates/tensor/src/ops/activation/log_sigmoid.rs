//! The logarithm of the sigmoid, exact where that is near 0.

use super::{infer_like, map2};
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::kernel_table;
use crate::ops::unary::kind;
use crate::{Backward, Grads, Kernel, MemoryFormat, Op, Result, Spec, Tensor, To, grads};
use cresset_kernels::Float;
use cresset_kernels::functions::{self, FloatBinary, Unary};

/// The logarithm of `1 / (1 + e^-x)`, and what torch keeps of it for the derivative. Ours does without:
/// the second output is empty unless someone watches.
#[derive(Clone, Copy, Debug)]
pub struct LogSigmoid;

impl Op for LogSigmoid {
    const NAME: &'static str = "aten::log_sigmoid_forward";
    const BACKWARD: &'static str = "LogSigmoidBackward0";
    const SAVES: Saves = Saves::AndOutputsFrom(1);
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; LogSigmoidBackward.call([ctx.grad(), ctx.saved(0), ctx.saved(2)])?)
    }
}

impl Kernel for LogSigmoid {
    kernel_table!(LogSigmoid);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
        Ok([kind::only_float::infer(Self::NAME, x)?, Spec::new([0], x.dtype())])
    }

    fn cpu(&self, [x]: [&Tensor; 1], [out, _]: &[Tensor; 2]) -> Result<()> {
        kind::only_float::map(*self, x, out)
    }

    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<[Tensor; 2]>> {
        self.infer([x])?;
        let row_major = To::from(MemoryFormat::Contiguous);
        let [out, kept] = [x.empty_like_with(row_major)?, x.empty_like_with(row_major)?];
        let outputs = [out, kept];
        self.fill([x], &outputs, x.device())?;
        Ok(Some(outputs))
    }
}

impl Unary for LogSigmoid {
    #[inline(always)]
    fn apply<T: Float>(self, x: T) -> T {
        (if x < T::ZERO { x } else { T::ZERO * x }) - (-x.abs()).exponential().logarithm_1p()
    }
}

/// `grad / (1 + e^x)`, given what torch keeps as well.
#[derive(Clone, Copy, Debug)]
pub struct LogSigmoidBackward;

impl Op for LogSigmoidBackward {
    const NAME: &'static str = "aten::log_sigmoid_backward";
    const BACKWARD: &'static str = "LogSigmoidBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (upstream, grad, x) = (ctx.grad(), ctx.saved(0), ctx.saved(1));
        grads!(ctx;
            LogSigmoidBackward.call([upstream, x, ctx.saved(2)])?,
            {
                let both = upstream.mul(grad)?;
                let s = x.sigmoid()?;
                both.mul(&s.sub(1)?)?.mul(&s)?
            },
        )
    }
}

impl Kernel for LogSigmoidBackward {
    kernel_table!(LogSigmoidBackward);

    fn infer(&self, [grad, x, _]: [&Tensor; 3]) -> Result<Spec> {
        infer_like(Self::NAME, grad, x)
    }

    fn cpu(&self, [grad, x, _]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        map2(*self, grad, x, out)
    }

    fn shown(&self, inputs: [&Tensor; 3]) -> Result<Option<Tensor>> {
        self.infer(inputs)?;
        let out = inputs[0].empty_like()?;
        self.fill(inputs, &out, out.device())?;
        Ok(Some(out))
    }
}

impl FloatBinary for LogSigmoidBackward {
    #[inline(always)]
    fn apply<T: Float>(self, grad: T, x: T) -> T {
        grad * functions::Sigmoid.apply(-x)
    }
}

impl Tensor {
    /// The logarithm of `1 / (1 + e^-x)`, exact where that is near 0.
    pub fn logsigmoid(&self) -> Result<Tensor> {
        let _span = composite("aten::log_sigmoid", [self], |_| ());
        let [out, _] = LogSigmoid.call([self])?;
        Ok(out)
    }
}
