//! Optimizer steps in one pass over each parameter.

use super::{beside, filled};
use crate::aclnn;
use cresset_tensor::ops::{AdamStep, Batch, FusedAdam, FusedAdamW};
use cresset_tensor::{DType, Kernel, Key, Result, Scalar, Tensor};

pub(super) fn register(npu: Key) {
    FusedAdam::table().register(npu, |_, batch, ()| adam(batch));
    FusedAdamW::table().register(npu, |_, batch, ()| adam(batch));
}

fn adam(batch: Batch<'_, AdamStep>) -> Result<()> {
    let mut counted: Option<(u64, Tensor)> = None;
    for (param, grad, states, step) in batch.each() {
        if param.dtype() == DType::F64 {
            adam_in_parts(*step, param, grad, states)?;
            continue;
        }
        // The library counts the step itself, so it is given how many there were before.
        let before = match &counted {
            Some((count, before)) if *count == step.step => before.clone(),
            _ => filled(param, &[1], DType::I64, step.step.saturating_sub(1) as i64)?,
        };
        counted = Some((step.step, before.clone()));
        let decay = if step.decoupled { step.weight_decay } else { 0.0 };
        let grad = pulled(*step, param, grad)?;
        aclnn::apply_adam_w_v2(
            param,
            &states[0],
            &states[1],
            states.get(2),
            &grad,
            &before,
            step.lr as f32,
            step.beta1 as f32,
            step.beta2 as f32,
            decay as f32,
            step.eps as f32,
            step.amsgrad,
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

/// As the library's step, whose numbers are of single precision, for parameters of double.
fn adam_in_parts(step: AdamStep, param: &Tensor, grad: &Tensor, states: &[Tensor]) -> Result<()> {
    let number = Scalar::Float;
    let correction = |beta: f64| 1.0 - beta.powf(step.step as f64);
    let grad = pulled(step, param, grad)?;
    if step.decoupled {
        aclnn::inplace_muls(param, number(1.0 - step.lr * step.weight_decay))?;
    }
    let turned = beside(&grad, grad.shape(), grad.dtype())?;
    aclnn::muls(&grad, number(if step.maximize { -1.0 } else { 1.0 }), &turned)?;
    aclnn::inplace_lerps(&states[0], &turned, number(1.0 - step.beta1))?;
    aclnn::inplace_muls(&states[1], number(step.beta2))?;
    aclnn::inplace_addcmul(&states[1], &turned, &turned, number(1.0 - step.beta2))?;
    let divisor = beside(param, param.shape(), param.dtype())?;
    match states.get(2).filter(|_| step.amsgrad) {
        Some(largest) => {
            aclnn::maximum(&super::copied(largest, largest.dtype())?, &states[1], largest)?;
            aclnn::sqrt(largest, &divisor)?;
        }
        None => aclnn::sqrt(&states[1], &divisor)?,
    }
    aclnn::inplace_muls(&divisor, number(1.0 / correction(step.beta2).sqrt()))?;
    aclnn::inplace_adds(&divisor, number(step.eps), super::ONE)?;
    aclnn::inplace_addcdiv(param, &states[0], &divisor, number(-step.lr / correction(step.beta1)))
}
