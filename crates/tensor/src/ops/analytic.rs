//! Functions of two floats, as a table, and one with a step.

use super::pair::{self, Pair, pairs};
use crate::autograd::Saves;
use crate::op::{InPlace, Operand, kernel_table};
use crate::{Backward, Grads, Kernel, Op, Result, Scalar, Spec, Tensor, grads};
use cresset_kernels::functions;

pairs! {
    /// The angle of the point whose height is each element and whose width is that of the other.
    Atan2, atan2 / atan2_: "aten::atan2_"; "aten::atan2", "Atan2Backward0",
        saves Saves::Inputs, differentiable 1, floats(functions::Atan2), |ctx| {
            let (a, b) = (ctx.saved(0), ctx.operand(1));
            let squares = a.mul(a)?.add(&a.zeros_like()?.add(b)?.pow(2)?)?;
            let share = ctx.grad().div(&squares)?;
            grads!(ctx; share.mul(b)?, share.mul(&a.neg()?)?)
        };
    /// The size of each element with the sign of the other.
    Copysign, copysign / copysign_: "aten::copysign_"; "aten::copysign", "CopysignBackward0",
        saves Saves::FirstAndOutputs(1), differentiable 1, floats(functions::Copysign), |ctx| {
            let (a, out) = (ctx.saved(0), ctx.saved(2));
            grads!(ctx; ctx.grad().mul(&out.div(a)?.zero_where(&a.eq(0)?)?)?, ctx.grad().zeros_like()?)
        };
    /// The longest side of a right triangle, given the others.
    Hypot, hypot / hypot_: "aten::hypot_"; "aten::hypot", "HypotBackward0",
        saves Saves::Both, differentiable 1, only_floats(functions::Hypot), |ctx| {
            let (a, b, out) = (ctx.saved(0), ctx.operand(1), ctx.saved(2));
            grads!(ctx; ctx.grad().mul(&a.div(out)?)?, ctx.grad().mul(&out.reciprocal()?.mul(b)?)?)
        };
    /// `log(e^self + e^other)`, where the powers themselves might not fit.
    LogAddExp, logaddexp; "aten::logaddexp", "LogaddexpBackward0",
        saves Saves::Inputs, differentiable 1, only_floats(functions::LogAddExp), |ctx| {
            let (a, b) = (ctx.saved(0), ctx.operand(1));
            grads!(ctx;
                ctx.grad().div(&a.rsub(b)?.exp()?.add(1)?)?,
                ctx.grad().div(&a.sub(b)?.exp()?.add(1)?)?,
            )
        };
    /// `self * log(other)`; 0 where this is 0, unless the other is NaN.
    Xlogy, xlogy / xlogy_: "aten::xlogy_"; "aten::xlogy", "XlogyBackward0" by number "XlogyBackward2",
        saves Saves::Inputs, differentiable 1, floats(functions::Xlogy), |ctx| {
            let (a, b) = (ctx.saved(0), ctx.operand(1));
            grads!(ctx;
                1 => ctx.grad().mul(a)?.div(b)?,
                0 => {
                    let grad = ctx.grad().xlogy(b)?;
                    let undefined = at_most_zero(b, a)?;
                    grad.masked_fill(&a.eq(0.0)?.bitwise_and(&undefined)?, 0.0)?
                },
            )
        };
    /// 0 below 0 and 1 above; at 0 the element of the other. Has no gradient.
    Heaviside, heaviside / heaviside_: "aten::heaviside_"; "aten::heaviside", "NotImplemented",
        saves Saves::Nothing, differentiable 0, alike(functions::Heaviside),
        |ctx| grads!(ctx; ctx.grad().zeros_like()?, ctx.grad().zeros_like()?);
}

/// Where an operand is 0 or less.
fn at_most_zero(operand: Operand<'_>, like: &Tensor) -> Result<Tensor> {
    match operand {
        Operand::Tensor(tensor) => tensor.le(0.0),
        Operand::Scalar(number) => {
            like.new_full([], Scalar::Bool(number.as_f64() <= 0.0), crate::DType::Bool)
        }
    }
}
