//! Averaged stochastic gradient descent.

use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each, kept, map, pulled_all, turned_all};
use crate::state::{Made, State};
use crate::value::{finite, not_negative, options};
use cresset_tensor::ops::{AsgdStep, FusedAsgd};
use cresset_tensor::{Result, Tensor};

options! {
    /// The numbers of [`Asgd`].
    AsgdOptions for "ASGD", check {
        /// The learning rate.
        lr: f64 = 1e-2,
        /// How much a step of length 1 takes from the parameter, and how fast steps get shorter.
        lambd: f64 = 1e-4,
        /// The power by which steps get shorter.
        alpha: f64 = 0.75,
        /// The step from which on averages are taken.
        t0: f64 = 1e6,
        /// How much of the parameter is added to its gradient.
        weight_decay: f64 = 0.0,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &AsgdOptions) -> Result<()> {
    not_negative("ASGD", &[("lr", options.lr), ("weight_decay", options.weight_decay)])?;
    finite("ASGD", &[("lambd", options.lambd), ("alpha", options.alpha), ("t0", options.t0)])
}

/// Stochastic gradient descent that also keeps the average of where it has been, as `ax` in its state.
pub type Asgd = Descent<AsgdOptions>;

const AVERAGE: &str = "ax";

impl AsgdOptions {
    /// The length of the step after `count`, and the share of the parameter in its average then.
    fn next(&self, count: f64) -> (f64, f64) {
        let eta = self.lr / (1.0 + self.lambd * self.lr * count).powf(self.alpha);
        (eta, 1.0 / (count - self.t0).max(1.0))
    }
}

impl Algorithm for AsgdOptions {
    const STEP: &'static str = "Optimizer.step#ASGD.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#ASGD.zero_grad";
    const NUMBERS: &'static [&'static str] = &["step", "eta", "mu"];
    const TENSORS: &'static [&'static str] = &[AVERAGE];

    fused_by!(FusedAsgd, AsgdStep);

    fn made(name: &'static str) -> Made {
        match name {
            "eta" => Made::Copy,
            "mu" => Made::Ones,
            _ => Made::Zeros,
        }
    }

    fn first_number(&self, name: &'static str) -> f64 {
        match name {
            "eta" => self.lr,
            "mu" => 1.0,
            _ => 0.0,
        }
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let grad = pulled(grad, parameter, self.weight_decay)?;
        let eta = state.numbers[1].item()?;
        parameter.mul_(1.0 - self.lambd * eta)?;
        parameter.add_scaled_(&grad, -eta)?;
        let (average, mu) = (state.tensor(AVERAGE)?, state.numbers[2].item()?);
        if mu == 1.0 {
            average.copy_(parameter)?;
        } else {
            let apart = parameter.sub(&average)?;
            apart.mul_(mu)?;
            average.add_(&apart)?;
        }
        let (eta, mu) = self.next(state.numbers[0].item()?);
        state.numbers[1].put_traced(eta)?;
        state.numbers[2].put_traced(mu)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let grads = turned_all(grads, self.maximize)?;
        let counts = count(states)?;
        let grads = pulled_all(grads, parameters, self.maximize, self.weight_decay)?;
        let averages = kept(states, AVERAGE)?;
        let eta = |i: usize| states[i].numbers[1].get();
        let steps = map("aten::_foreach_add", &grads, |i, grad| grad.add_scaled(&parameters[i], self.lambd))?;
        each("aten::_foreach_add_", parameters, |i, parameter| parameter.add_scaled_(&steps[i], -eta(i)))?;
        let apart = map("aten::_foreach_sub", parameters, |i, parameter| parameter.sub(&averages[i]))?;
        each("aten::_foreach_add_", &averages, |i, average| {
            average.add_scaled_(&apart[i], states[i].numbers[2].get())
        })?;
        for (state, &count) in states.iter_mut().zip(&counts) {
            let (eta, mu) = self.next(count);
            state.numbers[1].put(eta);
            state.numbers[2].put(mu);
        }
        Ok(())
    }

    fn rule(&self, state: &mut State) -> Result<AsgdStep> {
        let (eta, mu) = (state.numbers[1].get(), state.numbers[2].get());
        let (next_eta, next_mu) = self.next(state.numbers[0].count() as f64);
        state.numbers[1].put(next_eta);
        state.numbers[2].put(next_mu);
        let AsgdOptions { lambd, weight_decay, maximize, .. } = *self;
        Ok(AsgdStep { eta, lambd, mu, weight_decay, maximize })
    }
}
