//! L-BFGS: directions by the curvature of the last steps, for losses that can be computed again.

mod history;
mod search;

use crate::descent::{check_count, check_member, zero_in_place};
use crate::hooks::{Hooks, When};
use crate::scope::scope;
use crate::state::{GroupState, StateDict};
use crate::value::{Options as _, choices, not_negative, options};
use crate::{HookId, Optimizer, StepHook, Value};
use cresset_dispatch::observe::Role;
use cresset_tensor::autograd::enable_grad;
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};
use history::History;
use search::Point;

/// How far a step goes along its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSearch {
    /// To where the strong Wolfe conditions hold.
    StrongWolfe,
}

choices!(LineSearch, "\"strong_wolfe\"": StrongWolfe = "strong_wolfe");

options! {
    /// The numbers of [`Lbfgs`].
    LbfgsOptions for "LBFGS", check {
        /// The learning rate.
        lr: f64 = 1.0,
        /// The most iterations of one step.
        max_iter: usize = 20,
        /// The most calls of the closure in one step; a quarter more than iterations if `None`.
        max_eval: Option<usize> = None,
        /// The gradient at which a step ends early.
        tolerance_grad: f64 = 1e-7,
        /// The change of loss or parameters at which a step ends early.
        tolerance_change: f64 = 1e-9,
        /// How many steps the curvature is taken from.
        history_size: usize = 100,
        /// How far to go along a direction; by the learning rate if `None`.
        line_search_fn: Option<LineSearch> = None,
        /// Whether the objective is to grow.
        maximize: bool = false,
    }
}

fn check(options: &LbfgsOptions) -> Result<()> {
    let LbfgsOptions { lr, tolerance_grad, tolerance_change, .. } = *options;
    not_negative(
        "LBFGS",
        &[("lr", lr), ("tolerance_grad", tolerance_grad), ("tolerance_change", tolerance_change)],
    )
}

/// Steps along directions that take the curvature of the last ones into account.
///
/// It computes the loss several times per step, so it needs
/// [`step_with`](Optimizer::step_with), and it has one group.
pub struct Lbfgs {
    options: LbfgsOptions,
    initial_lr: Option<f64>,
    parameters: Vec<Tensor>,
    history: History,
    hooks: Hooks,
}

type Closure<'a> = &'a mut dyn FnMut() -> Result<Tensor>;

impl Lbfgs {
    /// An optimizer of `parameters`.
    ///
    /// # Errors
    /// If there are none, if they are not floats of one type and leaves of the graph, each once and all on
    /// one device, or if the optimizer cannot work with the options.
    pub fn new(parameters: Vec<Tensor>, options: LbfgsOptions) -> Result<Lbfgs> {
        options.check()?;
        let Some(first) = parameters.first() else {
            return Err(Error::new(
                Cause::Argument,
                "LBFGS",
                "there are no parameters, expected at least one",
            ));
        };
        for (i, parameter) in parameters.iter().enumerate() {
            check_member("LBFGS", parameter, &parameters[..i])?;
            if parameter.dtype() != first.dtype() {
                let text = format_args!(
                    "parameters are {} and {}, expected one type",
                    first.dtype(),
                    parameter.dtype()
                );
                return Err(Error::new(Cause::DType, "LBFGS", text));
            }
        }
        Ok(Lbfgs {
            options,
            initial_lr: None,
            parameters,
            history: History::default(),
            hooks: Hooks::default(),
        })
    }

    /// The options.
    pub fn options(&self) -> &LbfgsOptions {
        &self.options
    }

    /// How often the closure was called in all.
    pub fn evaluations(&self) -> usize {
        self.history.evaluations
    }

    /// How many iterations there were in all.
    pub fn iterations(&self) -> usize {
        self.history.iterations
    }

    /// The loss, to be made small.
    fn evaluate(&self, closure: Closure<'_>) -> Result<(Tensor, f64)> {
        let _guard = enable_grad();
        let loss = closure()?;
        let value = loss.item()?.as_f64();
        Ok((loss, if self.options.maximize { -value } else { value }))
    }

    /// All gradients one after the other.
    fn flat_grad(&self) -> Result<Tensor> {
        let flat = |parameter: &Tensor| match parameter.grad() {
            Some(grad) => grad.reshape([-1]),
            None => parameter.zeros_like()?.reshape([-1]),
        };
        let parts = self.parameters.iter().map(flat).collect::<Result<Vec<_>>>()?;
        let grad = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 0)?;
        if self.options.maximize {
            grad.neg_()?;
        }
        Ok(grad)
    }

    fn walk(&self, length: f64, direction: &Tensor) -> Result<()> {
        let mut start = 0;
        for parameter in &self.parameters {
            let part = direction.narrow(0, start as isize, parameter.numel())?;
            parameter.add_scaled_(&part.view_as(parameter)?, length)?;
            start += parameter.numel();
        }
        Ok(())
    }

    fn search(
        &self,
        closure: Closure<'_>,
        from: &Point,
        direction: &Tensor,
        left: usize,
    ) -> Result<search::Found> {
        let start = self.parameters.iter().map(Tensor::copy).collect::<Result<Vec<_>>>()?;
        let mut look = |length: f64| {
            self.walk(length, direction)?;
            let (_, loss) = self.evaluate(&mut *closure)?;
            let grad = self.flat_grad()?;
            for (parameter, start) in self.parameters.iter().zip(&start) {
                parameter.copy_(start)?;
            }
            Point::new(length, loss, grad, direction)
        };
        search::strong_wolfe(&mut look, from, direction, left)
    }

    fn iterate(&mut self, closure: Closure<'_>) -> Result<Tensor> {
        let options = self.options.clone();
        let most_evaluations = options.max_eval.unwrap_or(options.max_iter.saturating_mul(5) / 4);
        let (original, mut loss) = self.evaluate(&mut *closure)?;
        let mut evaluations = 1;
        self.history.evaluations += 1;
        let mut grad = self.flat_grad()?;
        if largest(&grad)? <= options.tolerance_grad {
            return Ok(original);
        }
        for iteration in 1..=options.max_iter {
            self.history.iterations += 1;
            let direction = self.history.direction(&grad, options.history_size)?;
            let last_loss = loss;
            let mut length = options.lr;
            if self.history.iterations == 1 {
                length *= (1.0 / grad.abs()?.sum()?.item()?.as_f64()).min(1.0);
            }
            let slope = grad.dot(&direction)?.item()?.as_f64();
            self.history.length = length;
            if slope > -options.tolerance_change {
                break;
            }
            let mut looked = 0;
            let mut is_flat = false;
            if options.line_search_fn.is_some() {
                let from = Point { length, loss, grad: grad.clone(), slope };
                let left = most_evaluations.saturating_sub(evaluations);
                let found = self.search(&mut *closure, &from, &direction, left)?;
                (loss, grad, length, looked) = (found.loss, found.grad, found.length, found.looks);
                self.walk(length, &direction)?;
                is_flat = largest(&grad)? <= options.tolerance_grad;
            } else {
                self.walk(length, &direction)?;
                // After the last iteration nobody would use it.
                if iteration != options.max_iter {
                    (_, loss) = self.evaluate(&mut *closure)?;
                    grad = self.flat_grad()?;
                    is_flat = largest(&grad)? <= options.tolerance_grad;
                    looked = 1;
                }
            }
            self.history.length = length;
            evaluations += looked;
            self.history.evaluations += looked;
            let moved = largest(&direction.mul(length)?)?;
            if iteration == options.max_iter
                || evaluations >= most_evaluations
                || is_flat
                || moved <= options.tolerance_change
                || (loss - last_loss).abs() < options.tolerance_change
            {
                break;
            }
        }
        Ok(original)
    }

    fn run_hooks(&mut self, when: When) -> Result<()> {
        let mut hooks = self.hooks.take(when);
        let outcome = hooks.iter_mut().try_for_each(|(_, hook)| hook(self));
        self.hooks.put_back(when, hooks);
        outcome
    }

    fn zero_grad_scope(&self) -> Option<cresset_dispatch::observe::Span> {
        scope("Optimizer.zero_grad#LBFGS.zero_grad", |visit| {
            self.parameters.iter().for_each(|tensor| visit(Role::Parameter, tensor));
        })
    }
}

/// The largest size of an element.
fn largest(tensor: &Tensor) -> Result<f64> {
    Ok(tensor.abs()?.max()?.item()?.as_f64())
}

impl Optimizer for Lbfgs {
    fn name(&self) -> &'static str {
        "LBFGS"
    }

    /// Always an error: a step needs a closure.
    fn step(&mut self) -> Result<()> {
        let text = "computes the loss several times per step; call step_with() and a closure that does so";
        Err(Error::new(Cause::Argument, "LBFGS", text))
    }

    fn step_with(&mut self, closure: &mut dyn FnMut() -> Result<Tensor>) -> Result<Tensor> {
        let _scope = scope("Optimizer.step#LBFGS.step", |visit| {
            self.parameters.iter().for_each(|tensor| visit(Role::Parameter, tensor));
            self.history.tensors().for_each(|tensor| visit(Role::State, tensor));
        });
        self.run_hooks(When::Before)?;
        let loss = {
            let _guard = no_grad();
            self.iterate(closure)?
        };
        self.run_hooks(When::After)?;
        Ok(loss)
    }

    fn zero_grad(&self) {
        let _scope = self.zero_grad_scope();
        self.parameters.iter().for_each(Tensor::clear_grad);
    }

    fn zero_grad_in_place(&self) -> Result<()> {
        let _scope = self.zero_grad_scope();
        self.parameters.iter().try_for_each(zero_in_place)
    }

    fn parameters(&self) -> Vec<Vec<Tensor>> {
        vec![self.parameters.clone()]
    }

    fn lrs(&self) -> Vec<f64> {
        vec![self.options.lr]
    }

    fn set_lrs(&mut self, lrs: &[f64]) -> Result<()> {
        check_count("LBFGS", "learning rates", lrs.len(), 1)?;
        self.options.lr = lrs[0];
        Ok(())
    }

    fn initial_lrs(&mut self) -> Vec<f64> {
        vec![*self.initial_lr.get_or_insert(self.options.lr)]
    }

    fn set_initial_lrs(&mut self, lrs: &[f64]) -> Result<()> {
        check_count("LBFGS", "learning rates", lrs.len(), 1)?;
        self.initial_lr = Some(lrs[0]);
        Ok(())
    }

    fn option(&self, group: usize, name: &str) -> Option<Value> {
        let entries = self.options.entries().into_iter().filter(|_| group == 0);
        entries.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn set_option(&mut self, group: usize, name: &str, value: Value) -> Result<()> {
        if group != 0 {
            let text = format_args!("there is no group {group}, expected 0");
            return Err(Error::new(Cause::Argument, "LBFGS", text));
        }
        let mut options = self.options.clone();
        options.set(name, &value)?;
        options.check()?;
        self.options = options;
        Ok(())
    }

    fn state_dict(&self) -> Result<StateDict> {
        let _guard = no_grad();
        let options = self.options.entries().into_iter();
        let group = GroupState {
            options: options.map(|(name, value)| (name.to_owned(), value)).collect(),
            parameters: self.parameters.len(),
            initial_lr: self.initial_lr,
        };
        // Torch keeps what belongs to all parameters with the first.
        let mut state = vec![Default::default(); self.parameters.len()];
        state[0] = self.history.save()?;
        Ok(StateDict { state, groups: vec![group] })
    }

    fn load_state_dict(&mut self, dict: &StateDict) -> Result<()> {
        let _guard = no_grad();
        check_count("LBFGS", "groups", dict.groups.len(), 1)?;
        check_count("LBFGS", "parameters", dict.groups[0].parameters, self.parameters.len())?;
        let mut options = self.options.clone();
        dict.groups[0].options.iter().try_for_each(|(name, value)| options.set(name, value))?;
        options.check()?;
        let length = self.parameters.iter().map(Tensor::numel).sum();
        let history = match dict.state.first() {
            Some(saved) => History::load(saved, &self.parameters[0], length)?,
            None => History::default(),
        };
        (self.options, self.history, self.initial_lr) = (options, history, dict.groups[0].initial_lr);
        Ok(())
    }

    fn before_step(&mut self, hook: StepHook) -> HookId {
        self.hooks.add(When::Before, hook)
    }

    fn after_step(&mut self, hook: StepHook) -> HookId {
        self.hooks.add(When::After, hook)
    }

    fn remove_hook(&mut self, hook: HookId) -> bool {
        self.hooks.remove(hook)
    }
}
