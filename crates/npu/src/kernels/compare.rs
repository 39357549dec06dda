//! Comparison and choice.

use super::{ONE, converted};
use crate::aclnn;
use cresset_tensor::ops::{Add, Equal, Greater, Where};
use cresset_tensor::{DType, Kernel, Key, Operand, Result, Tensor};

pub(super) fn register(npu: Key) {
    Equal::table().register(npu, |_, (a, b), out| match b {
        Operand::Scalar(b) => aclnn::eq_scalar(a, b, out),
        Operand::Tensor(b) => aclnn::eq_tensor(&meeting(a, b)?, &meeting(b, a)?, out),
    });
    Greater::table().register(npu, |_, (a, b), out| match b {
        Operand::Scalar(b) => aclnn::gt_scalar(a, b, out),
        Operand::Tensor(b) => aclnn::gt_tensor(&meeting(a, b)?, &meeting(b, a)?, out),
    });
    Where::table().register(npu, |_, [a, b, condition], out| {
        let condition = filled(condition, DType::Bool, out)?;
        aclnn::s_where(&condition, &filled(a, out.dtype(), out)?, &filled(b, out.dtype(), out)?, out)
    });
}

/// An operand as a tensor of `dtype` and the shape of `out`.
fn filled(operand: Operand<'_>, dtype: DType, out: &Tensor) -> Result<Tensor> {
    match operand {
        Operand::Tensor(tensor) => converted(tensor, dtype)?.expand(out.shape()),
        Operand::Scalar(number) => out.new_full([], number, dtype)?.expand(out.shape()),
    }
}

/// `a` in the type that arithmetic with `b` would give.
fn meeting(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    converted(a, Add { alpha: ONE }.infer((a, Operand::Tensor(b)))?.dtype)
}
