//! Sums of three operands, as optimizers write them. The library has them in place only.

use super::apart;
use crate::aclnn;
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::{Addcdiv, Addcmul, Lerp};
use cresset_tensor::{Kernel, Key};

pub(super) fn register(npu: Key) {
    Addcmul::table().register(npu, |op, [a, b, c], out| {
        aclnn::inplace_copy(out, a)?;
        aclnn::inplace_addcmul(out, b, c, op.value)
    });
    Addcmul::in_place_table()
        .register(npu, |op, [a, b, c]| aclnn::inplace_addcmul(a, &apart(b, a)?, &apart(c, a)?, op.value));
    Addcdiv::table().register(npu, |op, [a, b, c], out| {
        aclnn::inplace_copy(out, a)?;
        aclnn::inplace_addcdiv(out, b, c, op.value)
    });
    Addcdiv::in_place_table()
        .register(npu, |op, [a, b, c]| aclnn::inplace_addcdiv(a, &apart(b, a)?, &apart(c, a)?, op.value));
    Lerp::table().register(npu, |op, [a, b], out| {
        aclnn::inplace_copy(out, a)?;
        aclnn::inplace_lerps(out, b, op.weight)
    });
    Lerp::in_place_table().register(npu, |op, [a, b]| aclnn::inplace_lerps(a, &apart(b, a)?, op.weight));
}
