//! RAdam: Adam that waits until it knows the size of gradients.

use super::moments::{MEAN, SQUARE, correction, decays, shrink_all, update, update_all};
use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each, each_by, map, pulled_all, turned_all};
use crate::scope::More;
use crate::state::State;
use crate::value::{check_betas, not_negative, options};
use cresset_tensor::ops::{FusedRadam, RadamStep};
use cresset_tensor::{Result, Tensor};

options! {
    /// The numbers of [`Radam`].
    RadamOptions for "RAdam", check {
        /// The learning rate.
        lr: f64 = 1e-3,
        /// How much of the running mean of the gradient, and of its square, is kept.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much the parameter decays.
        weight_decay: f64 = 0.0,
        /// Whether the decay is apart from the gradient.
        decoupled_weight_decay: bool = false,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &RadamOptions) -> Result<()> {
    let RadamOptions { lr, betas, eps, weight_decay, .. } = *options;
    not_negative("RAdam", &[("lr", lr), ("eps", eps), ("weight_decay", weight_decay)])?;
    check_betas("RAdam", betas)
}

/// Adam that takes plain steps until it knows the size of gradients.
pub type Radam = Descent<RadamOptions>;

impl RadamOptions {
    fn step(&self, step: u64) -> RadamStep {
        RadamStep {
            lr: self.lr,
            beta1: self.betas.0,
            beta2: self.betas.1,
            eps: self.eps,
            weight_decay: self.weight_decay,
            decoupled: self.decoupled_weight_decay,
            maximize: self.maximize,
            step,
        }
    }
}

impl Algorithm for RadamOptions {
    const STEP: &'static str = "Optimizer.step#RAdam.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#RAdam.zero_grad";
    const TENSORS: &'static [&'static str] = &[MEAN, SQUARE];

    fused_by!(FusedRadam, RadamStep);

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let count = state.numbers[0].item()?;
        let (of_parameter, of_grad) = decays(self.weight_decay, self.decoupled_weight_decay);
        if of_parameter != 0.0 {
            parameter.mul_(1.0 - self.lr * of_parameter)?;
        }
        let grad = pulled(grad, parameter, of_grad)?;
        let [mean, square] = update(state, &grad, self.betas)?;
        let mut step = mean.div(correction(self.betas.0, count))?.mul(self.lr)?;
        if let Some(rectification) = self.step(count as u64).rectification() {
            let root = square.sqrt()?;
            root.add_(self.eps)?;
            let adapted = root.reciprocal()?.mul(correction(self.betas.1, count).sqrt())?;
            step = step.mul(&adapted)?.mul(rectification)?;
        }
        parameter.add_scaled_(&step, -1.0)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let counts = count(states)?;
        let (of_parameter, of_grad) = decays(self.weight_decay, self.decoupled_weight_decay);
        let grads = turned_all(grads, self.maximize)?;
        // Torch reads each count for every number that it finds by it.
        for _ in 0..3 {
            states.iter_mut().try_for_each(|state| state.numbers[0].read())?;
        }
        shrink_all(parameters, self.lr, of_parameter)?;
        let grads = pulled_all(grads, parameters, self.maximize, of_grad)?;
        let [means, squares] = update_all(states, &grads, self.betas)?;
        for _ in 0..2 {
            states.iter_mut().try_for_each(|state| state.numbers[0].read())?;
        }
        // Steps that are not rectified have 0 / root, and all have a plain part, which is 0 in the others.
        let rectified: Vec<Option<f64>> =
            counts.iter().map(|&count| self.step(count as u64).rectification()).collect();
        let each_step = || rectified.iter().zip(&counts);
        let plain: Vec<f64> =
            each_step().map(|(by, &count)| if by.is_some() { 0.0 } else { self.size(count) }).collect();
        let adapted = |(by, &count): (&Option<f64>, &f64)| {
            by.map_or(0.0, |by| self.size(count) * correction(self.betas.1, count).sqrt() * by)
        };
        let adapted: Vec<f64> = each_step().map(adapted).collect();
        let factors = map("aten::_foreach_sqrt", &squares, |_, square| square.sqrt())?;
        each_by("aten::_foreach_add_", &factors, &[More::Float(self.eps)], |_, root| root.add_(self.eps))?;
        each_by("aten::_foreach_div_", &factors, &[More::Floats(&adapted)], |i, root| root.div_(adapted[i]))?;
        each("aten::_foreach_reciprocal_", &factors, |_, root| root.reciprocal_())?;
        each_by("aten::_foreach_add_", &factors, &[More::Floats(&plain)], |i, factor| factor.add_(plain[i]))?;
        let more = [More::List(&means), More::List(&factors), More::Int(1)];
        each_by("aten::_foreach_addcmul_", parameters, &more, |i, parameter| {
            parameter.addcmul_(&means[i], &factors[i], 1)
        })
    }

    fn rule(&self, state: &mut State) -> Result<RadamStep> {
        Ok(self.step(state.numbers[0].count()))
    }
}

impl RadamOptions {
    /// What the mean of gradients is multiplied by.
    fn size(&self, count: f64) -> f64 {
        -self.lr / correction(self.betas.0, count)
    }
}
