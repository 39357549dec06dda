//! Optimizer steps: Adam in one pass over each parameter, others in parts.

use super::{beside, filled};
use crate::aclnn;
use cresset_tensor::ops::*;
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
    FusedNadam::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| nadam(*step, param, grad, states))
    });
    FusedRadam::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| radam(*step, param, grad, states))
    });
    FusedAdamax::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| adamax(*step, param, grad, states))
    });
    FusedAdadelta::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| adadelta(*step, param, grad, states))
    });
    FusedRmsprop::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| rmsprop(*step, param, grad, states))
    });
    FusedRprop::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| rprop(*step, param, grad, states))
    });
    FusedAsgd::table().register(npu, |_, batch, ()| {
        batch.each().try_for_each(|(param, grad, states, step)| asgd(*step, param, grad, &states[0]))
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
    aclnn::inplace_addcdiv(param, &grad, &divisor, Scalar::Float(-step.rate()))
}

/// How far a running mean of `count` numbers is from its limit.
fn correction(beta: f64, count: u64) -> f64 {
    1.0 - beta.powf(count as f64)
}

/// A running mean of gradients, and one of their squares.
fn move_means([mean, square]: [&Tensor; 2], grad: &Tensor, (beta1, beta2): (f64, f64)) -> Result<()> {
    aclnn::inplace_lerps(mean, grad, Scalar::Float(1.0 - beta1))?;
    aclnn::inplace_muls(square, Scalar::Float(beta2))?;
    aclnn::inplace_addcmul(square, grad, grad, Scalar::Float(1.0 - beta2))
}

/// The root of a mean of squares, scaled, and kept from zero.
fn divisor(square: &Tensor, scale: f64, eps: f64) -> Result<Tensor> {
    let out = beside(square, square.shape(), square.dtype())?;
    aclnn::sqrt(square, &out)?;
    if scale != 1.0 {
        aclnn::inplace_muls(&out, Scalar::Float(scale))?;
    }
    aclnn::inplace_adds(&out, Scalar::Float(eps), super::ONE)?;
    Ok(out)
}

/// The gradient with the pull of a decay; one that is decoupled pulls the parameter at once.
fn decayed(
    param: &Tensor,
    grad: &Tensor,
    (decay, decoupled, lr): (f64, bool, f64),
    maximize: bool,
) -> Result<Tensor> {
    if decoupled {
        aclnn::inplace_muls(param, Scalar::Float(1.0 - lr * decay))?;
    }
    turned(param, grad, if decoupled { 0.0 } else { decay }, maximize)
}

fn nadam(step: NadamStep, param: &Tensor, grad: &Tensor, states: &[Tensor]) -> Result<()> {
    let grad = decayed(param, grad, (step.weight_decay, step.decoupled, step.lr), step.maximize)?;
    move_means([&states[0], &states[1]], &grad, (step.beta1, step.beta2))?;
    let divisor = divisor(&states[1], 1.0 / correction(step.beta2, step.step).sqrt(), step.eps)?;
    let (now, next) = step.mu;
    let of_grad = -step.lr * (1.0 - now) / (1.0 - step.mu_product);
    let of_mean = -step.lr * next / (1.0 - step.mu_product * next);
    aclnn::inplace_addcdiv(param, &grad, &divisor, Scalar::Float(of_grad))?;
    aclnn::inplace_addcdiv(param, &states[0], &divisor, Scalar::Float(of_mean))
}

fn radam(step: RadamStep, param: &Tensor, grad: &Tensor, states: &[Tensor]) -> Result<()> {
    let grad = decayed(param, grad, (step.weight_decay, step.decoupled, step.lr), step.maximize)?;
    move_means([&states[0], &states[1]], &grad, (step.beta1, step.beta2))?;
    let size = -step.lr / correction(step.beta1, step.step);
    let Some(by) = step.rectification() else {
        return aclnn::inplace_add(param, &states[0], Scalar::Float(size));
    };
    let size = size * by * correction(step.beta2, step.step).sqrt();
    aclnn::inplace_addcdiv(param, &states[0], &divisor(&states[1], 1.0, step.eps)?, Scalar::Float(size))
}

fn adamax(step: AdamaxStep, param: &Tensor, grad: &Tensor, states: &[Tensor]) -> Result<()> {
    let grad = turned(param, grad, step.weight_decay, step.maximize)?;
    aclnn::inplace_lerps(&states[0], &grad, Scalar::Float(1.0 - step.beta1))?;
    aclnn::inplace_muls(&states[1], Scalar::Float(step.beta2))?;
    let largest = super::copied(&states[1], states[1].dtype())?;
    let size = grad.abs()?;
    aclnn::inplace_adds(&size, Scalar::Float(step.eps), super::ONE)?;
    aclnn::maximum(&largest, &size, &states[1])?;
    let by = -step.lr / correction(step.beta1, step.step);
    aclnn::inplace_addcdiv(param, &states[0], &states[1], Scalar::Float(by))
}

fn adadelta(step: AdadeltaStep, param: &Tensor, grad: &Tensor, states: &[Tensor]) -> Result<()> {
    let number = Scalar::Float;
    let grad = turned(param, grad, step.weight_decay, step.maximize)?;
    let (square, steps) = (&states[0], &states[1]);
    aclnn::inplace_muls(square, number(step.rho))?;
    aclnn::inplace_addcmul(square, &grad, &grad, number(1.0 - step.rho))?;
    let root = |x: &Tensor| x.add(step.eps)?.sqrt();
    let change = root(steps)?.div(&root(square)?)?.mul(&grad)?;
    aclnn::inplace_add(param, &change, number(-step.lr))?;
    aclnn::inplace_muls(steps, number(step.rho))?;
    aclnn::inplace_addcmul(steps, &change, &change, number(1.0 - step.rho))
}

fn rmsprop(step: RmspropStep, param: &Tensor, grad: &Tensor, states: &[Tensor]) -> Result<()> {
    let number = Scalar::Float;
    let grad = turned(param, grad, step.weight_decay, step.maximize)?;
    let square = &states[0];
    aclnn::inplace_muls(square, number(step.alpha))?;
    aclnn::inplace_addcmul(square, &grad, &grad, number(1.0 - step.alpha))?;
    let divisor = if step.centered {
        let mean = &states[1];
        aclnn::inplace_lerps(mean, &grad, number(1.0 - step.alpha))?;
        let spread = super::copied(square, square.dtype())?;
        aclnn::inplace_addcmul(&spread, mean, mean, number(-1.0))?;
        divisor(&spread, 1.0, step.eps)?
    } else {
        divisor(square, 1.0, step.eps)?
    };
    if step.momentum == 0.0 {
        return aclnn::inplace_addcdiv(param, &grad, &divisor, number(-step.lr));
    }
    let last = &states[1 + usize::from(step.centered)];
    aclnn::inplace_muls(last, number(step.momentum))?;
    aclnn::inplace_addcdiv(last, &grad, &divisor, number(1.0))?;
    aclnn::inplace_add(param, last, number(-step.lr))
}

/// Steps grow as long as the gradient keeps its sign; where it turned, there is none.
fn rprop(step: RpropStep, param: &Tensor, grad: &Tensor, states: &[Tensor]) -> Result<()> {
    let (last, size) = (&states[0], &states[1]);
    let grad = turned(param, grad, 0.0, step.maximize)?;
    let product = grad.mul(last)?;
    let (turned, kept) = (product.lt(0)?, product.gt(0)?);
    let (minus, plus) = step.etas;
    let factor = size.ones_like()?.masked_fill(&turned, minus)?.masked_fill(&kept, plus)?;
    let (shortest, longest) = step.step_sizes;
    let grown = super::copied(&size.mul(&factor)?, size.dtype())?;
    aclnn::clamp(&grown, Scalar::Float(shortest), Scalar::Float(longest), size)?;
    aclnn::inplace_copy(last, &grad.masked_fill(&turned, 0)?)?;
    aclnn::inplace_addcmul(param, &last.sign()?, size, Scalar::Float(-1.0))
}

fn asgd(step: AsgdStep, param: &Tensor, grad: &Tensor, average: &Tensor) -> Result<()> {
    let grad = turned(param, grad, step.weight_decay, step.maximize)?;
    aclnn::inplace_muls(param, Scalar::Float(1.0 - step.lambd * step.eta))?;
    aclnn::inplace_add(param, &grad, Scalar::Float(-step.eta))?;
    if step.mu == 1.0 {
        return aclnn::inplace_copy(average, param);
    }
    aclnn::inplace_lerps(average, param, Scalar::Float(step.mu))
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
