//! Adam, and AdamW.

use super::moments::{MEAN, SQUARE, correction, decays, shrink_all, update, update_all};
use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each_by, kept, map, maximum, pulled_all, turned_all};
use crate::scope::More;
use crate::state::State;
use crate::value::{check_betas, not_negative, options};
use cresset_tensor::ops::{AdamStep, FusedAdam, FusedAdamW};
use cresset_tensor::{Result, Tensor};

options! {
    /// The numbers of [`Adam`].
    AdamOptions for "Adam", check {
        /// The learning rate.
        lr: f64 = 1e-3,
        /// How much of the running mean of the gradient, and of its square, is kept.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much the parameter decays.
        weight_decay: f64 = 0.0,
        /// Whether to divide by the largest mean of squares so far.
        amsgrad: bool = false,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// Whether the decay is apart from the gradient, as in [`AdamW`].
        decoupled_weight_decay: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

options! {
    /// The numbers of [`AdamW`].
    AdamWOptions for "AdamW", check_w {
        /// The learning rate.
        lr: f64 = 1e-3,
        /// How much of the running mean of the gradient, and of its square, is kept.
        betas: (f64, f64) = (0.9, 0.999),
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much the parameter decays, apart from the gradient.
        weight_decay: f64 = 1e-2,
        /// Whether to divide by the largest mean of squares so far.
        amsgrad: bool = false,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

/// Gradients scaled by running means of themselves and of their squares.
pub type Adam = Descent<AdamOptions>;

/// [`Adam`] with a decay of parameters that is apart from the gradient.
pub type AdamW = Descent<AdamWOptions>;

fn check(options: &AdamOptions) -> Result<()> {
    options.numbers().check("Adam")
}

fn check_w(options: &AdamWOptions) -> Result<()> {
    options.numbers().check("AdamW")
}

/// What both have in common.
struct Numbers {
    lr: f64,
    betas: (f64, f64),
    eps: f64,
    weight_decay: f64,
    decoupled: bool,
    amsgrad: bool,
    maximize: bool,
}

impl AdamOptions {
    fn numbers(&self) -> Numbers {
        let AdamOptions { lr, betas, eps, weight_decay, amsgrad, maximize, .. } = *self;
        let decoupled = self.decoupled_weight_decay;
        Numbers { lr, betas, eps, weight_decay, decoupled, amsgrad, maximize }
    }
}

impl AdamWOptions {
    fn numbers(&self) -> Numbers {
        let AdamWOptions { lr, betas, eps, weight_decay, amsgrad, maximize, .. } = *self;
        Numbers { lr, betas, eps, weight_decay, decoupled: true, amsgrad, maximize }
    }
}

const LARGEST: &str = "max_exp_avg_sq";
const KEPT: &[&str] = &[MEAN, SQUARE, LARGEST];

impl Numbers {
    fn check(&self, name: &'static str) -> Result<()> {
        not_negative(name, &[("lr", self.lr), ("eps", self.eps), ("weight_decay", self.weight_decay)])?;
        check_betas(name, self.betas)
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let (of_parameter, of_grad) = decays(self.weight_decay, self.decoupled);
        if of_parameter != 0.0 {
            parameter.mul_(1.0 - self.lr * of_parameter)?;
        }
        let grad = pulled(grad, parameter, of_grad)?;
        let [mean, mut square] = update(state, &grad, self.betas)?;
        let count = state.numbers[0].item()?;
        if self.amsgrad {
            let largest = state.tensor(LARGEST)?;
            largest.maximum_(&square)?;
            square = largest;
        }
        let divisor = square.sqrt()?.div(correction(self.betas.1, count).sqrt())?;
        divisor.add_(self.eps)?;
        parameter.addcdiv_(&mean, &divisor, -self.lr / correction(self.betas.0, count))
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let grads = turned_all(grads, self.maximize)?;
        let (of_parameter, of_grad) = decays(self.weight_decay, self.decoupled);
        let counts = count(states)?;
        let grads = pulled_all(grads, parameters, self.maximize, of_grad)?;
        shrink_all(parameters, self.lr, of_parameter)?;
        let [means, mut squares] = update_all(states, &grads, self.betas)?;
        // Torch reads each count once for either correction.
        for _ in 0..2 {
            states.iter_mut().try_for_each(|state| state.numbers[0].read())?;
        }
        if self.amsgrad {
            let largest = kept(states, LARGEST)?;
            maximum(&largest, &squares)?;
            squares = largest;
        }
        let roots: Vec<f64> = counts.iter().map(|&count| correction(self.betas.1, count).sqrt()).collect();
        let steps: Vec<f64> =
            counts.iter().map(|&count| -self.lr / correction(self.betas.0, count)).collect();
        let divisors = map("aten::_foreach_sqrt", &squares, |_, square| square.sqrt())?;
        each_by("aten::_foreach_div_", &divisors, &[More::Floats(&roots)], |i, divisor| {
            divisor.div_(roots[i])
        })?;
        each_by("aten::_foreach_add_", &divisors, &[More::Float(self.eps)], |_, divisor| {
            divisor.add_(self.eps)
        })?;
        let more = [More::List(&means), More::List(&divisors), More::Floats(&steps)];
        each_by("aten::_foreach_addcdiv_", parameters, &more, |i, parameter| {
            parameter.addcdiv_(&means[i], &divisors[i], steps[i])
        })
    }

    fn rule(&self, state: &mut State) -> AdamStep {
        AdamStep {
            lr: self.lr,
            beta1: self.betas.0,
            beta2: self.betas.1,
            eps: self.eps,
            weight_decay: self.weight_decay,
            decoupled: self.decoupled,
            amsgrad: self.amsgrad,
            maximize: self.maximize,
            step: state.numbers[0].count(),
        }
    }
}

macro_rules! algorithm {
    ($options:ident, $op:ident, $step:literal, $zero_grad:literal) => {
        impl Algorithm for $options {
            const STEP: &'static str = $step;
            const ZERO_GRAD: &'static str = $zero_grad;
            const TENSORS: &'static [&'static str] = KEPT;

            fused_by!($op, AdamStep);

            fn kept(&self) -> &'static [&'static str] {
                if self.amsgrad { KEPT } else { &KEPT[..2] }
            }

            fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
                self.numbers().single(parameter, grad, state)
            }

            fn foreach(
                &self,
                parameters: &[Tensor],
                grads: Vec<Tensor>,
                states: &mut [&mut State],
            ) -> Result<()> {
                self.numbers().foreach(parameters, grads, states)
            }

            fn rule(&self, state: &mut State) -> Result<AdamStep> {
                Ok(self.numbers().rule(state))
            }
        }
    };
}

algorithm!(AdamOptions, FusedAdam, "Optimizer.step#Adam.step", "Optimizer.zero_grad#Adam.zero_grad");
algorithm!(AdamWOptions, FusedAdamW, "Optimizer.step#AdamW.step", "Optimizer.zero_grad#AdamW.zero_grad");
