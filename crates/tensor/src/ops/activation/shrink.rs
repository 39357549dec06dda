//! Shrinkers: what is near 0 becomes 0.

use super::{activations, attributes, derivatives, in_place};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::ops::unary::kind;
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Float, functions};

activations! { only_float, Unary of Float:
    /// `x`, or 0 where `x` is from `-lambda` to `lambda`.
    Hardshrink { lambda: Scalar } = "aten::hardshrink", hardshrink: saves Inputs,
        |x| if x >= -lambda && x <= lambda { T::ZERO } else { x },
        |grad, x| HardshrinkBackward { lambda }.call([grad, x]);
    /// `x` moved towards 0 by `lambda`, but not beyond.
    Softshrink { lambda: Scalar } = "aten::softshrink", softshrink: saves Inputs, if check,
        |x| if x > lambda { x - lambda } else if x < -lambda { x + lambda } else { x * T::ZERO },
        |grad, x| SoftshrinkBackward { lambda }.call([grad, x]);
}

derivatives! {
    /// The gradient, or 0 where the input was from `-lambda` to `lambda`.
    HardshrinkBackward { lambda: Scalar } = "aten::hardshrink_backward",
        |grad, x| if x >= -lambda && x <= lambda { T::ZERO } else { grad },
        |_upstream, _grad, x| x.zeros_like();
    /// The gradient, or 0 where the input was from `-lambda` to `lambda`.
    SoftshrinkBackward { lambda: Scalar } = "aten::softshrink_backward",
        |grad, x| if x >= -lambda && x <= lambda { T::ZERO } else { grad },
        |_upstream, _grad, x| x.zeros_like();
}

impl Softshrink {
    fn check(&self, _x: &Tensor) -> Result<()> {
        if self.lambda.as_f64() >= 0.0 {
            return Ok(());
        }
        let text = format_args!("lambda is {}, expected a number that is not negative", self.lambda.as_f64());
        Err(Error::new(Cause::Argument, Self::NAME, text))
    }
}

impl Tensor {
    /// `x - tanh(x)`
    pub fn tanhshrink(&self) -> Result<Tensor> {
        self.sub(&self.tanh()?)
    }
}
