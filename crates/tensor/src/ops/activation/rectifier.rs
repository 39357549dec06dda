//! Rectifiers: what is below 0 is cut off, or bent.

use super::{activations, attributes, derivatives, in_place};
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::{InPlace, Shown, kernel_table};
use crate::ops::unary::kind;
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::{Argument, Span};
use cresset_kernels::{Float, Number, functions};

activations! { number, NumberUnary of Number:
    /// The larger of each element and 0.
    Relu = "aten::relu", relu, relu_: saves Outputs, shows through_clamp_min and in place through_clamp_min_,
        |x| functions::Relu.apply(x),
        |grad, y| ThresholdBackward { threshold: Scalar::Int(0) }.call([grad, y]);
    /// `x`, or `value` where `x` does not exceed the `threshold`.
    Threshold { threshold: Scalar, value: Scalar } = "aten::threshold", threshold, threshold_: saves Inputs,
        |x| if x <= threshold { value } else { x },
        |grad, x| ThresholdBackward { threshold }.call([grad, x]);
}

activations! { only_float, Unary of Float:
    /// `x`, or `negative_slope * x` below 0.
    LeakyRelu { negative_slope: Scalar } = "aten::leaky_relu", leaky_relu, leaky_relu_: saves Inputs,
        |x| if x > T::ZERO { x } else { x * negative_slope },
        |grad, x| LeakyReluBackward { negative_slope }.call([grad, x]);
    /// `scale * x`, or `scale * alpha * (e^(input_scale * x) - 1)` below 0.
    Elu { alpha: Scalar, scale: Scalar, input_scale: Scalar } = "aten::elu", elu_scaled, elu_scaled_: saves Inputs,
        |x| if x < T::ZERO { (x * input_scale).exponential_m1() * (alpha * scale) } else { x * scale },
        |grad, x| EluBackward { alpha, scale, input_scale }.call([grad, x]);
}

derivatives! {
    /// The gradient where the input exceeded the `threshold`, 0 elsewhere.
    ThresholdBackward { threshold: Scalar } = "aten::threshold_backward",
        |grad, x| if x <= threshold { T::ZERO } else { grad },
        |_upstream, _grad, x| x.zeros_like();
    /// `grad`, or `negative_slope * grad` where `x` was below 0.
    LeakyReluBackward { negative_slope: Scalar } = "aten::leaky_relu_backward", visits leaky_arguments,
        |grad, x| if x > T::ZERO { grad } else { grad * negative_slope },
        |_upstream, _grad, x| x.zeros_like();
    /// `scale * grad`, or `scale * alpha * input_scale * e^(input_scale * x) * grad` where `x` was below 0.
    EluBackward { alpha: Scalar, scale: Scalar, input_scale: Scalar } = "aten::elu_backward", visits elu_arguments,
        |grad, x| {
            if x <= T::ZERO { grad * input_scale * (alpha * scale) * (x * input_scale).exponential() } else { grad * scale }
        },
        |upstream, grad, x| {
            let bent = EluBackward { alpha, scale, input_scale }.call([&upstream.mul(grad)?.mul(input_scale)?, x])?;
            bent.zero_where(&x.ge(0.0)?)
        };
}

/// Torch asks another operator for the larger of each element and 0.
fn through_clamp_min(op: &Relu, inputs: [&Tensor; 1]) -> Result<Tensor> {
    shown::within("aten::clamp_min", inputs, &[Argument::Int(0)], || op.computed(inputs))
}

/// The same in place.
fn through_clamp_min_(x: &Tensor) -> Option<Span> {
    shown::call("aten::clamp_min_", [x], &[Argument::Int(0)])
}

/// With what tells inputs from outputs at the end: these are inputs.
fn leaky_arguments(op: &LeakyReluBackward, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
    super::visit(inputs, &[op.negative_slope, Scalar::Bool(false)], visit);
}

/// With what tells inputs from outputs, and then the inputs.
fn elu_arguments(op: &EluBackward, [grad, x]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
    super::visit([grad], &[op.alpha, op.scale, op.input_scale, Scalar::Bool(false)], visit);
    super::visit([x], &[], visit);
}

/// The constants with which `selu` keeps mean 0 and variance 1.
const SELU: Elu = Elu {
    alpha: Scalar::Float(1.673_263_242_354_377_2),
    scale: Scalar::Float(1.050_700_987_355_480_5),
    input_scale: Scalar::Int(1),
};

/// The exponent's slope that makes `elu` smooth.
fn celu(op: &'static str, alpha: Scalar) -> Result<Elu> {
    if alpha.as_f64() == 0.0 {
        return Err(Error::new(Cause::Argument, op, "alpha is 0, and x is divided by it"));
    }
    Ok(Elu { alpha, scale: 1.0.into(), input_scale: (1.0 / alpha.as_f64()).into() })
}

impl Tensor {
    /// `x`, or `alpha * (e^x - 1)` below 0.
    pub fn elu(&self, alpha: impl Into<Scalar>) -> Result<Tensor> {
        self.elu_scaled(alpha, 1, 1)
    }

    /// [`elu`](Tensor::elu) in place.
    pub fn elu_(&self, alpha: impl Into<Scalar>) -> Result<()> {
        self.elu_scaled_(alpha, 1, 1)
    }

    /// `x`, or `alpha * (e^(x / alpha) - 1)` below 0: like [`elu`](Tensor::elu), without a kink.
    pub fn celu(&self, alpha: impl Into<Scalar>) -> Result<Tensor> {
        let alpha = alpha.into();
        let _span = composite("aten::celu", [self], |visit| visit(shown::plain(alpha)));
        celu("aten::celu", alpha)?.call([self])
    }

    /// [`celu`](Tensor::celu) in place.
    pub fn celu_(&self, alpha: impl Into<Scalar>) -> Result<()> {
        let alpha = alpha.into();
        let _span = composite("aten::celu_", [self], |visit| visit(shown::plain(alpha)));
        celu("aten::celu_", alpha)?.call_in_place([self])
    }

    /// [`elu`](Tensor::elu) with the constants that keep mean 0 and variance 1 from layer to layer.
    pub fn selu(&self) -> Result<Tensor> {
        let _span = composite("aten::selu", [self], |_| ());
        SELU.call([self])
    }

    /// [`selu`](Tensor::selu) in place.
    pub fn selu_(&self) -> Result<()> {
        let _span = composite("aten::selu_", [self], |_| ());
        SELU.call_in_place([self])
    }
}
