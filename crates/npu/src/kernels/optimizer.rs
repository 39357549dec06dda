//! Optimizer steps: Adam in one pass over each parameter, others by lists of parameters.

use super::many::Many;
use super::{beside, filled};
use crate::aclnn;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Kernel, Key, Result, Scalar, Tensor};

/// One line per optimizer that takes its step by lists.
macro_rules! by_lists {
    ($npu:ident; $($op:ident: $step:ident;)*) => {
        $($op::table().register($npu, |_, batch, ()| groups(batch).into_iter().try_for_each($step));)*
    };
}

pub(super) fn register(npu: Key) {
    FusedAdam::table().register(npu, |_, batch, ()| adam(batch));
    FusedAdamW::table().register(npu, |_, batch, ()| adam(batch));
    by_lists! { npu;
        FusedSgd: sgd;
        FusedAdagrad: adagrad;
        FusedNadam: nadam;
        FusedRadam: radam;
        FusedAdamax: adamax;
        FusedAdadelta: adadelta;
        FusedRmsprop: rmsprop;
        FusedRprop: rprop;
        FusedAsgd: asgd;
    }
}

/// Parameters that take the same step.
struct Group<R> {
    step: R,
    params: Many,
    grads: Many,
    states: Vec<Many>,
}

/// A parameter, its gradient, what is kept of earlier steps, and the step.
type Member<'a, R> = (&'a Tensor, &'a Tensor, &'a [Tensor], &'a R);

/// Parameters with equal numbers, in order, as lists.
fn groups<R: ToldStep + PartialEq>(batch: Batch<'_, R>) -> Vec<Group<R>> {
    let members: Vec<Member<'_, R>> = batch.each().filter(|(param, ..)| param.numel() > 0).collect();
    let alike = |a: &Member<'_, R>, b: &Member<'_, R>| a.3 == b.3 && a.0.dtype() == b.0.dtype();
    members.chunk_by(alike).map(Group::of).collect()
}

impl<R: ToldStep> Group<R> {
    fn of(members: &[Member<'_, R>]) -> Group<R> {
        let states = (0..members[0].2.len())
            .map(|at| Many::new(members.iter().map(|member| member.2[at].clone()).collect()))
            .collect();
        let params = Many::new(members.iter().map(|member| member.0.clone()).collect());
        let grads = Many::new(members.iter().map(|member| member.1.clone()).collect());
        Group { step: *members[0].3, params, grads, states }.alike()
    }

    /// As lists only if all of them are.
    fn alike(self) -> Group<R> {
        let all =
            self.params.is_listed() && self.grads.is_listed() && self.states.iter().all(Many::is_listed);
        let Group { step, params, grads, states } = self;
        let states = states.into_iter().map(|state| state.listed(all)).collect();
        Group { step, params: params.listed(all), grads: grads.listed(all), states }
    }

    /// The gradients downwards in memory of their own, with the pull of a decay.
    fn turned(&self, decay: f64, maximize: bool) -> Result<Many> {
        let grads = self.grads.copied()?;
        if maximize {
            grads.mul_(-1.0)?;
        }
        if decay != 0.0 {
            grads.add_(&self.params, decay)?;
        }
        Ok(grads)
    }

    /// As [`turned`](Group::turned); a decay that is decoupled pulls the parameters at once.
    fn decayed(&self, (decay, decoupled, lr): (f64, bool, f64), maximize: bool) -> Result<Many> {
        if decoupled {
            self.params.mul_(1.0 - lr * decay)?;
        }
        self.turned(if decoupled { 0.0 } else { decay }, maximize)
    }

    /// Moves a mean of gradients and one of their squares, the first two of what is kept.
    fn move_means(&self, grads: &Many, (beta1, beta2): (f64, f64)) -> Result<()> {
        self.states[0].lerp_(grads, 1.0 - beta1)?;
        move_square(&self.states[1], grads, beta2)
    }
}

fn move_square(square: &Many, grads: &Many, beta: f64) -> Result<()> {
    square.mul_(beta)?;
    square.addcmul_(grads, grads, 1.0 - beta)
}

/// How far a running mean of `count` numbers is from its limit.
fn correction(beta: f64, count: u64) -> f64 {
    1.0 - beta.powf(count as f64)
}

/// The roots of means of squares, scaled, and kept from zero.
fn divisors(squares: &Many, scale: f64, eps: f64) -> Result<Many> {
    let out = squares.sqrt()?;
    if scale != 1.0 {
        out.mul_(scale)?;
    }
    out.add_number_(eps)?;
    Ok(out)
}

fn sgd(group: Group<SgdStep>) -> Result<()> {
    let step = group.step;
    let Some(kept) = group.states.first() else {
        // Nothing is kept, so that the gradients themselves are enough.
        if step.weight_decay == 0.0 {
            let lr = if step.maximize { step.lr } else { -step.lr };
            return group.params.add_(&group.grads, lr);
        }
        let grads = group.turned(step.weight_decay, step.maximize)?;
        return group.params.add_(&grads, -step.lr);
    };
    let grads = group.turned(step.weight_decay, step.maximize)?;
    if step.first {
        kept.copy_(&grads)?;
    } else {
        kept.mul_(step.momentum)?;
        kept.add_(&grads, 1.0 - step.dampening)?;
    }
    if !step.nesterov {
        return group.params.add_(kept, -step.lr);
    }
    grads.add_(kept, step.momentum)?;
    group.params.add_(&grads, -step.lr)
}

fn adagrad(group: Group<AdagradStep>) -> Result<()> {
    let step = group.step;
    let grads = group.turned(step.weight_decay, step.maximize)?;
    group.states[0].addcmul_(&grads, &grads, 1.0)?;
    group.params.addcdiv_(&grads, &divisors(&group.states[0], 1.0, step.eps)?, -step.rate())
}

fn nadam(group: Group<NadamStep>) -> Result<()> {
    let step = group.step;
    let grads = group.decayed((step.weight_decay, step.decoupled, step.lr), step.maximize)?;
    group.move_means(&grads, (step.beta1, step.beta2))?;
    let divisors = divisors(&group.states[1], 1.0 / correction(step.beta2, step.step).sqrt(), step.eps)?;
    let (now, next) = step.mu;
    group.params.addcdiv_(&grads, &divisors, -step.lr * (1.0 - now) / (1.0 - step.mu_product))?;
    let of_mean = -step.lr * next / (1.0 - step.mu_product * next);
    group.params.addcdiv_(&group.states[0], &divisors, of_mean)
}

fn radam(group: Group<RadamStep>) -> Result<()> {
    let step = group.step;
    let grads = group.decayed((step.weight_decay, step.decoupled, step.lr), step.maximize)?;
    group.move_means(&grads, (step.beta1, step.beta2))?;
    let size = -step.lr / correction(step.beta1, step.step);
    let Some(by) = step.rectification() else { return group.params.add_(&group.states[0], size) };
    let size = size * by * correction(step.beta2, step.step).sqrt();
    group.params.addcdiv_(&group.states[0], &divisors(&group.states[1], 1.0, step.eps)?, size)
}

fn adamax(group: Group<AdamaxStep>) -> Result<()> {
    let step = group.step;
    let grads = group.turned(step.weight_decay, step.maximize)?;
    group.states[0].lerp_(&grads, 1.0 - step.beta1)?;
    group.states[1].mul_(step.beta2)?;
    let sizes = grads.map(Tensor::abs)?;
    sizes.add_number_(step.eps)?;
    group.states[1].maximum_(&sizes)?;
    group.params.addcdiv_(&group.states[0], &group.states[1], -step.lr / correction(step.beta1, step.step))
}

fn adadelta(group: Group<AdadeltaStep>) -> Result<()> {
    let step = group.step;
    let grads = group.turned(step.weight_decay, step.maximize)?;
    let (square, steps) = (&group.states[0], &group.states[1]);
    move_square(square, &grads, step.rho)?;
    let root = |squares: &Many| {
        let out = squares.copied()?;
        out.add_number_(step.eps)?;
        out.sqrt()
    };
    // The old steps over the new squares, times the gradient.
    let change = grads.map(Tensor::zeros_like)?;
    let scaled = grads.map(Tensor::zeros_like)?;
    scaled.addcmul_(&root(steps)?, &grads, 1.0)?;
    change.addcdiv_(&scaled, &root(square)?, 1.0)?;
    group.params.add_(&change, -step.lr)?;
    move_square(steps, &change, step.rho)
}

fn rmsprop(group: Group<RmspropStep>) -> Result<()> {
    let step = group.step;
    let grads = group.turned(step.weight_decay, step.maximize)?;
    let square = &group.states[0];
    move_square(square, &grads, step.alpha)?;
    let divisors = if step.centered {
        let mean = &group.states[1];
        mean.lerp_(&grads, 1.0 - step.alpha)?;
        let spread = square.copied()?;
        spread.addcmul_(mean, mean, -1.0)?;
        divisors(&spread, 1.0, step.eps)?
    } else {
        divisors(square, 1.0, step.eps)?
    };
    if step.momentum == 0.0 {
        return group.params.addcdiv_(&grads, &divisors, -step.lr);
    }
    let last = &group.states[1 + usize::from(step.centered)];
    last.mul_(step.momentum)?;
    last.addcdiv_(&grads, &divisors, 1.0)?;
    group.params.add_(last, -step.lr)
}

/// Steps grow as long as the gradient keeps its sign; where it turned, there is none.
fn rprop(group: Group<RpropStep>) -> Result<()> {
    let step = group.step;
    let grads = group.turned(0.0, step.maximize)?;
    let all = group.params.iter().zip(grads.iter()).zip(group.states[0].iter()).zip(group.states[1].iter());
    for (((param, grad), last), size) in all {
        let product = grad.mul(last)?;
        let (turned, kept) = (product.lt(0)?, product.gt(0)?);
        let (minus, plus) = step.etas;
        let factor = size.ones_like()?.masked_fill(&turned, minus)?.masked_fill(&kept, plus)?;
        let (shortest, longest) = step.step_sizes;
        aclnn::clamp(&size.mul(&factor)?, Scalar::Float(shortest), Scalar::Float(longest), size)?;
        aclnn::inplace_copy(last, &grad.masked_fill(&turned, 0)?)?;
        aclnn::inplace_addcmul(param, &last.sign()?, size, Scalar::Float(-1.0))?;
    }
    Ok(())
}

fn asgd(group: Group<AsgdStep>) -> Result<()> {
    let step = group.step;
    let grads = group.turned(step.weight_decay, step.maximize)?;
    group.params.mul_(1.0 - step.lambd * step.eta)?;
    group.params.add_(&grads, -step.eta)?;
    let average = &group.states[0];
    if step.mu == 1.0 { average.copy_(&group.params) } else { average.lerp_(&group.params, step.mu) }
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
    let many = |x: &Tensor| Many::new(vec![x.clone()]);
    let group =
        Group { step, params: many(param), grads: many(grad), states: states.iter().map(many).collect() };
    let grads = group.decayed((step.weight_decay, step.decoupled, step.lr), step.maximize)?;
    group.move_means(&grads, (step.beta1, step.beta2))?;
    let squares = match group.states.get(2).filter(|_| step.amsgrad) {
        Some(largest) => {
            largest.maximum_(&group.states[1])?;
            largest
        }
        None => &group.states[1],
    };
    let divisors = divisors(squares, 1.0 / correction(step.beta2, step.step).sqrt(), step.eps)?;
    group.params.addcdiv_(&group.states[0], &divisors, -step.lr / correction(step.beta1, step.step))
}
