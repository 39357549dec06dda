//! Losses for classification. The library wants a weight per class, so there are ones.

use super::filled;
use crate::aclnn;
use cresset_tensor::ops::{NllLoss, NllLossBackward, reduction_number};
use cresset_tensor::{Kernel, Key, Result, Tensor};

fn weights(x: &Tensor, given: Option<&Tensor>) -> Result<Tensor> {
    match given {
        Some(weight) => Ok(weight.clone()),
        None => filled(x, &x.shape()[1..], x.dtype(), 1),
    }
}

pub(super) fn register(npu: Key) {
    NllLoss::table().register(npu, |op, ([x, target], weight), [out, total]| {
        let (weight, reduction) = (weights(x, weight)?, reduction_number(op.reduction));
        aclnn::nll_loss(x, target, &weight, reduction, op.ignore_index, out, total)
    });
    NllLossBackward::table().register(npu, |op, ([grad, x, target, total], weight), out| {
        let (weight, reduction) = (weights(x, weight)?, reduction_number(op.reduction));
        aclnn::nll_loss_backward(grad, x, target, &weight, reduction, op.ignore_index, total, out)
    });
}
