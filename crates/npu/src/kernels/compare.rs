//! Comparison and choice.

use super::{ONE, converted};
use crate::aclnn;
use cresset_tensor::ops::{Add, Equal, Where};
use cresset_tensor::{DType, Kernel, Key, Operand};

pub(super) fn register(npu: Key) {
    Equal::table().register(npu, |_, (a, b), out| match b {
        Operand::Scalar(b) => aclnn::eq_scalar(a, b, out),
        Operand::Tensor(other) => {
            // Compared in the type that arithmetic would give; only truths have no arithmetic.
            let dtype = Add { alpha: ONE }.infer((a, b)).map_or(DType::Bool, |spec| spec.dtype);
            aclnn::eq_tensor(&converted(a, dtype)?, &converted(other, dtype)?, out)
        }
    });
    Where::table().register(npu, |_, [a, b, condition], out| aclnn::s_where(condition, a, b, out));
}
