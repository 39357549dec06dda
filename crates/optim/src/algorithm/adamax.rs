//! Adamax: Adam by the largest gradient.

use super::moments::{MEAN, correction};
use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each, each_by, kept, map, maximum, pulled_all, turned_all};
use crate::scope::More;
use crate::state::State;
use crate::value::{check_betas, not_negative, options};
use cresset_tensor::ops::{AdamaxStep, FusedAdamax};
use cresset_tensor::{Result, Tensor};

options! {
    /// The numbers of [`Adamax`].
    AdamaxOptions for "Adamax", check {
        /// The learning rate.
        lr: f64 = 2e-3,
        /// How much of the running mean of the gradient, and of its maximum, is kept.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much of the parameter is added to its gradient.
        weight_decay: f64 = 0.0,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &AdamaxOptions) -> Result<()> {
    let AdamaxOptions { lr, betas, eps, weight_decay, .. } = *options;
    not_negative("Adamax", &[("lr", lr), ("eps", eps), ("weight_decay", weight_decay)])?;
    check_betas("Adamax", betas)
}

/// The running mean of gradients, scaled by their decaying maximum.
pub type Adamax = Descent<AdamaxOptions>;

const LARGEST: &str = "exp_inf";

impl Algorithm for AdamaxOptions {
    const STEP: &'static str = "Optimizer.step#Adamax.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#Adamax.zero_grad";
    const TENSORS: &'static [&'static str] = &[MEAN, LARGEST];

    fused_by!(FusedAdamax, AdamaxStep);

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let grad = pulled(grad, parameter, self.weight_decay)?;
        let [mean, largest] = [state.tensor(MEAN)?, state.tensor(LARGEST)?];
        mean.lerp_(&grad, 1.0 - self.betas.0)?;
        largest.mul_(self.betas.1)?;
        let size = grad.abs()?;
        size.add_(self.eps)?;
        largest.maximum_(&size)?;
        let count = state.numbers[0].item()?;
        parameter.addcdiv_(&mean, &largest, -self.lr / correction(self.betas.0, count))
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let grads = turned_all(grads, self.maximize)?;
        let counts = count(states)?;
        let grads = pulled_all(grads, parameters, self.maximize, self.weight_decay)?;
        let [means, largest] = [kept(states, MEAN)?, kept(states, LARGEST)?];
        let fresh = 1.0 - self.betas.0;
        each_by("aten::_foreach_lerp_", &means, &[More::List(&grads), More::Float(fresh)], |i, mean| {
            mean.lerp_(&grads[i], fresh)
        })?;
        each_by("aten::_foreach_mul_", &largest, &[More::Float(self.betas.1)], |_, largest| {
            largest.mul_(self.betas.1)
        })?;
        let sizes = if self.maximize || self.weight_decay != 0.0 {
            // Gradients that were turned or pulled are the step's own.
            each("aten::_foreach_abs_", &grads, |_, grad| grad.abs_())?;
            grads
        } else {
            map("aten::_foreach_abs", &grads, |_, grad| grad.abs())?
        };
        each_by("aten::_foreach_add_", &sizes, &[More::Float(self.eps)], |_, size| size.add_(self.eps))?;
        maximum(&largest, &sizes)?;
        states.iter_mut().try_for_each(|state| state.numbers[0].read())?;
        let rates: Vec<f64> =
            counts.iter().map(|&count| -self.lr / correction(self.betas.0, count)).collect();
        let more = [More::List(&means), More::List(&largest), More::Floats(&rates)];
        each_by("aten::_foreach_addcdiv_", parameters, &more, |i, parameter| {
            parameter.addcdiv_(&means[i], &largest[i], rates[i])
        })
    }

    fn rule(&self, state: &mut State) -> Result<AdamaxStep> {
        Ok(AdamaxStep {
            lr: self.lr,
            beta1: self.betas.0,
            beta2: self.betas.1,
            eps: self.eps,
            weight_decay: self.weight_decay,
            maximize: self.maximize,
            step: state.numbers[0].count(),
        })
    }
}
