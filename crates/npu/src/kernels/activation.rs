//! Activations, and the derivatives that have operators of their own.

use super::{beside, filled};
use crate::aclnn;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Kernel, Key, Result, Scalar, Tensor};

/// One line per activation, with its numbers.
macro_rules! activations {
    ($npu:ident; $($op:ident: $call:ident $($number:ident),*;)*) => {
        $($op::table().register($npu, |_op, [x], out| aclnn::$call(x, $(_op.$number,)* out));)*
    };
}

/// One line per gradient, with its numbers.
macro_rules! gradients {
    ($npu:ident; $($op:ident: $call:ident $($number:ident),*;)*) => {
        $($op::table().register($npu, |_op, [grad, x], out| aclnn::$call(grad, x, $(_op.$number,)* out));)*
    };
}

pub(super) fn register(npu: Key) {
    activations! { npu;
        Relu: relu;
        Threshold: threshold threshold, value;
        Softplus: softplus beta, threshold;
        Silu: silu;
        Mish: mish;
        LeakyRelu: leaky_relu negative_slope;
        Elu: elu alpha, scale, input_scale;
        Hardswish: hardswish;
        Hardsigmoid: hardsigmoid;
        Hardtanh: hardtanh min, max;
        Hardshrink: hardshrink lambda;
        Softshrink: softshrink lambda;
    }
    gradients! { npu;
        ThresholdBackward: threshold_backward threshold;
        TanhBackward: tanh_backward;
        SigmoidBackward: sigmoid_backward;
        SoftplusBackward: softplus_backward beta, threshold;
        SiluBackward: silu_backward;
        MishBackward: mish_backward;
        HardswishBackward: hardswish_backward;
        HardsigmoidBackward: hardsigmoid_backward;
        HardtanhBackward: hardtanh_backward min, max;
        HardshrinkBackward: hardshrink_backward lambda;
        SoftshrinkBackward: softshrink_backward lambda;
    }
    Celu::table().register(npu, |op, [x], out| {
        aclnn::elu(x, op.alpha, Scalar::Float(1.0), Scalar::Float(1.0 / op.alpha.as_f64()), out)
    });
    LeakyReluBackward::table().register(npu, |op, [grad, x], out| {
        aclnn::leaky_relu_backward(grad, x, op.negative_slope, op.of_result, out)
    });
    EluBackward::table().register(npu, |op, [grad, x], out| {
        aclnn::elu_backward(grad, op.alpha, op.scale, op.input_scale, op.of_result, x, out)
    });
    Gelu::table()
        .register(npu, |op, [x], out| aclnn::gelu_v2(x, (op.approximate == Approximate::Tanh).into(), out));
    GeluBackward::table().register(npu, |op, [grad, x], out| {
        let approximate = match op.approximate {
            Approximate::None => c"none",
            Approximate::Tanh => c"tanh",
        };
        aclnn::gelu_backward_v2(grad, x, approximate, out)
    });
    // What torch keeps for the gradient is not read; the library wants it of the input's shape.
    LogSigmoid::table().register(npu, |_, [x], [out, _]| aclnn::log_sigmoid(x, out));
    LogSigmoidBackward::table()
        .register(npu, |_, [grad, x, _], out| aclnn::log_sigmoid_backward(grad, x, x, out));
    Glu::table().register(npu, |op, [x], out| aclnn::glu(x, op.dim as i64, out));
    GluBackward::table().register(npu, |op, [grad, x], out| aclnn::glu_backward(grad, x, op.dim as i64, out));
    PreluKernel::table().register(npu, |_, [x, weight], out| bent(x, x, weight, out));
    PreluKernelBackward::table().register(npu, |_, [grad, x, weight], [to_x, to_weight]| {
        bent(x, grad, weight, to_x)?;
        let product = beside(to_weight, to_weight.shape(), to_weight.dtype())?;
        aclnn::mul(grad, x, &product)?;
        let none = filled(to_weight, &[], to_weight.dtype(), 0)?.expand(to_weight.shape())?;
        aclnn::s_where(&above_zero(x)?, &none, &product, to_weight)
    });
}

/// `y` where `x` is positive, and `y` times the weight elsewhere. The library knows a weight per channel
/// only, not one that is spread already.
fn bent(x: &Tensor, y: &Tensor, weight: &Tensor, out: &Tensor) -> Result<()> {
    let product = beside(out, out.shape(), out.dtype())?;
    aclnn::mul(y, weight, &product)?;
    aclnn::s_where(&above_zero(x)?, y, &product, out)
}

fn above_zero(x: &Tensor) -> Result<Tensor> {
    let above = beside(x, x.shape(), DType::Bool)?;
    aclnn::gt_scalar(x, Scalar::Int(0), &above)?;
    Ok(above)
}
