//! Stochastic gradient descent.

use crate::Optimizer;
use crate::optimizer::{check, forget, scope};
use cresset_dispatch::observe::Role;
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};

/// The numbers of [`Sgd`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SgdOptions {
    /// The learning rate.
    pub lr: f64,
    /// How much of the last step is kept.
    pub momentum: f64,
    /// How much of the new gradient is left out of the momentum.
    pub dampening: f64,
    /// How much of the parameter is added to its gradient.
    pub weight_decay: f64,
    /// Whether the step looks ahead along the momentum.
    pub nesterov: bool,
    /// Whether the objective is to grow.
    pub maximize: bool,
}

impl Default for SgdOptions {
    fn default() -> SgdOptions {
        SgdOptions {
            lr: 1e-3,
            momentum: 0.0,
            dampening: 0.0,
            weight_decay: 0.0,
            nesterov: false,
            maximize: false,
        }
    }
}

/// Stochastic gradient descent, with momentum if asked for.
pub struct Sgd {
    options: SgdOptions,
    parameters: Vec<Tensor>,
    momentum: Vec<Option<Tensor>>,
}

impl Sgd {
    /// An optimizer of `parameters`.
    ///
    /// # Errors
    /// For negative numbers, and for Nesterov without momentum or with dampening.
    pub fn new(parameters: Vec<Tensor>, options: SgdOptions) -> Result<Sgd> {
        let not_negative = |what, value: f64| {
            check("SGD", what, value, value >= 0.0 && value.is_finite(), "a finite number, at least 0")
        };
        not_negative("lr", options.lr)?;
        not_negative("momentum", options.momentum)?;
        not_negative("weight_decay", options.weight_decay)?;
        if options.nesterov && (options.momentum <= 0.0 || options.dampening != 0.0) {
            return Err(Error::new(Cause::Argument, "SGD", "nesterov needs a momentum and no dampening"));
        }
        let momentum = vec![None; parameters.len()];
        Ok(Sgd { options, parameters, momentum })
    }
}

impl Optimizer for Sgd {
    fn step(&mut self) -> Result<()> {
        let _scope = scope("Optimizer.step#SGD.step", |visit| {
            self.parameters.iter().for_each(|tensor| visit(Role::Parameter, tensor));
            self.momentum.iter().flatten().for_each(|tensor| visit(Role::State, tensor));
        });
        let _guard = no_grad();
        for (parameter, momentum) in self.parameters.iter().zip(&mut self.momentum) {
            if let Some(grad) = parameter.grad() {
                update(&self.options, parameter, grad, momentum)?;
            }
        }
        Ok(())
    }

    fn zero_grad(&self) {
        forget("Optimizer.zero_grad#SGD.zero_grad", &self.parameters);
    }

    fn lr(&self) -> f64 {
        self.options.lr
    }

    fn set_lr(&mut self, lr: f64) {
        self.options.lr = lr;
    }
}

fn update(
    options: &SgdOptions,
    parameter: &Tensor,
    grad: Tensor,
    momentum: &mut Option<Tensor>,
) -> Result<()> {
    let mut grad = if options.maximize { grad.neg()? } else { grad };
    if options.weight_decay != 0.0 {
        grad = grad.add_scaled(parameter, options.weight_decay)?;
    }
    if options.momentum != 0.0 {
        let velocity = match momentum {
            Some(velocity) => {
                velocity.mul_(options.momentum)?;
                velocity.add_scaled_(&grad, 1.0 - options.dampening)?;
                velocity
            }
            None => momentum.insert(grad.copy()?),
        };
        grad =
            if options.nesterov { grad.add_scaled(&*velocity, options.momentum)? } else { velocity.clone() };
    }
    parameter.add_scaled_(&grad, -options.lr)
}
