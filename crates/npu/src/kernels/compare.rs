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
    Where::table().register(npu, |_, [a, b, condition], out| aclnn::s_where(condition, a, b, out));
}

/// `a` in the type that arithmetic with `b` would give; only truths have no arithmetic.
fn meeting(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let dtype = Add { alpha: ONE }.infer((a, Operand::Tensor(b))).map_or(DType::Bool, |spec| spec.dtype);
    converted(a, dtype)
}
