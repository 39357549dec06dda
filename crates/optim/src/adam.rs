//! Adam, and AdamW.

use crate::Optimizer;
use crate::optimizer::{check, forget, scope};
use cresset_dispatch::observe::Role;
use cresset_tensor::ops::{AdamStep, FusedAdam};
use cresset_tensor::{Op as _, Result, Tensor, no_grad};

/// The numbers of [`Adam`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamOptions {
    /// The learning rate.
    pub lr: f64,
    /// How much of the running mean of the gradient, and of its square, is kept.
    pub betas: (f64, f64),
    /// Keeps the divisor away from 0.
    pub eps: f64,
    /// How much the parameter decays.
    pub weight_decay: f64,
    /// Whether the decay is apart from the gradient, as in AdamW.
    pub decoupled: bool,
    /// Whether the objective is to grow.
    pub maximize: bool,
    /// One pass over each parameter. Without it, a step is the sequence of operators that
    /// torch runs by default, to compare profiles with.
    pub fused: bool,
}

impl Default for AdamOptions {
    fn default() -> AdamOptions {
        AdamOptions {
            lr: 1e-3,
            betas: (0.9, 0.999),
            eps: 1e-8,
            weight_decay: 0.0,
            decoupled: false,
            maximize: false,
            fused: true,
        }
    }
}

/// Gradients scaled by running means of themselves and of their squares.
pub struct Adam {
    options: AdamOptions,
    states: Vec<State>,
}

struct State {
    parameter: Tensor,
    /// Running means of the gradient and of its square; none before the first gradient.
    moments: Option<(Tensor, Tensor)>,
    steps: u64,
}

impl Adam {
    /// An optimizer of `parameters`.
    ///
    /// # Errors
    /// For negative numbers, and betas outside `[0, 1)`.
    pub fn new(parameters: Vec<Tensor>, options: AdamOptions) -> Result<Adam> {
        let not_negative = |what, value: f64| {
            check("Adam", what, value, value >= 0.0 && value.is_finite(), "a finite number, at least 0")
        };
        not_negative("lr", options.lr)?;
        not_negative("eps", options.eps)?;
        not_negative("weight_decay", options.weight_decay)?;
        for beta in [options.betas.0, options.betas.1] {
            check("Adam", "a beta", beta, (0.0..1.0).contains(&beta), "at least 0 and below 1")?;
        }
        let states =
            parameters.into_iter().map(|parameter| State { parameter, moments: None, steps: 0 }).collect();
        Ok(Adam { options, states })
    }

    /// Takes a fused step over parameters that have taken equally many before.
    fn fused(&mut self) -> Result<()> {
        let mut lists: [Vec<Tensor>; 4] = Default::default();
        let mut steps: Vec<u64> = Vec::new();
        for state in &mut self.states {
            let Some(grad) = state.parameter.grad() else { continue };
            let (first, second) = state.moments()?;
            steps.push(state.steps);
            [state.parameter.clone(), grad, first, second]
                .into_iter()
                .zip(&mut lists)
                .for_each(|(t, list)| list.push(t));
        }
        while let Some(&step) = steps.first() {
            let here: Vec<usize> = (0..steps.len()).filter(|&i| steps[i] == step).collect();
            let inputs: Vec<&Tensor> = lists.iter().flat_map(|list| here.iter().map(|&i| &list[i])).collect();
            FusedAdam { step: self.options.step(step) }.call(&inputs)?;
            for &i in here.iter().rev() {
                steps.remove(i);
                lists.iter_mut().for_each(|list| drop(list.remove(i)));
            }
        }
        Ok(())
    }
}

impl AdamOptions {
    fn step(&self, step: u64) -> AdamStep {
        AdamStep {
            lr: self.lr,
            beta1: self.betas.0,
            beta2: self.betas.1,
            eps: self.eps,
            weight_decay: self.weight_decay,
            decoupled: self.decoupled,
            amsgrad: false,
            maximize: self.maximize,
            step,
        }
    }
}

impl State {
    /// The moments for one more step.
    fn moments(&mut self) -> Result<(Tensor, Tensor)> {
        if self.moments.is_none() {
            self.moments = Some((self.parameter.zeros_like()?, self.parameter.zeros_like()?));
        }
        self.steps += 1;
        Ok(self.moments.clone().expect("made above"))
    }

    /// One step, operator by operator.
    fn step(&mut self, options: &AdamOptions) -> Result<()> {
        let Some(grad) = self.parameter.grad() else { return Ok(()) };
        let (first, second) = self.moments()?;
        let mut grad = if options.maximize { grad.neg()? } else { grad };
        if options.weight_decay != 0.0 && options.decoupled {
            self.parameter.mul_(1.0 - options.lr * options.weight_decay)?;
        } else if options.weight_decay != 0.0 {
            grad = grad.add_scaled(&self.parameter, options.weight_decay)?;
        }
        let (beta1, beta2) = options.betas;
        first.lerp_(&grad, 1.0 - beta1)?;
        second.mul_(beta2)?;
        second.addcmul_(&grad, &grad, 1.0 - beta2)?;
        let correction = |beta: f64| 1.0 - beta.powi(self.steps as i32);
        let divisor = second.sqrt()?.div(correction(beta2).sqrt())?;
        divisor.add_(options.eps)?;
        self.parameter.addcdiv_(&first, &divisor, -options.lr / correction(beta1))
    }
}

impl Optimizer for Adam {
    fn step(&mut self) -> Result<()> {
        let _scope = scope("Optimizer.step#Adam.step", |visit| {
            for state in &self.states {
                visit(Role::Parameter, &state.parameter);
                if let Some((first, second)) = &state.moments {
                    visit(Role::State, first);
                    visit(Role::State, second);
                }
            }
        });
        let _guard = no_grad();
        if self.options.fused {
            return self.fused();
        }
        let options = self.options;
        self.states.iter_mut().try_for_each(|state| state.step(&options))
    }

    fn zero_grad(&self) {
        let parameters: Vec<Tensor> = self.states.iter().map(|state| state.parameter.clone()).collect();
        forget("Optimizer.zero_grad#Adam.zero_grad", &parameters);
    }

    fn lr(&self) -> f64 {
        self.options.lr
    }

    fn set_lr(&mut self, lr: f64) {
        self.options.lr = lr;
    }
}
