//! Activations, and the derivatives that have operators of their own.

use crate::aclnn;
use cresset_tensor::ops::{
    Relu, SigmoidBackward, Softplus, SoftplusBackward, TanhBackward, ThresholdBackward,
};
use cresset_tensor::{Kernel, Key};

pub(super) fn register(npu: Key) {
    Relu::table().register(npu, |_, [x], out| aclnn::relu(x, out));
    Softplus::table().register(npu, |op, [x], out| aclnn::softplus(x, op.beta, op.threshold, out));
    SoftplusBackward::table()
        .register(npu, |op, [grad, x], out| aclnn::softplus_backward(grad, x, op.beta, op.threshold, out));
    ThresholdBackward::table()
        .register(npu, |op, [grad, x], out| aclnn::threshold_backward(grad, x, op.threshold, out));
    TanhBackward::table().register(npu, |_, [grad, y], out| aclnn::tanh_backward(grad, y, out));
    SigmoidBackward::table().register(npu, |_, [grad, y], out| aclnn::sigmoid_backward(grad, y, out));
}
