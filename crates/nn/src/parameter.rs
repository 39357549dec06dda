//! A tensor that a module owns and an optimizer changes.

use cresset_tensor::{Device, Result, Tensor};
use parking_lot::RwLock;

/// A leaf that collects gradients. Moving a module to a device replaces the tensor inside.
pub struct Parameter(RwLock<Tensor>);

impl Parameter {
    /// A parameter that starts with the elements of `tensor`.
    ///
    /// # Errors
    /// For element types without gradients.
    pub fn new(tensor: Tensor) -> Result<Parameter> {
        Ok(Parameter(RwLock::new(tensor.detach()?.with_grad()?)))
    }

    /// The tensor as it is now.
    pub fn tensor(&self) -> Tensor {
        self.0.read().clone()
    }

    /// Moves the elements to `device`. Gradients stay behind, and so does an optimizer that
    /// was given the tensor before.
    pub fn to(&self, device: Device) -> Result<()> {
        if self.tensor().device() == device {
            return Ok(());
        }
        let moved = self.tensor().detach()?.to(device)?.with_grad()?;
        *self.0.write() = moved;
        Ok(())
    }
}
