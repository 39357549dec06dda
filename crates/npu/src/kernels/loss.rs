//! Losses of classes, distances and probabilities, and their gradients.

use super::{converted, filled};
use crate::aclnn;
use cresset_tensor::ops::*;
use cresset_tensor::{Kernel, Key, Result, Scalar, Tensor};

/// The library wants a weight per class or element, so there are ones.
fn weights(x: &Tensor, shape: &[usize], given: Option<&Tensor>) -> Result<Tensor> {
    match given {
        Some(weight) => Ok(weight.clone()),
        None => filled(x, shape, x.dtype(), 1),
    }
}

pub(super) fn register(npu: Key) {
    NllLoss::table().register(npu, |op, ([x, target], weight), [out, total]| {
        let (weight, reduction) = (weights(x, &x.shape()[1..], weight)?, reduction_number(op.reduction));
        aclnn::nll_loss(x, target, &weight, reduction, op.ignore_index, out, total)
    });
    NllLossBackward::table().register(npu, |op, ([grad, x, target, total], weight), out| {
        let (weight, reduction) = (weights(x, &x.shape()[1..], weight)?, reduction_number(op.reduction));
        aclnn::nll_loss_backward(grad, x, target, &weight, reduction, op.ignore_index, total, out)
    });
    DistanceLoss::<Square>::table().register(npu, |op, inputs, out| {
        let [x, target] = met(inputs, out)?;
        aclnn::mse_loss(&x, &target, reduction_number(op.reduction), out)
    });
    DistanceLossBackward::<Square>::table().register(npu, |op, [grad, x, target], out| {
        let [x, target] = met([x, target], out)?;
        aclnn::mse_loss_backward(grad, &x, &target, reduction_number(op.reduction), out)
    });
    DistanceLoss::<SmoothL1>::table().register(npu, |op, inputs, out| {
        let ([x, target], beta) = (met(inputs, out)?, op.distance.beta as f32);
        aclnn::smooth_l1_loss(&x, &target, reduction_number(op.reduction), beta, out)
    });
    DistanceLossBackward::<SmoothL1>::table().register(npu, |op, [grad, x, target], out| {
        let ([x, target], beta) = (met([x, target], out)?, op.distance.beta as f32);
        aclnn::smooth_l1_loss_backward(grad, &x, &target, reduction_number(op.reduction), beta, out)
    });
    // What the library rounds off within delta is a delta-th of this loss.
    DistanceLoss::<Huber>::table().register(npu, |op, inputs, out| {
        let ([x, target], delta) = (met(inputs, out)?, op.distance.delta);
        aclnn::smooth_l1_loss(&x, &target, reduction_number(op.reduction), delta as f32, out)?;
        aclnn::inplace_muls(out, Scalar::Float(delta))
    });
    DistanceLossBackward::<Huber>::table().register(npu, |op, [grad, x, target], out| {
        let ([x, target], delta) = (met([x, target], out)?, op.distance.delta);
        aclnn::smooth_l1_loss_backward(grad, &x, &target, reduction_number(op.reduction), delta as f32, out)?;
        aclnn::inplace_muls(out, Scalar::Float(delta))
    });
    BinaryCrossEntropy::table().register(npu, |op, ([x, target], weight), out| {
        let weight = weights(x, x.shape(), weight)?;
        aclnn::binary_cross_entropy(x, target, Some(&weight), reduction_number(op.reduction), out)
    });
    BinaryCrossEntropyBackward::table().register(npu, |op, ([grad, x, target], weight), out| {
        aclnn::binary_cross_entropy_backward(grad, x, target, weight, reduction_number(op.reduction), out)
    });
    Logit::table()
        .register(npu, |op, [x], out| aclnn::logit(&converted(x, out.dtype())?, op.eps.unwrap_or(-1.0), out));
    LogitBackward::table()
        .register(npu, |op, [grad, x], out| aclnn::logit_grad(x, grad, op.eps.unwrap_or(-1.0), out));
}

/// Predictions and targets in the element type of the result.
fn met([x, target]: [&Tensor; 2], out: &Tensor) -> Result<[Tensor; 2]> {
    Ok([converted(x, out.dtype())?, converted(target, out.dtype())?])
}
