//! Integers near each element. Their slope is 0 wherever they have one.

use super::{functions, kind};
use crate::autograd::Saves;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{elementwise, functions};

functions! {
    /// The next integer below each element.
    Floor, floor, floor_: rounding, saves Nothing, |grad, _x| grad.zeros_like();
    /// The next integer above each element.
    Ceil, ceil, ceil_: rounding, saves Nothing, |grad, _x| grad.zeros_like();
    /// The integer nearest to each element, halves to the even one.
    Round, round, round_: rounding, saves Nothing, |grad, _x| grad.zeros_like();
    /// The next integer from each element towards 0.
    Trunc, trunc, trunc_: rounding, saves Nothing, |grad, _x| grad.zeros_like();
    /// What [`trunc`](Tensor::trunc) cuts off.
    Frac, frac, frac_: only_float, saves Nothing, |grad, _x| Ok(grad.clone());
}

/// Each element rounded to so many decimals, halves to the even digit.
#[derive(Clone, Copy, Debug)]
pub struct RoundDecimals {
    /// How many; negative ones stand before the point.
    pub decimals: i64,
}

impl Op for RoundDecimals {
    const NAME: &'static str = "aten::round";
    const BACKWARD: &'static str = "RoundBackward1";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().zeros_like()?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.decimals));
    }
}

impl Kernel for RoundDecimals {
    const ELEMENTWISE: bool = true;
    kernel_table!(RoundDecimals);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        kind::only_float::infer(Self::NAME, x)
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        cpu::map(x, x.dtype(), out, |x, out| elementwise::round_decimals(self.decimals, x, out))
    }
}

impl InPlace for RoundDecimals {
    const IN_PLACE: &'static str = "aten::round_";
    kernel_table!(in place RoundDecimals);
}

impl Tensor {
    /// Each element rounded to so many decimals, halves to the even digit; negative ones stand
    /// before the point.
    pub fn round_decimals(&self, decimals: i64) -> Result<Tensor> {
        RoundDecimals { decimals }.call([self])
    }

    /// [`round_decimals`](Tensor::round_decimals) in place.
    pub fn round_decimals_(&self, decimals: i64) -> Result<()> {
        RoundDecimals { decimals }.call_in_place([self])
    }
}
