//! Softmax and its logarithm.

use super::converted;
use crate::aclnn;
use cresset_tensor::ops::{LogSoftmax, LogSoftmaxBackward, Softmax, SoftmaxBackward};
use cresset_tensor::{Kernel, Key, Tensor};

/// One line per function and its gradient.
macro_rules! along_dim {
    ($npu:ident; $($op:ident: $call:ident, $back:ident: $back_call:ident;)*) => {$(
        $op::table().register($npu, |op, [x], out| {
            aclnn::$call(&converted(x, out.dtype())?, from_front(op.dim, x), out)
        });
        $back::table()
            .register($npu, |op, [grad, y], out| aclnn::$back_call(grad, y, from_front(op.dim, y), out));
    )*};
}

pub(super) fn register(npu: Key) {
    along_dim! { npu;
        Softmax: softmax, SoftmaxBackward: softmax_backward;
        LogSoftmax: log_softmax, LogSoftmaxBackward: log_softmax_backward;
    }
}

/// A dimension counted from the front.
fn from_front(dim: isize, x: &Tensor) -> i64 {
    dim.rem_euclid(x.dim().max(1) as isize) as i64
}
