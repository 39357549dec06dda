//! The logarithm of softmax.

use super::converted;
use crate::aclnn;
use cresset_tensor::ops::{LogSoftmax, LogSoftmaxBackward};
use cresset_tensor::{Kernel, Key, Tensor};

pub(super) fn register(npu: Key) {
    LogSoftmax::table().register(npu, |op, [x], out| {
        aclnn::log_softmax(&converted(x, out.dtype())?, from_front(op.dim, x), out)
    });
    LogSoftmaxBackward::table()
        .register(npu, |op, [grad, y], out| aclnn::log_softmax_backward(grad, y, from_front(op.dim, y), out));
}

/// A dimension counted from the front.
fn from_front(dim: isize, x: &Tensor) -> i64 {
    dim.rem_euclid(x.dim().max(1) as isize) as i64
}
