//! Adagrad.

use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each_by, kept, map, map_by, pulled_all, turned_all};
use crate::scope::More;
use crate::state::State;
use crate::value::{not_negative, options};
use cresset_tensor::ops::{AdagradStep, FusedAdagrad};
use cresset_tensor::{MemoryFormat, Result, Tensor};

options! {
    /// The numbers of [`Adagrad`].
    AdagradOptions for "Adagrad", check {
        /// The learning rate.
        lr: f64 = 1e-2,
        /// How fast the learning rate falls.
        lr_decay: f64 = 0.0,
        /// How much of the parameter is added to its gradient.
        weight_decay: f64 = 0.0,
        /// The sum of squares before the first step.
        initial_accumulator_value: f64 = 0.0,
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-10,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &AdagradOptions) -> Result<()> {
    let AdagradOptions { lr, lr_decay, weight_decay, initial_accumulator_value, eps, .. } = *options;
    let sum = ("initial_accumulator_value", initial_accumulator_value);
    not_negative(
        "Adagrad",
        &[("lr", lr), ("lr_decay", lr_decay), ("weight_decay", weight_decay), sum, ("eps", eps)],
    )
}

/// Gradients scaled by the sum of squares of all before.
pub type Adagrad = Descent<AdagradOptions>;

const SUM: &str = "sum";

impl AdagradOptions {
    fn lr_at(&self, count: f64) -> f64 {
        self.lr / (1.0 + (count - 1.0) * self.lr_decay)
    }
}

impl Algorithm for AdagradOptions {
    const STEP: &'static str = "Optimizer.step#Adagrad.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#Adagrad.zero_grad";
    const TENSORS: &'static [&'static str] = &[SUM];
    const FROM_THE_START: bool = true;

    fused_by!(FusedAdagrad, AdagradStep);

    fn first_tensor(&self, _name: &'static str, parameter: &Tensor, _grad: &Tensor) -> Result<Tensor> {
        parameter.full_like_with(self.initial_accumulator_value, MemoryFormat::Preserve)
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        state.numbers[0].count_traced()?;
        let count = state.numbers[0].item()?;
        let grad = pulled(turned(grad, self.maximize)?, parameter, self.weight_decay)?;
        let sum = state.tensor(SUM)?;
        sum.addcmul_(&grad, &grad, 1)?;
        let root = sum.sqrt()?;
        root.add_(self.eps)?;
        parameter.addcdiv_(&grad, &root, -self.lr_at(count))
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let grads = turned_all(grads, self.maximize)?;
        let counts = count(states)?;
        let grads = pulled_all(grads, parameters, self.maximize, self.weight_decay)?;
        let sums = kept(states, SUM)?;
        states.iter_mut().try_for_each(|state| state.numbers[0].read())?;
        let rates: Vec<f64> = counts.iter().map(|&count| -self.lr_at(count)).collect();
        let more = [More::List(&grads), More::List(&grads), More::Int(1)];
        each_by("aten::_foreach_addcmul_", &sums, &more, |i, sum| sum.addcmul_(&grads[i], &grads[i], 1))?;
        let roots = map("aten::_foreach_sqrt", &sums, |_, sum| sum.sqrt())?;
        each_by("aten::_foreach_add_", &roots, &[More::Float(self.eps)], |_, root| root.add_(self.eps))?;
        let by = [More::Floats(&rates)];
        let steps = if self.maximize || self.weight_decay != 0.0 {
            // Gradients that were turned or pulled are the step's own.
            each_by("aten::_foreach_mul_", &grads, &by, |i, grad| grad.mul_(rates[i]))?;
            grads
        } else {
            map_by("aten::_foreach_mul", &grads, &by, |i, grad| grad.mul(rates[i]))?
        };
        let more = [More::List(&steps), More::List(&roots), More::Int(1)];
        each_by("aten::_foreach_addcdiv_", parameters, &more, |i, parameter| {
            parameter.addcdiv_(&steps[i], &roots[i], 1)
        })
    }

    fn rule(&self, state: &mut State) -> Result<AdagradStep> {
        let step = state.numbers[0].count();
        let AdagradOptions { lr, lr_decay, eps, weight_decay, maximize, .. } = *self;
        Ok(AdagradStep { lr, lr_decay, eps, weight_decay, maximize, step })
    }
}
