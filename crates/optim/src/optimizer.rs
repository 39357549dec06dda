//! What every optimizer can do.

use crate::{StateDict, Value};
use cresset_tensor::{Result, Tensor};

/// How an optimizer runs a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// One operator over all parameters of a group, one pass over each.
    Fused,
    /// Operators over lists of tensors, one after the other.
    Foreach,
    /// Operator by operator for each parameter, in torch's order.
    Single,
}

/// Called before or after a step, with the optimizer.
pub type StepHook = Box<dyn FnMut(&mut dyn Optimizer) -> Result<()> + Send>;

/// Names a hook, to take it away again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookId(pub(crate) u64);

/// Changes parameters by their gradients.
///
/// ```
/// use cresset_optim::{Adam, AdamOptions, Optimizer, Tensor};
///
/// let weight = Tensor::new([1.0f32, -2.0])?.with_grad()?;
/// let mut optimizer: Box<dyn Optimizer> =
///     Box::new(Adam::new(vec![weight.clone()], AdamOptions { lr: 0.1, ..Default::default() })?);
/// for _ in 0..50 {
///     optimizer.zero_grad();
///     weight.mul(&weight)?.sum()?.backward()?;
///     optimizer.step()?;
/// }
/// assert!(weight.to_vec::<f32>()?[0].abs() < 0.5);
/// # Ok::<(), cresset_optim::Error>(())
/// ```
pub trait Optimizer {
    /// What torch calls the optimizer.
    fn name(&self) -> &'static str;

    /// Takes one step. Parameters without a gradient are left alone.
    ///
    /// # Errors
    /// If a parameter and its gradient do not fit together, or a hook fails.
    fn step(&mut self) -> Result<()>;

    /// Takes one step by the gradients that `closure` makes: it forgets the old ones, computes the loss,
    /// goes backward and returns the loss. Gradients are recorded while it runs. [`Lbfgs`](crate::Lbfgs)
    /// calls it several times, the others once. Gives the loss of the first call.
    ///
    /// # Errors
    /// As [`step`](Optimizer::step), and if the closure fails.
    fn step_with(&mut self, closure: &mut dyn FnMut() -> Result<Tensor>) -> Result<Tensor>;

    /// Forgets the gradients of all parameters.
    fn zero_grad(&self);

    /// Fills the gradients of all parameters with zeros; those that have none still have none.
    ///
    /// # Errors
    /// If a device cannot.
    fn zero_grad_in_place(&self) -> Result<()>;

    /// The parameters of each group.
    fn parameters(&self) -> Vec<Vec<Tensor>>;

    /// The learning rate of each group.
    fn lrs(&self) -> Vec<f64>;

    /// Changes the learning rate of each group.
    ///
    /// # Errors
    /// If there are not as many as groups.
    fn set_lrs(&mut self, lrs: &[f64]) -> Result<()>;

    /// The learning rate of each group before the first scheduler changed it: what schedulers start from.
    /// Remembers those of now, if none are remembered.
    fn initial_lrs(&mut self) -> Vec<f64>;

    /// Changes what schedulers start from.
    ///
    /// # Errors
    /// If there are not as many as groups.
    fn set_initial_lrs(&mut self, lrs: &[f64]) -> Result<()>;

    /// An option of a group by torch's name; `None` if there is no such group or option.
    fn option(&self, group: usize, name: &str) -> Option<Value>;

    /// Changes an option of a group by torch's name.
    ///
    /// # Errors
    /// If there is no such group or option, or the optimizer cannot work with the value.
    fn set_option(&mut self, group: usize, name: &str, value: Value) -> Result<()>;

    /// Everything that the next step depends on, copied: the options of all groups, and what is kept
    /// for each parameter.
    ///
    /// # Errors
    /// If a device cannot copy.
    fn state_dict(&self) -> Result<StateDict>;

    /// Goes on from a state of an optimizer of the same kind, with groups of as many parameters of the
    /// same shapes. What is kept moves to the parameters' devices and element types.
    ///
    /// # Errors
    /// If the state does not fit. The optimizer is unchanged then.
    fn load_state_dict(&mut self, state: &StateDict) -> Result<()>;

    /// Calls `hook` at the start of each step.
    fn before_step(&mut self, hook: StepHook) -> HookId;

    /// Calls `hook` at the end of each step.
    fn after_step(&mut self, hook: StepHook) -> HookId;

    /// Takes a hook away; false if it is not there.
    fn remove_hook(&mut self, hook: HookId) -> bool;

    /// The learning rate of the first group.
    fn lr(&self) -> f64 {
        self.lrs().first().copied().unwrap_or(0.0)
    }

    /// Changes the learning rate of all groups.
    fn set_lr(&mut self, lr: f64) {
        let lrs = vec![lr; self.lrs().len()];
        self.set_lrs(&lrs).expect("there is one for each group");
    }
}
