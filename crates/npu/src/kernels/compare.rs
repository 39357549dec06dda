//! Comparison, logic, bits and choice.

use super::{apart, converted, operand};
use crate::aclnn;
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Kernel, Key, Operand, Result, Tensor};

/// One line per comparison: with tensors, and with numbers.
macro_rules! comparisons {
    ($npu:ident; $($op:ident: $by_tensor:ident, $by_number:ident;)*) => {$(
        $op::table().register($npu, |_, (a, b), out| match b {
            Operand::Scalar(b) => aclnn::$by_number(a, b, out),
            Operand::Tensor(b) => aclnn::$by_tensor(&meeting(a, b)?, &meeting(b, a)?, out),
        });
    )*};
}

/// One line per operator of truths, for which all but 0 is true.
macro_rules! logic {
    ($npu:ident; $($op:ident: $call:ident;)*) => {$(
        $op::table().register($npu, |_, (a, b), out| {
            aclnn::$call(&converted(a, DType::Bool)?, &operand(b, DType::Bool, out)?, out)
        });
    )*};
}

/// One line per operator of bits: with tensors, and with numbers.
macro_rules! bits {
    ($npu:ident; $($op:ident: $by_tensor:ident, $by_number:ident;)*) => {$(
        $op::table().register($npu, |_, (a, b), out| {
            let a = &converted(a, out.dtype())?;
            match b {
                Operand::Scalar(b) => aclnn::$by_number(a, b, out),
                Operand::Tensor(b) => aclnn::$by_tensor(a, &converted(b, out.dtype())?, out),
            }
        });
    )*};
}

pub(super) fn register(npu: Key) {
    comparisons! { npu;
        Equal: eq_tensor, eq_scalar;
        NotEqual: ne_tensor, ne_scalar;
        Less: lt_tensor, lt_scalar;
        LessEqual: le_tensor, le_scalar;
        Greater: gt_tensor, gt_scalar;
        GreaterEqual: ge_tensor, ge_scalar;
    }
    logic! { npu;
        LogicalAnd: logical_and;
        LogicalOr: logical_or;
        LogicalXor: logical_xor;
    }
    bits! { npu;
        BitwiseAnd: bitwise_and_tensor, bitwise_and_scalar;
        BitwiseOr: bitwise_or_tensor, bitwise_or_scalar;
        BitwiseXor: bitwise_xor_tensor, bitwise_xor_scalar;
    }
    Where::table().register(npu, |_, [a, b, condition], out| {
        let condition = spread(condition, DType::Bool, out)?;
        aclnn::s_where(&condition, &spread(a, out.dtype(), out)?, &spread(b, out.dtype(), out)?, out)
    });
    MaskedFill::table().register(npu, |_, [x, value, mask], out| {
        aclnn::inplace_copy(out, &spread(x, out.dtype(), out)?)?;
        masked_fill(out, value, mask)
    });
    MaskedFill::in_place_table().register(npu, |_, [x, value, mask]| match x {
        Operand::Tensor(x) => masked_fill(x, value, mask),
        Operand::Scalar(_) => unreachable!("`infer` refuses to fill a number"),
    });
}

/// Fills `x` where the mask is true. The library is given masks that do not change meanwhile.
fn masked_fill(x: &Tensor, value: Operand<'_>, mask: Operand<'_>) -> Result<()> {
    let mask = spread(mask, DType::Bool, x)?;
    match value {
        Operand::Scalar(value) => aclnn::inplace_masked_fill_scalar(x, &mask, value),
        Operand::Tensor(value) => aclnn::inplace_masked_fill_tensor(x, &mask, &apart(value, x)?),
    }
}

/// An operand as a tensor of `dtype` and the shape of `out`.
fn spread(given: Operand<'_>, dtype: DType, out: &Tensor) -> Result<Tensor> {
    operand(given, dtype, out)?.expand(out.shape())
}

/// `a` in the type that arithmetic with `b` would give.
fn meeting(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    converted(a, Add { alpha: super::ONE }.infer((a, Operand::Tensor(b)))?.dtype)
}
