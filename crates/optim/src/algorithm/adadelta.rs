//! Adadelta.

use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each, each_by, kept, map_by, pulled_all, turned_all};
use crate::scope::More;
use crate::state::State;
use crate::value::{check as check_number, not_negative, options};
use cresset_tensor::ops::{AdadeltaStep, FusedAdadelta};
use cresset_tensor::{Result, Tensor};

options! {
    /// The numbers of [`Adadelta`].
    AdadeltaOptions for "Adadelta", check {
        /// The learning rate.
        lr: f64 = 1.0,
        /// How much of the running means of squares is kept.
        rho: f64 = 0.9,
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-6,
        /// How much of the parameter is added to its gradient.
        weight_decay: f64 = 0.0,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &AdadeltaOptions) -> Result<()> {
    let AdadeltaOptions { lr, rho, eps, weight_decay, .. } = *options;
    not_negative("Adadelta", &[("lr", lr), ("eps", eps), ("weight_decay", weight_decay)])?;
    check_number("Adadelta", "rho", rho, (0.0..=1.0).contains(&rho), "from 0 to 1")
}

/// Gradients scaled by the sizes of steps and gradients before.
pub type Adadelta = Descent<AdadeltaOptions>;

const SQUARE: &str = "square_avg";
const STEPS: &str = "acc_delta";

impl Algorithm for AdadeltaOptions {
    const STEP: &'static str = "Optimizer.step#Adadelta.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#Adadelta.zero_grad";
    const TENSORS: &'static [&'static str] = &[SQUARE, STEPS];

    const COUNTS_FROM_ZEROS: bool = true;

    fused_by!(FusedAdadelta, AdadeltaStep);

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        state.numbers[0].count_traced()?;
        let grad = pulled(turned(grad, self.maximize)?, parameter, self.weight_decay)?;
        let [square, steps] = [state.tensor(SQUARE)?, state.tensor(STEPS)?];
        square.mul_(self.rho)?;
        square.addcmul_(&grad, &grad, 1.0 - self.rho)?;
        let deviation = square.add(self.eps)?;
        deviation.sqrt_()?;
        let step = steps.add(self.eps)?;
        step.sqrt_()?;
        step.div_(&deviation)?;
        step.mul_(&grad)?;
        steps.mul_(self.rho)?;
        steps.addcmul_(&step, &step, 1.0 - self.rho)?;
        parameter.add_scaled_(&step, -self.lr)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        count(states)?;
        let grads = turned_all(grads, self.maximize)?;
        let grads = pulled_all(grads, parameters, self.maximize, self.weight_decay)?;
        let [squares, sizes] = [kept(states, SQUARE)?, kept(states, STEPS)?];
        let fresh = 1.0 - self.rho;
        let (kept, eps) = ([More::Float(self.rho)], [More::Float(self.eps)]);
        each_by("aten::_foreach_mul_", &squares, &kept, |_, square| square.mul_(self.rho))?;
        let more = [More::List(&grads), More::List(&grads), More::Float(fresh)];
        each_by("aten::_foreach_addcmul_", &squares, &more, |i, square| {
            square.addcmul_(&grads[i], &grads[i], fresh)
        })?;
        let deviations = map_by("aten::_foreach_add", &squares, &eps, |_, square| square.add(self.eps))?;
        each("aten::_foreach_sqrt_", &deviations, |_, deviation| deviation.sqrt_())?;
        let steps = map_by("aten::_foreach_add", &sizes, &eps, |_, size| size.add(self.eps))?;
        each("aten::_foreach_sqrt_", &steps, |_, step| step.sqrt_())?;
        each_by("aten::_foreach_div_", &steps, &[More::List(&deviations)], |i, step| {
            step.div_(&deviations[i])
        })?;
        each_by("aten::_foreach_mul_", &steps, &[More::List(&grads)], |i, step| step.mul_(&grads[i]))?;
        each_by("aten::_foreach_mul_", &sizes, &kept, |_, size| size.mul_(self.rho))?;
        let more = [More::List(&steps), More::List(&steps), More::Float(fresh)];
        each_by("aten::_foreach_addcmul_", &sizes, &more, |i, size| {
            size.addcmul_(&steps[i], &steps[i], fresh)
        })?;
        each_by(
            "aten::_foreach_add_",
            parameters,
            &[More::List(&steps), More::Float(-self.lr)],
            |i, parameter| parameter.add_scaled_(&steps[i], -self.lr),
        )
    }

    fn rule(&self, state: &mut State) -> Result<AdadeltaStep> {
        state.numbers[0].count();
        let AdadeltaOptions { lr, rho, eps, weight_decay, maximize, .. } = *self;
        Ok(AdadeltaStep { lr, rho, eps, weight_decay, maximize })
    }
}
