//! Optimizer steps in one pass over each parameter.

use super::{beside, filled};
use crate::aclnn;
use cresset_tensor::ops::{AdamStep, FusedAdam};
use cresset_tensor::{Cause, DType, Error, Kernel, Key, Op, Result, Scalar, Tensor};

pub(super) fn register(npu: Key) {
    FusedAdam::table().register(npu, |op, inputs, ()| adam(op.step, inputs));
}

fn adam(step: AdamStep, inputs: &[&Tensor]) -> Result<()> {
    let Some(first) = inputs.first() else { return Ok(()) };
    if step.amsgrad {
        return Err(Error::new(Cause::Argument, FusedAdam::NAME, "amsgrad needs a fifth list of tensors"));
    }
    // The library counts the step itself, so it is given how many there were before.
    let before = filled(first, &[1], DType::I64, step.step.saturating_sub(1) as i64)?;
    let decay = if step.decoupled { step.weight_decay } else { 0.0 };
    for [param, grad, mean, square] in FusedAdam::groups(inputs) {
        let grad = pulled(step, param, grad)?;
        aclnn::apply_adam_w_v2(
            param,
            mean,
            square,
            None,
            &grad,
            &before,
            step.lr as f32,
            step.beta1 as f32,
            step.beta2 as f32,
            decay as f32,
            step.eps as f32,
            false,
            step.maximize,
        )?;
    }
    Ok(())
}

/// The gradient with the pull of a decay that is not decoupled, which the library does not
/// know. It turns the sign of the whole if the step goes up, so the pull is turned before.
fn pulled(step: AdamStep, param: &Tensor, grad: &Tensor) -> Result<Tensor> {
    if step.decoupled || step.weight_decay == 0.0 {
        return Ok(grad.clone());
    }
    let out = beside(grad, grad.shape(), grad.dtype())?;
    let pull = if step.maximize { aclnn::sub } else { aclnn::add };
    pull(grad, param, Scalar::Float(step.weight_decay), &out)?;
    Ok(out)
}
