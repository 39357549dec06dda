//! Functions of one operand.

use crate::aclnn;
use cresset_tensor::ops::{Exp, Log, Neg, Reciprocal, Sigmoid, Sqrt, Tanh};
use cresset_tensor::{Kernel, Key};

pub(super) fn register(npu: Key) {
    Neg::table().register(npu, |_, [x], out| aclnn::neg(x, out));
    Exp::table().register(npu, |_, [x], out| aclnn::exp(x, out));
    Log::table().register(npu, |_, [x], out| aclnn::log(x, out));
    Sqrt::table().register(npu, |_, [x], out| aclnn::sqrt(x, out));
    Reciprocal::table().register(npu, |_, [x], out| aclnn::reciprocal(x, out));
    Tanh::table().register(npu, |_, [x], out| aclnn::tanh(x, out));
    Sigmoid::table().register(npu, |_, [x], out| aclnn::sigmoid(x, out));
}
