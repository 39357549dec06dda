//! Quotients that are whole numbers, and what they leave.

use super::pair::{self, Pair, pairs};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::{Backward, Grads, Inputs, Kernel, Op, Result, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::functions;

/// How a quotient becomes a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Towards minus infinity.
    Floor,
    /// Towards zero.
    Trunc,
}

/// `a / b` as a whole number, of the type that the operands meet at.
#[derive(Clone, Debug)]
pub struct DivRounded {
    /// Which whole number.
    pub rounding: Rounding,
}

impl Op for DivRounded {
    const NAME: &'static str = "aten::div";
    const BACKWARD: &'static str = "DivBackward2";
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().zeros_like()?, ctx.grad().zeros_like()?)
    }

    fn arguments(&self, inputs: Pair<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|given| visit(given.into_argument()));
        visit(Argument::Text(match self.rounding {
            Rounding::Floor => "floor",
            Rounding::Trunc => "trunc",
        }));
    }
}

impl Kernel for DivRounded {
    kernel_table!(DivRounded);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        pair::quotients::infer(Self::NAME, inputs)
    }

    fn cpu(&self, inputs: Pair<'_>, out: &Tensor) -> Result<()> {
        match self.rounding {
            Rounding::Floor => pair::quotients::run(Self::NAME, functions::DivFloor, inputs, out),
            Rounding::Trunc => pair::quotients::run(Self::NAME, functions::DivTrunc, inputs, out),
        }
    }
}

impl InPlace for DivRounded {
    const IN_PLACE: &'static str = "aten::div_";
    kernel_table!(in place DivRounded);

    fn cpu_in_place(&self, inputs: Pair<'_>) -> Result<()> {
        match self.rounding {
            Rounding::Floor => pair::quotients::change(self, functions::DivFloor, inputs),
            Rounding::Trunc => pair::quotients::change(self, functions::DivTrunc, inputs),
        }
    }
}

pairs! {
    /// The largest whole number that is not above the quotient of this and `other`. Has no gradient.
    FloorDivide, floor_divide / floor_divide_: "aten::floor_divide_"; "aten::floor_divide", "NotImplemented",
        saves Saves::Nothing, differentiable 0, quotients(functions::DivFloor),
        |ctx| grads!(ctx; ctx.grad().zeros_like()?, ctx.grad().zeros_like()?);
    /// What is left after division by `other`, with the sign of `other`.
    Remainder, remainder / remainder_: "aten::remainder_"; "aten::remainder", "RemainderBackward1" by number "RemainderBackward0",
        saves Saves::Inputs, differentiable 1, quotients(functions::Remainder), |ctx| grads!(ctx;
            ctx.grad().clone(),
            ctx.grad().neg()?.mul(&ctx.saved(0).div_rounded(ctx.operand(1), Rounding::Floor)?)?,
        );
    /// What is left after division by `other`, with the sign of this.
    Fmod, fmod / fmod_: "aten::fmod_"; "aten::fmod", "FmodBackward1" by number "FmodBackward0",
        saves Saves::Inputs, differentiable 1, quotients(functions::Fmod), |ctx| grads!(ctx;
            ctx.grad().clone(),
            ctx.grad().neg()?.mul(&ctx.saved(0).div_rounded(ctx.operand(1), Rounding::Trunc)?)?,
        );
}

impl Tensor {
    /// The quotient of this and `other` as a whole number. Integers stay integers.
    ///
    /// # Errors
    /// If an integer is divided by zero.
    pub fn div_rounded<'a>(&'a self, other: impl Into<Operand<'a>>, rounding: Rounding) -> Result<Tensor> {
        DivRounded { rounding }.call((self, other.into()))
    }

    /// As [`div_rounded`](Tensor::div_rounded), in place.
    pub fn div_rounded_<'a>(&'a self, other: impl Into<Operand<'a>>, rounding: Rounding) -> Result<()> {
        DivRounded { rounding }.call_in_place((self, other.into()))
    }
}
