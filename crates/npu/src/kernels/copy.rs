//! Filling, copying and converting.

use super::apart;
use crate::aclnn;
use cresset_tensor::op::InPlace;
use cresset_tensor::ops::{Copy, Fill, Zero};
use cresset_tensor::{Kernel, Key};

pub(super) fn register(npu: Key) {
    Copy::table().register(npu, |_, [_, from], out| aclnn::inplace_copy(out, from));
    Copy::in_place_table().register(npu, |_, [to, from]| {
        // The library converts on the way; only memory that is written must be copied first.
        if from.storage().same_as(to.storage()) {
            return aclnn::inplace_copy(to, &apart(from, to)?);
        }
        aclnn::inplace_copy(to, from)
    });
    Fill::table().register(npu, |op, _, out| aclnn::inplace_fill_scalar(out, op.value));
    Fill::in_place_table().register(npu, |op, [x]| aclnn::inplace_fill_scalar(x, op.value));
    Zero::table().register(npu, |_, _, out| aclnn::inplace_zero(out));
    Zero::in_place_table().register(npu, |_, [x]| aclnn::inplace_zero(x));
}
