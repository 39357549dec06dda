//! Quotients that are whole numbers, and what they leave.

use super::pair::{self, Pair, pairs};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, Shown, kernel_table};
use crate::{Backward, Device, Grads, Inputs, Kernel, Op, Result, Spec, Tensor, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::functions;
use smallvec::SmallVec;

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

impl Rounding {
    fn argument(self) -> Argument<'static> {
        Argument::Text(match self {
            Rounding::Floor => "floor",
            Rounding::Trunc => "trunc",
        })
    }
}

impl Op for DivRounded {
    const NAME: &'static str = "aten::div";
    const BACKWARD: &'static str = "DivBackward2";
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; shown::zeros_typed(ctx.grad())?, shown::zeros_typed(ctx.grad())?)
    }

    fn arguments(&self, inputs: Pair<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|given| visit(given.into_argument()));
        visit(self.rounding.argument());
    }
}

impl Kernel for DivRounded {
    const ELEMENTWISE: bool = true;
    kernel_table!(DivRounded);

    fn shown(&self, inputs: Pair<'_>) -> Result<Option<Tensor>> {
        pair::shown(self, inputs, &[self.rounding.argument()])
    }

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
    /// What is left after division by `other`, with the sign of `other`.
    Remainder, remainder / remainder_: "aten::remainder_"; "aten::remainder", "RemainderBackward1" by number "RemainderBackward0",
        saves Saves::Inputs, differentiable 1, quotients(functions::Remainder), |ctx| grads!(ctx;
            ctx.grad().clone(),
            divided(ctx, Rounding::Floor)?,
        );
    /// What is left after division by `other`, with the sign of this.
    Fmod, fmod / fmod_: "aten::fmod_"; "aten::fmod", "FmodBackward1" by number "FmodBackward0",
        saves Saves::Inputs, differentiable 1, quotients(functions::Fmod), |ctx| grads!(ctx;
            ctx.grad().clone(),
            divided(ctx, Rounding::Trunc)?,
        );
}

/// The largest whole number that is not above a quotient. Has no gradient.
#[derive(Clone, Debug)]
pub struct FloorDivide;

impl Op for FloorDivide {
    const NAME: &'static str = "aten::floor_divide";
    const BACKWARD: &'static str = "NotImplemented";
    const DIFFERENTIABLE: usize = 0;
    type Inputs<'a> = Pair<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().zeros_like()?, ctx.grad().zeros_like()?)
    }
}

impl Kernel for FloorDivide {
    const ELEMENTWISE: bool = true;
    kernel_table!(FloorDivide);

    fn infer(&self, inputs: Pair<'_>) -> Result<Spec> {
        pair::quotients::infer(Self::NAME, inputs)
    }

    /// Torch's iterator over elements makes the output.
    fn shown(&self, (a, b): Pair<'_>) -> Result<Option<Tensor>> {
        let spec = self.infer((a, b))?;
        let met = shown::meet(Self::NAME, (a, b), spec.dtype, None)?;
        let (a, b) = met.as_ref().map_or((a, b), |met| met.pair((a, b)));
        let operands: SmallVec<[&Tensor; 2]> = std::iter::once(a).chain(b.tensor()).collect();
        let out = shown::iterated(&spec, &operands, b.tensor().is_some())?;
        self.fill((a, b), &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, inputs: Pair<'_>, out: &Tensor) -> Result<()> {
        pair::quotients::run(Self::NAME, functions::DivFloor, inputs, out)
    }
}

impl InPlace for FloorDivide {
    const IN_PLACE: &'static str = "aten::floor_divide_";
    kernel_table!(in place FloorDivide);

    fn cpu_in_place(&self, inputs: Pair<'_>) -> Result<()> {
        pair::quotients::change(self, functions::DivFloor, inputs)
    }

    fn shown_in_place(&self, inputs: Pair<'_>) -> Result<Shown> {
        pair::shown_in_place(self, inputs, &[])
    }
}

/// The gradient of what a remainder is left by.
fn divided(ctx: &Backward<'_>, rounding: Rounding) -> Result<Tensor> {
    let quotient = ctx.saved(0).div_rounded(ctx.operand(1), rounding)?;
    ctx.grad().neg()?.mul(&quotient)
}

impl Tensor {
    /// The largest whole number that is not above the quotient of this and `other`. Has no gradient.
    pub fn floor_divide<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        pair::call(FloorDivide, self, other.into())
    }

    /// As [`floor_divide`](Tensor::floor_divide), in place.
    pub fn floor_divide_<'a>(&'a self, other: impl Into<Operand<'a>>) -> Result<()> {
        pair::call_in_place(FloorDivide, self, other.into())
    }

    /// The quotient of this and `other` as a whole number. Integers stay integers.
    ///
    /// # Errors
    /// If an integer is divided by zero.
    pub fn div_rounded<'a>(&'a self, other: impl Into<Operand<'a>>, rounding: Rounding) -> Result<Tensor> {
        pair::call(DivRounded { rounding }, self, other.into())
    }

    /// As [`div_rounded`](Tensor::div_rounded), in place.
    pub fn div_rounded_<'a>(&'a self, other: impl Into<Operand<'a>>, rounding: Rounding) -> Result<()> {
        pair::call_in_place(DivRounded { rounding }, self, other.into())
    }
}
