//! Stochastic gradient descent.

use super::{fused_by, pulled, turned};
use crate::Implementation;
use crate::descent::{Algorithm, Descent};
use crate::foreach::{each_by, map_by, pulled_all, turned_all};
use crate::scope::More;
use crate::state::State;
use crate::value::{finite, not_negative, options};
use cresset_tensor::ops::{FusedSgd, SgdStep};
use cresset_tensor::{Cause, Error, MemoryFormat, Result, Scalar, Tensor};

options! {
    /// The numbers of [`Sgd`].
    SgdOptions for "SGD", check {
        /// The learning rate.
        lr: f64 = 1e-3,
        /// How much of the last step is kept.
        momentum: f64 = 0.0,
        /// How much of the new gradient is left out of the momentum.
        dampening: f64 = 0.0,
        /// How much of the parameter is added to its gradient.
        weight_decay: f64 = 0.0,
        /// Whether the step looks ahead along the momentum.
        nesterov: bool = false,
        /// Whether the objective is to grow.
        maximize: bool = false,
        /// How a step runs; the best that the device has if `None`.
        implementation: Option<Implementation> = None,
    }
}

fn check(options: &SgdOptions) -> Result<()> {
    let SgdOptions { lr, momentum, weight_decay, dampening, nesterov, .. } = *options;
    not_negative("SGD", &[("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)])?;
    finite("SGD", &[("dampening", dampening)])?;
    if nesterov && (momentum <= 0.0 || dampening != 0.0) {
        let text = format_args!(
            "nesterov with momentum {momentum} and dampening {dampening}, expected a momentum above 0 and no dampening"
        );
        return Err(Error::new(Cause::Argument, "SGD", text));
    }
    Ok(())
}

/// Stochastic gradient descent, with momentum if asked for.
pub type Sgd = Descent<SgdOptions>;

const MOMENTUM: &str = "momentum_buffer";

impl Algorithm for SgdOptions {
    const STEP: &'static str = "Optimizer.step#SGD.step";
    const ZERO_GRAD: &'static str = "Optimizer.zero_grad#SGD.zero_grad";
    const NUMBERS: &'static [&'static str] = &[];
    const TENSORS: &'static [&'static str] = &[MOMENTUM];

    fused_by!(FusedSgd, SgdStep);

    fn kept(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &[MOMENTUM] }
    }

    /// The momentum starts as the first gradient, so only the fused step needs room for it before.
    fn prepare(&self, parameter: &Tensor, _grad: &Tensor, state: &mut State) -> Result<()> {
        let chosen = self.implementation.unwrap_or_else(|| Self::preferred(parameter.device().key));
        if chosen == Implementation::Fused && self.momentum != 0.0 && state.find(MOMENTUM).is_none() {
            state.put(MOMENTUM, parameter.empty_like()?);
            state.started = false;
        }
        Ok(())
    }

    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        let mut grad = pulled(turned(grad, self.maximize)?, parameter, self.weight_decay)?;
        if self.momentum != 0.0 {
            let momentum = self.velocity(&grad, state)?;
            grad = if self.nesterov { grad.add_scaled(&momentum, self.momentum)? } else { momentum };
        }
        parameter.add_scaled_(&grad, -self.lr)
    }

    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()> {
        let grads = turned_all(grads, self.maximize)?;
        let mut grads = pulled_all(grads, parameters, self.maximize, self.weight_decay)?;
        if self.momentum != 0.0 {
            let kept = states.iter().map(|state| state.find(MOMENTUM).cloned()).collect::<Option<Vec<_>>>();
            let momenta = match kept {
                Some(momenta) => {
                    each_by(
                        "aten::_foreach_mul_",
                        &momenta,
                        &[More::Float(self.momentum)],
                        |_, momentum| momentum.mul_(self.momentum),
                    )?;
                    let more = [More::List(&grads), More::Scalar(self.share())];
                    each_by("aten::_foreach_add_", &momenta, &more, |i, momentum| {
                        momentum.add_scaled_(&grads[i], self.share())
                    })?;
                    momenta
                }
                None => {
                    let each = grads.iter().zip(states).map(|(grad, state)| self.velocity(grad, state));
                    each.collect::<Result<_>>()?
                }
            };
            grads = if self.nesterov {
                let more = [More::List(&momenta), More::Float(self.momentum)];
                // Gradients that were turned or pulled are our own; others torch changes, and we do not.
                if self.maximize || self.weight_decay != 0.0 {
                    each_by("aten::_foreach_add_", &grads, &more, |i, grad| {
                        grad.add_scaled_(&momenta[i], self.momentum)
                    })?;
                    return self.descend(parameters, &grads);
                }
                map_by("aten::_foreach_add", &grads, &more, |i, grad| {
                    grad.add_scaled(&momenta[i], self.momentum)
                })?
            } else {
                momenta
            };
        }
        self.descend(parameters, &grads)
    }

    fn rule(&self, state: &mut State) -> Result<SgdStep> {
        Ok(SgdStep {
            lr: self.lr,
            momentum: self.momentum,
            dampening: self.dampening,
            weight_decay: self.weight_decay,
            nesterov: self.nesterov,
            maximize: self.maximize,
            first: self.momentum != 0.0 && !state.started,
        })
    }
}

impl SgdOptions {
    fn descend(&self, parameters: &[Tensor], steps: &[Tensor]) -> Result<()> {
        let more = [More::List(steps), More::Float(-self.lr)];
        each_by("aten::_foreach_add_", parameters, &more, |i, parameter| {
            parameter.add_scaled_(&steps[i], -self.lr)
        })
    }

    /// How much of a gradient the momentum takes; whole, as torch has it, where nothing is kept out.
    fn share(&self) -> Scalar {
        if self.dampening == 0.0 { Scalar::Int(1) } else { Scalar::Float(1.0 - self.dampening) }
    }

    /// The momentum with one more gradient.
    fn velocity(&self, grad: &Tensor, state: &mut State) -> Result<Tensor> {
        if let Some(momentum) = state.find(MOMENTUM) {
            momentum.mul_(self.momentum)?;
            momentum.add_scaled_(grad, self.share())?;
        } else {
            state.put(MOMENTUM, grad.detach()?.copy_in(MemoryFormat::Preserve)?);
        }
        state.tensor(MOMENTUM)
    }
}
