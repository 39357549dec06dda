//! Optimizer steps: Adam in one pass over each parameter, others in parts.

use super::{beside, filled};
use crate::aclnn;
use cresset_tensor::ops::{
    AdagradStep, AdamStep, Batch, FusedAdagrad, FusedAdam, FusedAdamW, FusedSgd, SgdStep,
};
use cresset_tensor::{DType, Kernel, Key, Result, Scalar, Tensor};

pub(super) fn register(npu: Key) {
    FusedAdam::table().register(npu, |_, batch, ()| adam(batch));
    FusedAdamW::table().register(npu, |_, batch, ()| adam(batch));
    FusedSgd::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| sgd(*step, param, grad, states.first()))
    });
    FusedAdagrad::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| adagrad(*step, param, grad, &states[0]))
    });
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

/// The library has no such step: one call per part of it.
fn sgd(step: SgdStep, param: &Tensor, grad: &Tensor, kept: Option<&Tensor>) -> Result<()> {
    let number = Scalar::Float;
    let grad = turned(param, grad, step.weight_decay, step.maximize)?;
    let Some(kept) = kept else { return aclnn::inplace_add(param, &grad, number(-step.lr)) };
    if step.first {
        aclnn::inplace_copy(kept, &grad)?;
    } else {
        aclnn::inplace_muls(kept, number(step.momentum))?;
        aclnn::inplace_add(kept, &grad, number(1.0 - step.dampening))?;
    }
    if !step.nesterov {
        return aclnn::inplace_add(param, kept, number(-step.lr));
    }
    aclnn::inplace_add(&grad, kept, number(step.momentum))?;
    aclnn::inplace_add(param, &grad, number(-step.lr))
}

fn adagrad(step: AdagradStep, param: &Tensor, grad: &Tensor, sum: &Tensor) -> Result<()> {
    let grad = turned(param, grad, step.weight_decay, step.maximize)?;
    aclnn::inplace_addcmul(sum, &grad, &grad, super::ONE)?;
    let divisor = beside(param, param.shape(), param.dtype())?;
    aclnn::sqrt(sum, &divisor)?;
    aclnn::inplace_adds(&divisor, Scalar::Float(step.eps), super::ONE)?;
    aclnn::inplace_addcdiv(param, &grad, &divisor, Scalar::Float(-step.lr))
}

/// The gradient downwards in memory of its own, with the pull of a decay.
fn turned(param: &Tensor, grad: &Tensor, decay: f64, maximize: bool) -> Result<Tensor> {
    let out = beside(grad, grad.shape(), grad.dtype())?;
    aclnn::muls(grad, Scalar::Int(if maximize { -1 } else { 1 }), &out)?;
    if decay != 0.0 {
        aclnn::inplace_add(&out, param, Scalar::Float(decay))?;
    }
    Ok(out)
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
    let decay = if step.decoupled { 0.0 } else { step.weight_decay };
    let grad = turned(param, grad, decay, step.maximize)?;
    if step.decoupled {
        aclnn::inplace_muls(param, number(1.0 - step.lr * step.weight_decay))?;
    }
    aclnn::inplace_lerps(&states[0], &grad, number(1.0 - step.beta1))?;
    aclnn::inplace_muls(&states[1], number(step.beta2))?;
    aclnn::inplace_addcmul(&states[1], &grad, &grad, number(1.0 - step.beta2))?;
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
