//! Functions of one operand, and gradients of activations.

use super::arithmetic::float_binary;
use super::cast::{compute, expect_castable, float, number, promote};
use super::shape::broadcast;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_kernels::functions::{
    Exp, FloatBinary, Log, Neg, NumberUnary, Reciprocal, Relu, Sigmoid, SigmoidBackward, Sqrt, Tanh,
    TanhBackward, ThresholdBackward, Unary,
};
use cresset_kernels::{DType, Float, Scalar, elementwise};
use std::ffi::CStr;

pub(crate) fn neg(x: Tensor, out: Tensor) -> Planned {
    same_kind(c"Neg", Neg, x, out)
}

pub(crate) fn relu(x: Tensor, out: Tensor) -> Planned {
    same_kind(c"Relu", Relu, x, out)
}

pub(crate) fn exp(x: Tensor, out: Tensor) -> Planned {
    analytic(c"Exp", Exp, x, out)
}

pub(crate) fn log(x: Tensor, out: Tensor) -> Planned {
    analytic(c"Log", Log, x, out)
}

pub(crate) fn sqrt(x: Tensor, out: Tensor) -> Planned {
    analytic(c"Sqrt", Sqrt, x, out)
}

pub(crate) fn reciprocal(x: Tensor, out: Tensor) -> Planned {
    analytic(c"Reciprocal", Reciprocal, x, out)
}

pub(crate) fn tanh(x: Tensor, out: Tensor) -> Planned {
    analytic(c"Tanh", Tanh, x, out)
}

pub(crate) fn sigmoid(x: Tensor, out: Tensor) -> Planned {
    analytic(c"Sigmoid", Sigmoid, x, out)
}

pub(crate) fn softplus(x: Tensor, beta: Scalar, threshold: Scalar, out: Tensor) -> Planned {
    analytic(c"SoftplusV2", Softplus { beta: beta.as_f64(), threshold: threshold.as_f64() }, x, out)
}

#[derive(Clone, Copy)]
struct Softplus {
    beta: f64,
    threshold: f64,
}

impl Unary for Softplus {
    fn apply<T: Float>(self, x: T) -> T {
        let (beta, threshold) = (T::narrow(self.beta), T::narrow(self.threshold));
        if x * beta > threshold { x } else { (x * beta).exp().ln_1p() / beta }
    }
}

pub(crate) fn softplus_backward(
    grad: Tensor,
    x: Tensor,
    beta: Scalar,
    threshold: Scalar,
    out: Tensor,
) -> Planned {
    let f = SoftplusGrad { beta: beta.as_f64(), threshold: threshold.as_f64() };
    gradient(c"SoftplusV2Grad", f, grad, x, out)
}

#[derive(Clone, Copy)]
struct SoftplusGrad {
    beta: f64,
    threshold: f64,
}

impl FloatBinary for SoftplusGrad {
    fn apply<T: Float>(self, grad: T, x: T) -> T {
        let (beta, threshold) = (T::narrow(self.beta), T::narrow(self.threshold));
        let z = (x * beta).exp();
        if x * beta > threshold { grad } else { grad * z / (z + T::ONE) }
    }
}

pub(crate) fn threshold_backward(grad: Tensor, x: Tensor, threshold: Scalar, out: Tensor) -> Planned {
    gradient(c"ThresholdGradV2D", ThresholdBackward { threshold: threshold.as_f64() }, grad, x, out)
}

pub(crate) fn tanh_backward(grad: Tensor, output: Tensor, out: Tensor) -> Planned {
    gradient(c"TanhGrad", TanhBackward, grad, output, out)
}

pub(crate) fn sigmoid_backward(grad: Tensor, output: Tensor, out: Tensor) -> Planned {
    gradient(c"SigmoidGrad", SigmoidBackward, grad, output, out)
}

fn same_kind(kernel: &'static CStr, f: impl NumberUnary + Send + 'static, x: Tensor, out: Tensor) -> Planned {
    expect_castable(x.dtype(), &out)?;
    map_number(kernel, f, number(x.dtype()), x, out)
}

fn analytic(kernel: &'static CStr, f: impl Unary + Send + 'static, x: Tensor, out: Tensor) -> Planned {
    let dtype = float(x.dtype());
    expect_castable(dtype, &out)?;
    map(kernel, f, dtype, x, out)
}

fn gradient(
    kernel: &'static CStr,
    f: impl FloatBinary + Send + 'static,
    grad: Tensor,
    saved: Tensor,
    out: Tensor,
) -> Planned {
    let dtype = float(promote(grad.dtype(), saved.dtype()));
    expect_castable(dtype, &out)?;
    float_binary(kernel, f, dtype, grad, saved, out)
}

/// A function of one float, computed in `dtype`.
pub(super) fn map(
    kernel: &'static CStr,
    f: impl Unary + Send + 'static,
    dtype: DType,
    x: Tensor,
    out: Tensor,
) -> Planned {
    let [x] = broadcast([x], &out)?;
    if x == out && out.dtype() == dtype {
        return Plan::new(kernel, [], [out], move |[], [out]| {
            elementwise::unary_in_place(f, out);
            Ok(())
        });
    }
    compute(kernel, [x], dtype, out, dtype, move |[x], out| elementwise::unary(f, x, out))
}

/// A function of one number, computed in `dtype`.
pub(super) fn map_number(
    kernel: &'static CStr,
    f: impl NumberUnary + Send + 'static,
    dtype: DType,
    x: Tensor,
    out: Tensor,
) -> Planned {
    let [x] = broadcast([x], &out)?;
    if x == out && out.dtype() == dtype {
        return Plan::new(kernel, [], [out], move |[], [out]| {
            elementwise::number_unary_in_place(f, out);
            Ok(())
        });
    }
    compute(kernel, [x], dtype, out, dtype, move |[x], out| elementwise::number_unary(f, x, out))
}
