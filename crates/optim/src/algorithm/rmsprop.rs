//! RMSprop.

use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{count, each, each_by, kept, map, map_by, pulled_all, turned_all};
use crate::scope::More;
use crate::state::State;
use crate::value::{not_negative, options};
use cresset_tensor::ops::{FusedRmsprop, RmspropStep};
use cresset_tensor::{Result, Tensor};

options! {
    /// The numbers of [`Rmsprop`].
    RmspropOptions for "RMSprop", check {
        /// The learning rate.
        lr: f64 = 1e-2,
        /// How much of the running mean of squares is kept.
        alpha: f64 = 0.99,
        /// Keeps the divisor away from 0.
        eps: f64 = 1e-8,
        /// How much of the parameter is added to its gradient.
        weight_decay: f64 = 0.0,
        /// How much of the last step is kept.
        momentum: f64 = 0.0,
        /// Whether to divide by the deviation from the mean.
        centered: bool = false,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &RmspropOptions) -> Result<()> {
    let RmspropOptions { lr, alpha, eps, weight_decay, momentum, .. } = *options;
    let numbers =
        [("lr", lr), ("alpha", alpha), ("eps", eps), ("weight_decay", weight_decay), ("momentum", momentum)];
    not_negative("RMSprop", &numbers)
}

/// Gradients scaled by the running mean of their squares.
pub type Rmsprop = Descent<RmspropOptions>;

const SQUARE: &str = "square_avg";
const MEAN: &str = "grad_avg";
const MOMENTUM: &str = "momentum_buffer";

impl Algorithm for RmspropOptions {
    const STEP: &'static str = "Optimizer.step#RMSprop.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#RMSprop.zero_grad";
    const TENSORS: &'static [&'static str] = &[SQUARE, MEAN, MOMENTUM];

    const COUNTS_FROM_ZEROS: bool = true;

    fused_by!(FusedRmsprop, RmspropStep);

    fn kept(&self) -> &'static [&'static str] {
        match (self.centered, self.momentum != 0.0) {
            (false, false) => &[SQUARE],
            (true, false) => &[SQUARE, MEAN],
            (false, true) => &[SQUARE, MOMENTUM],
            (true, true) => &[SQUARE, MEAN, MOMENTUM],
        }
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let grad = turned(grad, self.maximize)?;
        state.numbers[0].count_traced()?;
        let grad = pulled(grad, parameter, self.weight_decay)?;
        let square = state.tensor(SQUARE)?;
        square.mul_(self.alpha)?;
        square.addcmul_(&grad, &grad, 1.0 - self.alpha)?;
        let divisor = if self.centered {
            let mean = state.tensor(MEAN)?;
            mean.lerp_(&grad, 1.0 - self.alpha)?;
            let deviation = square.addcmul(&mean, &mean, -1)?;
            deviation.sqrt_()?;
            deviation
        } else {
            square.sqrt()?
        };
        divisor.add_(self.eps)?;
        if self.momentum == 0.0 {
            return parameter.addcdiv_(&grad, &divisor, -self.lr);
        }
        let last = state.tensor(MOMENTUM)?;
        last.mul_(self.momentum)?;
        last.addcdiv_(&grad, &divisor, 1)?;
        parameter.add_scaled_(&last, -self.lr)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let grads = turned_all(grads, self.maximize)?;
        count(states)?;
        let grads = pulled_all(grads, parameters, self.maximize, self.weight_decay)?;
        let squares = kept(states, SQUARE)?;
        let fresh = 1.0 - self.alpha;
        each_by("aten::_foreach_mul_", &squares, &[More::Float(self.alpha)], |_, square| {
            square.mul_(self.alpha)
        })?;
        let more = [More::List(&grads), More::List(&grads), More::Float(fresh)];
        each_by("aten::_foreach_addcmul_", &squares, &more, |i, square| {
            square.addcmul_(&grads[i], &grads[i], fresh)
        })?;
        let divisors = if self.centered {
            let means = kept(states, MEAN)?;
            each_by("aten::_foreach_lerp_", &means, &[More::List(&grads), More::Float(fresh)], |i, mean| {
                mean.lerp_(&grads[i], fresh)
            })?;
            let more = [More::List(&means), More::List(&means), More::Int(-1)];
            let deviations = map_by("aten::_foreach_addcmul", &squares, &more, |i, square| {
                square.addcmul(&means[i], &means[i], -1)
            })?;
            each("aten::_foreach_sqrt_", &deviations, |_, deviation| deviation.sqrt_())?;
            deviations
        } else {
            map("aten::_foreach_sqrt", &squares, |_, square| square.sqrt())?
        };
        each_by("aten::_foreach_add_", &divisors, &[More::Float(self.eps)], |_, divisor| {
            divisor.add_(self.eps)
        })?;
        if self.momentum == 0.0 {
            let more = [More::List(&grads), More::List(&divisors), More::Float(-self.lr)];
            return each_by("aten::_foreach_addcdiv_", parameters, &more, |i, parameter| {
                parameter.addcdiv_(&grads[i], &divisors[i], -self.lr)
            });
        }
        let last = kept(states, MOMENTUM)?;
        each_by("aten::_foreach_mul_", &last, &[More::Float(self.momentum)], |_, last| {
            last.mul_(self.momentum)
        })?;
        let more = [More::List(&grads), More::List(&divisors), More::Int(1)];
        each_by("aten::_foreach_addcdiv_", &last, &more, |i, last| {
            last.addcdiv_(&grads[i], &divisors[i], 1)
        })?;
        each_by(
            "aten::_foreach_add_",
            parameters,
            &[More::List(&last), More::Float(-self.lr)],
            |i, parameter| parameter.add_scaled_(&last[i], -self.lr),
        )
    }

    fn rule(&self, state: &mut State) -> Result<RmspropStep> {
        state.numbers[0].count();
        let RmspropOptions { lr, alpha, eps, weight_decay, momentum, centered, maximize, .. } = *self;
        Ok(RmspropStep { lr, alpha, eps, weight_decay, momentum, centered, maximize })
    }
}
