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
    LeakyRelu { negative_slope: Scalar } = "aten::leaky_relu", leaky_relu: saves Inputs,
        |x| if x > T::ZERO { x } else { x * negative_slope },
        |grad, x| LeakyReluBackward { negative_slope, of_result: false }.call([grad, x]);
    /// `scale * x`, or `scale * alpha * (e^(input_scale * x) - 1)` below 0.
    Elu { alpha: Scalar, scale: Scalar, input_scale: Scalar } = "aten::elu", elu_scaled: saves Inputs,
        |x| if x < T::ZERO { (x * input_scale).exponential_m1() * (alpha * scale) } else { x * scale },
        |grad, x| EluBackward { alpha, scale, input_scale, of_result: false }.call([grad, x]);
}

derivatives! {
    /// The gradient where the input exceeded the `threshold`, 0 elsewhere.
    ThresholdBackward { threshold: Scalar } = "aten::threshold_backward",
        |grad, x| if x <= threshold { T::ZERO } else { grad },
        |_upstream, _grad, x| x.zeros_like();
    /// `grad`, or `negative_slope * grad` where `x`, or the result, was below 0.
    LeakyReluBackward { negative_slope: Scalar, of_result: bool } = "aten::leaky_relu_backward", visits leaky_arguments,
        |grad, x| {
            let _ = of_result;
            if x > T::ZERO { grad } else { grad * negative_slope }
        },
        |_upstream, _grad, x| x.zeros_like();
    /// `scale * grad`, or `scale * alpha * input_scale * e^(input_scale * x) * grad` where `x` was below 0: with `y` for
    /// a result in the place of `x`, `input_scale * (y + scale * alpha) * grad`.
    EluBackward { alpha: Scalar, scale: Scalar, input_scale: Scalar, of_result: bool } = "aten::elu_backward",
        visits elu_arguments,
        |grad, x| {
            let below = if of_result > T::ZERO {
                x + alpha * scale
            } else {
                (alpha * scale) * (x * input_scale).exponential()
            };
            if x <= T::ZERO { grad * input_scale * below } else { grad * scale }
        },
        |upstream, grad, x| {
            let below = x.lt(0)?.type_as(x)?;
            let bent = upstream.mul(grad)?.mul(input_scale)?;
            let bent = if of_result { bent } else { EluBackward { alpha, scale, input_scale, of_result }.call([&bent, x])? };
            bent.mul(&below)
        };
}

/// Forms in place whose gradients are found from what they leave, where that tells what was there.
macro_rules! from_results {
    ($($op:ident, $change:ident($($field:ident),+): $name:literal, $node:literal, by $back:ident, if $tells:ident from 0 on;)*) => {$(
        impl InPlace for $op {
            const IN_PLACE: &'static str = $name;
            kernel_table!(in place $op);

            fn cpu_in_place(&self, [x]: [&Tensor; 1]) -> Result<()> {
                kind::only_float::change(*self, x)
            }

            fn backward_name_in_place(&self, _inputs: [&Tensor; 1]) -> &'static str {
                $node
            }

            fn saves_in_place(&self) -> Saves {
                if self.$tells.as_f64() >= 0.0 { Saves::Outputs } else { Saves::Inputs }
            }

            fn backward_in_place(&self, ctx: &Backward<'_>) -> Result<Grads> {
                let of_result = self.$tells.as_f64() >= 0.0;
                grads!(ctx; $back { $($field: self.$field,)+ of_result }.call([ctx.grad(), ctx.saved(0)])?)
            }
        }

        impl Tensor {
            #[doc = concat!("The form in place of [`", stringify!($op), "`].")]
            pub fn $change(&self, $($field: impl Into<Scalar>),+) -> Result<()> {
                $op { $($field: $field.into()),+ }.call_in_place([self])
            }
        }
    )*};
}

from_results! {
    LeakyRelu, leaky_relu_(negative_slope): "aten::leaky_relu_", "LeakyReluBackward1", by LeakyReluBackward,
        if negative_slope from 0 on;
    Elu, elu_scaled_(alpha, scale, input_scale): "aten::elu_", "EluBackward1", by EluBackward, if alpha from 0 on;
}

/// Torch asks another operator for the larger of each element and 0.
fn through_clamp_min(op: &Relu, inputs: [&Tensor; 1]) -> Result<Tensor> {
    shown::within("aten::clamp_min", inputs, &[Argument::Int(0)], || op.computed(inputs))
}

/// The same in place.
fn through_clamp_min_(x: &Tensor) -> Option<Span> {
    shown::call("aten::clamp_min_", [x], &[Argument::Int(0)])
}

/// With what tells inputs from results at the end.
fn leaky_arguments(op: &LeakyReluBackward, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
    super::visit(inputs, &[op.negative_slope, Scalar::Bool(op.of_result)], visit);
}

/// With what tells inputs from results, and then these.
fn elu_arguments(op: &EluBackward, [grad, x]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
    super::visit([grad], &[op.alpha, op.scale, op.input_scale, Scalar::Bool(op.of_result)], visit);
    super::visit([x], &[], visit);
}

/// The constants with which `selu` keeps mean 0 and variance 1.
const SELU: Elu = Elu {
    alpha: Scalar::Float(1.673_263_242_354_377_2),
    scale: Scalar::Float(1.050_700_987_355_480_5),
    input_scale: Scalar::Int(1),
};

/// `x`, or `alpha * (e^(x / alpha) - 1)` below 0.
#[derive(Clone, Copy, Debug)]
pub struct Celu {
    /// How far below 0 it gets.
    pub alpha: Scalar,
}

impl Celu {
    /// The exponent's slope that makes `elu` smooth.
    fn smooth(&self, op: &'static str) -> Result<Elu> {
        if self.alpha.as_f64() == 0.0 {
            return Err(Error::new(Cause::Argument, op, "alpha is 0, and x is divided by it"));
        }
        Ok(Elu { alpha: self.alpha, scale: 1.0.into(), input_scale: (1.0 / self.alpha.as_f64()).into() })
    }

    fn slope(&self, of_result: bool) -> EluBackward {
        let input_scale = Scalar::Float(1.0 / self.alpha.as_f64());
        EluBackward { alpha: self.alpha, scale: Scalar::Int(1), input_scale, of_result }
    }
}

impl Op for Celu {
    const NAME: &'static str = "aten::celu";
    const BACKWARD: &'static str = "CeluBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; self.slope(false).call([ctx.grad(), ctx.saved(0)])?)
    }

    fn arguments(&self, inputs: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        super::visit(inputs, &[self.alpha], visit);
    }
}

impl Kernel for Celu {
    const ELEMENTWISE: bool = true;
    kernel_table!(Celu);

    fn infer(&self, inputs: [&Tensor; 1]) -> Result<Spec> {
        self.smooth(Self::NAME)?.infer(inputs)
    }

    fn shown(&self, inputs: [&Tensor; 1]) -> Result<Option<Tensor>> {
        self.smooth(Self::NAME)?.call(inputs).map(Some)
    }

    fn cpu(&self, inputs: [&Tensor; 1], out: &Tensor) -> Result<()> {
        self.smooth(Self::NAME)?.cpu(inputs, out)
    }
}

impl InPlace for Celu {
    const IN_PLACE: &'static str = "aten::celu_";
    kernel_table!(in place Celu);

    fn cpu_in_place(&self, inputs: [&Tensor; 1]) -> Result<()> {
        self.smooth(Self::IN_PLACE)?.cpu_in_place(inputs)
    }

    fn shown_in_place(&self, inputs: [&Tensor; 1]) -> Result<Shown> {
        let elu = self.smooth(Self::IN_PLACE)?;
        let scalars = [elu.alpha, elu.scale, elu.input_scale].map(shown::plain);
        Ok(shown::call(Elu::IN_PLACE, inputs, &scalars).into())
    }

    fn backward_name_in_place(&self, _inputs: [&Tensor; 1]) -> &'static str {
        "CeluBackward1"
    }

    fn saves_in_place(&self) -> Saves {
        if self.alpha.as_f64() > 0.0 { Saves::Outputs } else { Saves::Inputs }
    }

    fn backward_in_place(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; self.slope(self.alpha.as_f64() > 0.0).call([ctx.grad(), ctx.saved(0)])?)
    }
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
        Celu { alpha: alpha.into() }.call([self])
    }

    /// [`celu`](Tensor::celu) in place.
    pub fn celu_(&self, alpha: impl Into<Scalar>) -> Result<()> {
        Celu { alpha: alpha.into() }.call_in_place([self])
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
