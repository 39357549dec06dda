//! Smooth bends and steps, and `x` times a smooth step.

use super::{activations, attributes, derivatives, in_place};
use crate::autograd::{Saves, is_grad_enabled};
use crate::op::{InPlace, kernel_table};
use crate::ops::unary::kind;
use crate::{Backward, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Float;
use cresset_kernels::functions::{self, Unary as _};

activations! { only_float, Unary of Float:
    /// `log(1 + e^(beta x)) / beta`, or `x` itself where `beta x` exceeds the `threshold`.
    Softplus { beta: Scalar, threshold: Scalar } = "aten::softplus", softplus: saves Inputs,
        |x| if x * beta > threshold { x } else { (x * beta).exponential().logarithm_1p() / beta },
        |grad, x| SoftplusBackward { beta, threshold }.call([grad, x]);
    /// `x / (1 + e^-x)`
    Silu = "aten::silu", silu, silu_: saves Inputs,
        |x| x / (T::ONE + (-x).exponential()),
        |grad, x| if is_grad_enabled() { silu_gradient(grad, x) } else { SiluBackward.call([grad, x]) };
    /// `x * tanh(log(1 + e^x))`
    Mish = "aten::mish", mish, mish_: saves Inputs,
        |x| x * tanh_of_softplus(x),
        |grad, x| if is_grad_enabled() { mish_gradient(grad, x) } else { MishBackward.call([grad, x]) };
}

derivatives! {
    /// `grad * (1 - y * y)`
    TanhBackward = "aten::tanh_backward",
        |grad, y| functions::TanhBackward.apply(grad, y),
        |upstream, grad, y| upstream.mul(&y.mul(-2)?.mul(grad)?);
    /// `grad * y * (1 - y)`
    SigmoidBackward = "aten::sigmoid_backward",
        |grad, y| functions::SigmoidBackward.apply(grad, y),
        |upstream, grad, y| upstream.mul(&y.mul(-2)?.add(1)?.mul(grad)?);
    /// `grad / (1 + e^(-beta x))`, or `grad` itself where `beta x` exceeds the `threshold`.
    SoftplusBackward { beta: Scalar, threshold: Scalar } = "aten::softplus_backward",
        |grad, x| if x * beta > threshold { grad } else { grad * functions::Sigmoid.apply(x * beta) },
        |upstream, grad, x| {
            let both = upstream.mul(grad)?;
            let scaled = x.mul(beta)?;
            let bends = scaled.lt(threshold)?.type_as(x)?;
            both.sigmoid_backward(&scaled.sigmoid()?)?.mul(&bends)?.mul(beta)
        };
    /// `grad * s * (1 + x * (1 - s))`, where `s` is the sigmoid of `x`.
    SiluBackward = "aten::silu_backward",
        |grad, x| {
            let s = functions::Sigmoid.apply(x);
            grad * s * (T::ONE + x * (T::ONE - s))
        },
        |upstream, grad, x| {
            let s = x.sigmoid()?;
            let bend = s.mul(-2.0)?.add(1.0)?.mul(x)?.add(2.0)?;
            upstream.mul(grad)?.sigmoid_backward(&s)?.mul(&bend)
        };
    /// `grad * (t + x * s * (1 - t * t))`, where `s` is the sigmoid of `x` and `t` is `tanh(log(1 + e^x))`.
    MishBackward = "aten::mish_backward", shows mish_gradient_memory,
        |grad, x| {
            let (s, t) = (functions::Sigmoid.apply(x), tanh_of_softplus(x));
            grad * (t + x * s * (T::ONE - t * t))
        },
        |upstream, grad, x| {
            let (s, t) = (x.sigmoid()?, x.softplus(1.0, 20.0)?.tanh()?);
            let bend = s.mul(&t.mul(2.0)?.add(1.0)?)?.rsub(1.0)?.mul(x)?.add(2.0)?;
            upstream.mul(grad)?.mul(&s)?.tanh_backward(&t)?.mul(&bend)
        };
}

fn mish_gradient_memory(op: &MishBackward, inputs: [&Tensor; 2]) -> Result<Tensor> {
    shown::empty_output(inputs[1].dtype())?;
    op.computed(inputs)
}

/// The gradient of [`Silu`] as it is recorded, of operators that have derivatives of every order.
fn silu_gradient(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    let s = x.sigmoid()?;
    let slope = x.mul(&shown::less(1.0, &s)?)?.add(1.0)?;
    grad.mul(&s)?.mul(&slope)
}

/// As [`silu_gradient`], of [`Mish`].
fn mish_gradient(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (s, t) = (x.sigmoid()?, x.exp()?.log1p()?.tanh()?);
    let slope = shown::less(1.0, &t.mul(&t)?)?;
    grad.mul(&t.add(&x.mul(&s)?.mul(&slope)?)?)
}

/// With `n = e^x (e^x + 2)` this is `n / (n + 2)`; beyond 20 no float tells it from 1.
#[inline(always)]
fn tanh_of_softplus<T: Float>(x: T) -> T {
    let two = T::ONE + T::ONE;
    let e = x.exponential();
    let n = e * (e + two);
    if x > T::narrow(20.0) { T::ONE } else { n / (n + two) }
}

impl Tensor {
    pub(crate) fn tanh_backward(&self, y: &Tensor) -> Result<Tensor> {
        TanhBackward.call([self, y])
    }

    pub(crate) fn sigmoid_backward(&self, y: &Tensor) -> Result<Tensor> {
        SigmoidBackward.call([self, y])
    }

    /// `x / (1 + |x|)`
    pub fn softsign(&self) -> Result<Tensor> {
        self.div(&self.abs()?.add(1)?)
    }
}
