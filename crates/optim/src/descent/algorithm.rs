//! What an algorithm says of itself, so that [`Descent`](crate::Descent) can run it.

use crate::state::{Made, State};
use crate::{Implementation, Options};
use cresset_tensor::{Cause, Error, Key, MemoryFormat, Result, Tensor};

/// How one kind of optimizer changes a parameter by its gradient.
pub trait Algorithm: Options {
    /// The scope of a step in a profile.
    const STEP: &'static str;
    /// The scope of forgetting gradients in a profile.
    const ZERO_GRAD: &'static str;
    /// Torch's names of the numbers that are kept for each parameter, the count of steps above all.
    const NUMBERS: &'static [&'static str] = &["step"];
    /// Torch's names of all tensors that may be kept for a parameter.
    const TENSORS: &'static [&'static str];
    /// Whether torch makes the count of steps as zeros, and not of a number.
    const COUNTS_FROM_ZEROS: bool = false;
    /// Whether everything is made with the optimizer, and not at a parameter's first gradient.
    const FROM_THE_START: bool = false;
    /// The numbers of one parameter's fused step.
    type Rule: Send;

    /// Which implementation the options ask for.
    fn asked(&self) -> Option<Implementation>;

    /// Which implementation to take on a device if none is asked for.
    fn preferred(key: Key) -> Implementation;

    /// Which of [`TENSORS`](Algorithm::TENSORS) these options need, in the order of the fused kernel.
    fn kept(&self) -> &'static [&'static str] {
        Self::TENSORS
    }

    /// By which calls torch makes a number before the first step.
    fn made(name: &'static str) -> Made {
        if name == "step" && Self::COUNTS_FROM_ZEROS { Made::Zeros } else { Made::Number }
    }

    /// A number before the first step.
    fn first_number(&self, _name: &'static str) -> f64 {
        0.0
    }

    /// A tensor before the first step.
    ///
    /// # Errors
    /// If it cannot be made.
    fn first_tensor(&self, _name: &'static str, parameter: &Tensor, _grad: &Tensor) -> Result<Tensor> {
        parameter.zeros_like_with(MemoryFormat::Preserve)
    }

    /// Makes what is kept and not there yet.
    ///
    /// # Errors
    /// If a tensor cannot be made.
    fn prepare(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()> {
        for &name in self.kept() {
            if state.find(name).is_none() {
                state.put(name, self.first_tensor(name, parameter, grad)?);
            }
        }
        Ok(())
    }

    /// Refuses a parameter that the algorithm is not for.
    ///
    /// # Errors
    /// If it is not.
    fn check_parameter(&self, _parameter: &Tensor) -> Result<()> {
        Ok(())
    }

    /// Takes a step operator by operator.
    ///
    /// # Errors
    /// If an operator fails.
    fn single(&self, parameter: &Tensor, grad: &Tensor, state: &mut State) -> Result<()>;

    /// Takes a step of all parameters list by list.
    ///
    /// # Errors
    /// If an operator fails, or there is no such form.
    fn foreach(&self, parameters: &[Tensor], grads: Vec<Tensor>, states: &mut [&mut State]) -> Result<()>;

    /// The numbers of the next fused step; what is kept as a number goes on.
    ///
    /// # Errors
    /// If there is no fused form.
    fn rule(&self, state: &mut State) -> Result<Self::Rule>;

    /// Takes the fused step: each parameter is followed by its gradient and what is kept. `steps` are the
    /// counts of steps as tensors, while someone watches.
    ///
    /// # Errors
    /// If tensors do not fit together, or there is no fused form.
    fn fused(tensors: &[Tensor], rules: &[Self::Rule], steps: &[Tensor]) -> Result<()>;
}

/// The error of an algorithm without a fused form.
pub(crate) fn no_fused(optimizer: &'static str, expected: &str) -> Error {
    let text = format_args!("has no such implementation, expected {expected}");
    Error::new(Cause::Argument, optimizer, text)
}
