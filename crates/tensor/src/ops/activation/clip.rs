//! Straight lines between two bounds.

use super::{activations, attributes, derivatives, in_place};
use crate::autograd::Saves;
use crate::composite::composite;
use crate::op::{InPlace, kernel_table};
use crate::ops::unary::kind;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Float, Number, functions};

activations! { number, NumberUnary of Number:
    /// `x`, but at least `min` and at most `max`.
    Hardtanh { min: Scalar, max: Scalar } = "aten::hardtanh", hardtanh, hardtanh_: saves Inputs, if check, shows through_clamp,
        |x| if x < min { min } else if x > max { max } else { x },
        |grad, x| HardtanhBackward { min, max }.call([grad, x]);
}

activations! { only_float, Unary of Float:
    /// A straight line from 0 at -3 to 1 at 3.
    Hardsigmoid = "aten::hardsigmoid", hardsigmoid, hardsigmoid_: saves Inputs,
        |x| six(x) / T::narrow(6.0),
        |grad, x| HardsigmoidBackward.call([grad, x]);
    /// `x` times its [`hardsigmoid`](Tensor::hardsigmoid).
    Hardswish = "aten::hardswish", hardswish, hardswish_: saves Inputs, shows hardswish_memory,
        |x| x * six(x) / T::narrow(6.0),
        |grad, x| HardswishBackward.call([grad, x]);
}

derivatives! {
    /// The gradient where the input was between `min` and `max`, 0 elsewhere.
    HardtanhBackward { min: Scalar, max: Scalar } = "aten::hardtanh_backward", shows hardtanh_gradient_memory,
        |grad, x| if x <= min || x >= max { T::ZERO } else { grad },
        |_upstream, _grad, x| x.zeros_like();
    /// A sixth of the gradient where the input was between -3 and 3, 0 elsewhere.
    HardsigmoidBackward = "aten::hardsigmoid_backward",
        |grad, x| if x > T::narrow(-3.0) && x < T::narrow(3.0) { grad / T::narrow(6.0) } else { T::ZERO },
        |_upstream, _grad, x| x.zeros_like();
    /// The gradient times a straight line from -1/2 at -3 to 3/2 at 3; 0 below, and itself above.
    HardswishBackward = "aten::hardswish_backward", shows hardswish_gradient_memory,
        |grad, x| {
            let three = T::narrow(3.0);
            if x <= -three { T::ZERO } else if x < three { grad * (x / three + T::narrow(0.5)) } else { grad }
        },
        |upstream, grad, x| {
            let nothing = Tensor::zeros([], (x.dtype(), x.device()))?;
            let bent = upstream.mul(grad)?.div(3.0)?;
            let below = x.lt(3.0)?;
            bent.where_(&x.gt(-3.0)?.logical_and(&below)?, &nothing)
        };
}

/// Torch makes memory for the output, and has it filled by the operator that clamps.
fn through_clamp(op: &Hardtanh, [x]: [&Tensor; 1]) -> Result<Tensor> {
    op.infer([x])?;
    let out = x.empty_like()?;
    let more = [shown::plain(op.min), shown::plain(op.max), Argument::Tensor(out.argument())];
    shown::within(Hardtanh::NAME, [x], &more, || {
        shown::within("aten::clamp", [x], &more, || {
            x.to(x.dtype())?;
            op.fill([x], &out, out.device())?;
            Ok(out.clone())
        })
    })
}

fn hardswish_memory(op: &Hardswish, inputs: [&Tensor; 1]) -> Result<Tensor> {
    shown::into_iterated(op, inputs)
}

fn hardtanh_gradient_memory(op: &HardtanhBackward, inputs: [&Tensor; 2]) -> Result<Tensor> {
    shown::into_iterated(op, inputs)
}

fn hardswish_gradient_memory(op: &HardswishBackward, inputs: [&Tensor; 2]) -> Result<Tensor> {
    shown::into_iterated(op, inputs)
}

/// `x + 3`, but at least 0 and at most 6.
#[inline(always)]
fn six<T: Float>(x: T) -> T {
    let (shifted, six) = (x + T::narrow(3.0), T::narrow(6.0));
    if shifted < T::ZERO {
        T::ZERO
    } else if shifted > six {
        six
    } else {
        shifted
    }
}

impl Hardtanh {
    fn check(&self, x: &Tensor) -> Result<()> {
        let [min, max] = [self.min, self.max].map(Scalar::as_f64);
        if min > max {
            let text = format_args!("the lower bound {min} is above the upper bound {max}");
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        if x.dtype() == DType::U8 && min.min(max) < 0.0 {
            let text = format_args!("bounds {min} and {max} for u8, which has no negative numbers");
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        Ok(())
    }
}

impl Tensor {
    /// `x`, but at least 0 and at most 6.
    pub fn relu6(&self) -> Result<Tensor> {
        let _span = composite("aten::relu6", [self], |_| ());
        self.hardtanh(0, 6)
    }

    /// [`relu6`](Tensor::relu6) in place.
    pub fn relu6_(&self) -> Result<()> {
        let _span = composite("aten::relu6_", [self], |_| ());
        self.hardtanh_(0, 6)
    }
}
