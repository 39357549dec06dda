//! Arithmetic of two operands, the second possibly a number.

use super::{apart, converted, operand};
use crate::aclnn;
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Kernel, Key, Operand, Result, Scalar, Tensor};

/// The library's numbers of quotients that are whole.
const TRUNCATED: i32 = 1;
const FLOORED: i32 = 2;

/// Both tensors in the element type of the result, where the library might choose another.
fn meet(a: &Tensor, b: &Tensor, out: &Tensor) -> Result<[Tensor; 2]> {
    Ok([converted(a, out.dtype())?, converted(b, out.dtype())?])
}

/// One line per operator that the library has for tensors and for numbers, with its attributes.
macro_rules! pairs {
    ($npu:ident; $($op:ident: $by_tensor:ident, $by_number:ident $(, $attribute:ident)?;)*) => {$(
        $op::table().register($npu, |_op, (a, b), out| match b {
            Operand::Scalar(b) => aclnn::$by_number(a, b, $(_op.$attribute,)? out),
            Operand::Tensor(b) => {
                let [a, b] = meet(a, b, out)?;
                aclnn::$by_tensor(&a, &b, $(_op.$attribute,)? out)
            }
        });
    )*};
}

/// One line per operator that the library has for tensors only.
macro_rules! tensors {
    ($npu:ident; $($op:ident: $call:ident;)*) => {$(
        $op::table().register($npu, |_, (a, b), out| {
            aclnn::$call(&converted(a, out.dtype())?, &operand(b, out.dtype(), out)?, out)
        });
    )*};
}

pub(super) fn register(npu: Key) {
    pairs! { npu;
        Add: add, adds, alpha;
        Sub: sub, subs, alpha;
        Rsub: rsub, rsubs, alpha;
        Mul: mul, muls;
        Div: div, divs;
        FloorDivide: floor_divide, floor_divides;
        Remainder: remainder_tensor_tensor, remainder_tensor_scalar;
        Fmod: fmod_tensor, fmod_scalar;
        Xlogy: x_log_y_tensor, x_log_y_scalar_other;
    }
    tensors! { npu;
        Maximum: maximum;
        Minimum: minimum;
        ClampMin: maximum;
        ClampMax: minimum;
        Atan2: atan2;
        Heaviside: heaviside;
        LogAddExp: log_add_exp;
    }
    Add::in_place_table().register(npu, |op, (a, b)| match b {
        Operand::Scalar(b) => aclnn::inplace_adds(a, b, op.alpha),
        Operand::Tensor(b) => aclnn::inplace_add(a, &apart(b, a)?, op.alpha),
    });
    Mul::in_place_table().register(npu, |_, (a, b)| match b {
        Operand::Scalar(b) => aclnn::inplace_muls(a, b),
        Operand::Tensor(b) => aclnn::inplace_mul(a, &apart(b, a)?),
    });
    Div::in_place_table().register(npu, |_, (a, b)| match b {
        Operand::Scalar(b) => aclnn::inplace_divs(a, b),
        Operand::Tensor(b) => aclnn::inplace_div(a, &apart(b, a)?),
    });
    DivRounded::table().register(npu, |op, (a, b), out| {
        let mode = match op.rounding {
            Rounding::Trunc => TRUNCATED,
            Rounding::Floor => FLOORED,
        };
        match b {
            Operand::Scalar(b) => aclnn::div_mods(&converted(a, out.dtype())?, b, mode, out),
            Operand::Tensor(b) => {
                let [a, b] = meet(a, b, out)?;
                aclnn::div_mod(&a, &b, mode, out)
            }
        }
    });
    Fmax::table().register(npu, |_, (a, b), out| extreme(a, b, out, aclnn::ge_tensor));
    Fmin::table().register(npu, |_, (a, b), out| extreme(a, b, out, aclnn::le_tensor));
    // The library has signs as truths only.
    Copysign::table().register(npu, |_, (a, b), out| {
        let (a, b) = (converted(a, out.dtype())?, operand(b, out.dtype(), out)?);
        let size = a.abs()?;
        let below = b.signbit()?.expand(out.shape())?;
        aclnn::s_where(&below, &size.neg()?.expand(out.shape())?, &size.expand(out.shape())?, out)
    });
    Clamp::table().register(npu, |_, (x, bounds), out| clamp(x, bounds, out));
    PowScalar::table().register(npu, |op, [a], out| match out.dtype() {
        // A truth to the power of a truth: itself, or true.
        DType::Bool if op.exponent.as_f64() == 0.0 => aclnn::inplace_fill_scalar(out, Scalar::Bool(true)),
        DType::Bool => aclnn::inplace_copy(out, a),
        _ => aclnn::pow_tensor_scalar(a, op.exponent, out),
    });
    PowTensor::table().register(npu, |_, [a, b], out| {
        let [a, b] = meet(a, b, out)?;
        aclnn::pow_tensor_tensor(&a, &b, out)
    });
    PowOf::table().register(npu, |op, [exponent], out| {
        aclnn::pow_scalar_tensor(op.base, &converted(exponent, out.dtype())?, out)
    });
}

/// The one of two that wins a comparison, or that is a number where the other is none.
fn extreme(
    a: &Tensor,
    b: Operand<'_>,
    out: &Tensor,
    wins: fn(&Tensor, &Tensor, &Tensor) -> Result<()>,
) -> Result<()> {
    let (a, b) = (converted(a, out.dtype())?, operand(b, out.dtype(), out)?);
    let first = super::beside(out, out.shape(), DType::Bool)?;
    wins(&a, &b, &first)?;
    let first = first.logical_or(&b.ne(&b)?)?;
    aclnn::s_where(&first, &a.expand(out.shape())?, &b.expand(out.shape())?, out)
}

fn clamp(x: &Tensor, bounds: [Option<Operand<'_>>; 2], out: &Tensor) -> Result<()> {
    let x = &converted(x, out.dtype())?;
    match bounds {
        [Some(Operand::Scalar(low)), Some(Operand::Scalar(high))] => aclnn::clamp(x, low, high, out),
        [Some(Operand::Scalar(low)), None] => aclnn::clamp_min(x, low, out),
        [None, Some(Operand::Scalar(high))] => aclnn::clamp_max(x, high, out),
        [low, high] => {
            let bound = |bound: Operand<'_>| operand(bound, out.dtype(), out);
            let above = match low {
                Some(low) => {
                    aclnn::maximum(x, &bound(low)?.expand(out.shape())?, out)?;
                    out
                }
                None => x,
            };
            high.map_or(Ok(()), |high| aclnn::minimum(above, &bound(high)?, out))
        }
    }
}
