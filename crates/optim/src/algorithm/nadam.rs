//! NAdam: Adam with Nesterov's momentum.

use super::moments::{MEAN, SQUARE, correction, decays, shrink_all, update, update_all};
use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each_by, map, pulled_all, turned_all};
use crate::scope::More;
use crate::state::State;
use crate::value::{check_betas, not_negative, options};
use cresset_tensor::ops::{FusedNadam, NadamStep};
use cresset_tensor::{Result, Tensor};

options! {
    /// The numbers of [`Nadam`].
    NadamOptions for "NAdam", check {
        /// The learning rate.
        lr: f64 = 2e-3,
        /// How much of the running mean of the gradient, and of its square, is kept.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much the parameter decays.
        weight_decay: f64 = 0.0,
        /// How fast the momentum grows.
        momentum_decay: f64 = 4e-3,
        /// Whether the decay is apart from the gradient.
        decoupled_weight_decay: bool = false,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &NadamOptions) -> Result<()> {
    let NadamOptions { lr, betas, eps, weight_decay, momentum_decay, .. } = *options;
    let numbers =
        [("lr", lr), ("eps", eps), ("weight_decay", weight_decay), ("momentum_decay", momentum_decay)];
    not_negative("NAdam", &numbers)?;
    check_betas("NAdam", betas)
}

/// Adam with Nesterov's momentum.
pub type Nadam = Descent<NadamOptions>;

impl NadamOptions {
    /// The momentum of step `count`.
    fn mu(&self, count: f64) -> f64 {
        self.betas.0 * (1.0 - 0.5 * 0.96f64.powf(count * self.momentum_decay))
    }

    /// What the gradient and its mean are multiplied by.
    fn factors(&self, count: f64, product: f64) -> (f64, f64) {
        let (now, next) = (self.mu(count), self.mu(count + 1.0));
        (-self.lr * (1.0 - now) / (1.0 - product), -self.lr * next / (1.0 - product * next))
    }
}

impl Algorithm for NadamOptions {
    const STEP: &'static str = "Optimizer.step#NAdam.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#NAdam.zero_grad";
    const NUMBERS: &'static [&'static str] = &["step", "mu_product"];
    const TENSORS: &'static [&'static str] = &[MEAN, SQUARE];

    fused_by!(FusedNadam, NadamStep);

    fn first_number(&self, name: &'static str) -> f64 {
        if name == "mu_product" { 1.0 } else { 0.0 }
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let count = state.numbers[0].item()?;
        let (of_parameter, of_grad) = decays(self.weight_decay, self.decoupled_weight_decay);
        if of_parameter != 0.0 {
            parameter.mul_(1.0 - self.lr * of_parameter)?;
        }
        let grad = pulled(grad, parameter, of_grad)?;
        state.numbers[1].scale_traced(self.mu(count))?;
        let [mean, square] = update(state, &grad, self.betas)?;
        let divisor = square.div(correction(self.betas.1, count))?.sqrt()?;
        // Read twice, as torch does.
        state.numbers[1].item()?;
        divisor.add_(self.eps)?;
        let (of_grad, of_mean) = self.factors(count, state.numbers[1].item()?);
        parameter.addcdiv_(&grad, &divisor, of_grad)?;
        parameter.addcdiv_(&mean, &divisor, of_mean)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let grads = turned_all(grads, self.maximize)?;
        let counts = count(states)?;
        let (of_parameter, of_grad) = decays(self.weight_decay, self.decoupled_weight_decay);
        let grads = pulled_all(grads, parameters, self.maximize, of_grad)?;
        shrink_all(parameters, self.lr, of_parameter)?;
        let [means, squares] = update_all(states, &grads, self.betas)?;
        let divisors = map("aten::_foreach_sqrt", &squares, |_, square| square.sqrt())?;
        // Torch reads each count for every number that it finds by it.
        for _ in 0..3 {
            states.iter_mut().try_for_each(|state| state.numbers[0].read())?;
        }
        let products: Vec<Tensor> =
            states.iter_mut().map(|state| state.numbers[1].tensor().cloned()).collect::<Result<_>>()?;
        let shares: Vec<f64> = counts.iter().map(|&count| self.mu(count)).collect();
        each_by("aten::_foreach_mul_", &products, &[More::Floats(&shares)], |i, _| {
            states[i].numbers[1].scale_traced(shares[i])
        })?;
        let roots: Vec<f64> = counts.iter().map(|&count| correction(self.betas.1, count).sqrt()).collect();
        each_by("aten::_foreach_div_", &divisors, &[More::Floats(&roots)], |i, divisor| {
            divisor.div_(roots[i])
        })?;
        each_by("aten::_foreach_add_", &divisors, &[More::Float(self.eps)], |_, divisor| {
            divisor.add_(self.eps)
        })?;
        for _ in 0..2 {
            states.iter_mut().try_for_each(|state| state.numbers[1].read())?;
        }
        let factors: Vec<(f64, f64)> =
            counts.iter().zip(&*states).map(|(&n, state)| self.factors(n, state.numbers[1].get())).collect();
        let (of_grads, of_means): (Vec<f64>, Vec<f64>) = factors.into_iter().unzip();
        for (list, factors) in [(&grads, of_grads), (&means, of_means)] {
            let more = [More::List(list), More::List(&divisors), More::Floats(&factors)];
            each_by("aten::_foreach_addcdiv_", parameters, &more, |i, parameter| {
                parameter.addcdiv_(&list[i], &divisors[i], factors[i])
            })?;
        }
        Ok(())
    }

    fn rule(&self, state: &mut State) -> Result<NadamStep> {
        let step = state.numbers[0].count();
        let mu = (self.mu(step as f64), self.mu(step as f64 + 1.0));
        Ok(NadamStep {
            lr: self.lr,
            beta1: self.betas.0,
            beta2: self.betas.1,
            eps: self.eps,
            weight_decay: self.weight_decay,
            decoupled: self.decoupled_weight_decay,
            maximize: self.maximize,
            mu,
            mu_product: state.numbers[1].scale(mu.0),
            step,
        })
    }
}
