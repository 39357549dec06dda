//! The logarithm of softmax.

use super::converted;
use crate::aclnn;
use cresset_tensor::ops::{LogSoftmax, LogSoftmaxBackward};
use cresset_tensor::{Kernel, Key};

pub(super) fn register(npu: Key) {
    LogSoftmax::table()
        .register(npu, |op, [x], out| aclnn::log_softmax(&converted(x, out.dtype())?, op.dim as i64, out));
    LogSoftmaxBackward::table()
        .register(npu, |op, [grad, y], out| aclnn::log_softmax_backward(grad, y, op.dim as i64, out));
}
