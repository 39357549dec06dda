//! Tensors that a module owns: parameters, which are learned, and buffers, which are not.

use cresset_tensor::{Result, Tensor, To};
use parking_lot::RwLock;
use std::fmt;
use std::sync::Arc;

/// A leaf that collects gradients. A clone is the same parameter, so that modules can share one.
///
/// Moving a module to a device or to an element type replaces the tensor inside.
#[derive(Clone)]
pub struct Parameter(Arc<RwLock<Tensor>>);

impl Parameter {
    /// A parameter that starts with the elements of `tensor`, which it shares.
    ///
    /// # Errors
    /// For element types without gradients.
    pub fn new(tensor: Tensor) -> Result<Parameter> {
        Ok(Parameter(Arc::new(RwLock::new(tensor.detach()?.with_grad()?))))
    }

    /// The tensor as it is now.
    pub fn tensor(&self) -> Tensor {
        self.0.read().clone()
    }

    /// Puts another leaf in the place of the tensor. Gradients stay behind, and so does an
    /// optimizer that was given the tensor before.
    ///
    /// # Errors
    /// For element types without gradients.
    pub fn replace(&self, tensor: Tensor) -> Result<()> {
        let leaf = tensor.detach()?.with_grad()?;
        *self.0.write() = leaf;
        Ok(())
    }

    /// Whether both are one parameter.
    pub fn same_as(&self, other: &Parameter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The tensor with another type or place, as [`put`](Parameter::put) takes it.
    pub(crate) fn moved(&self, to: To) -> Result<Tensor> {
        let tensor = self.tensor();
        let moved = cast(&tensor, to)?;
        if moved.same_as(&tensor) {
            return Ok(tensor);
        }
        let moved = moved.detach()?;
        moved.set_requires_grad(tensor.requires_grad())?;
        if let Some(grad) = tensor.grad() {
            moved.set_grad(cast(&grad, to)?)?;
        }
        Ok(moved)
    }

    pub(crate) fn put(&self, tensor: Tensor) {
        *self.0.write() = tensor;
    }
}

impl fmt::Debug for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensor = self.tensor();
        write!(f, "Parameter({:?}, {}, {})", tensor.shape(), tensor.dtype(), tensor.device())
    }
}

/// A tensor that belongs to a module but is not learned, such as a running mean.
///
/// A clone is the same buffer.
#[derive(Clone)]
pub struct Buffer {
    tensor: Arc<RwLock<Tensor>>,
    persistent: bool,
}

impl Buffer {
    /// A buffer that is part of the module's state.
    pub fn new(tensor: Tensor) -> Buffer {
        Buffer { tensor: Arc::new(RwLock::new(tensor)), persistent: true }
    }

    /// A buffer that moves with the module, but is not saved: it can be computed again.
    pub fn transient(tensor: Tensor) -> Buffer {
        Buffer { persistent: false, ..Buffer::new(tensor) }
    }

    /// The tensor as it is now.
    pub fn tensor(&self) -> Tensor {
        self.tensor.read().clone()
    }

    /// Puts another tensor in its place.
    pub fn replace(&self, tensor: Tensor) {
        *self.tensor.write() = tensor;
    }

    /// Whether it is part of the state.
    pub fn is_persistent(&self) -> bool {
        self.persistent
    }

    pub(crate) fn moved(&self, to: To) -> Result<Tensor> {
        cast(&self.tensor(), to)
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensor = self.tensor();
        write!(f, "Buffer({:?}, {}, {})", tensor.shape(), tensor.dtype(), tensor.device())
    }
}

/// Only floats change their type: a count stays a count.
fn cast(tensor: &Tensor, to: To) -> Result<Tensor> {
    let dtype = to.dtype.filter(|_| tensor.dtype().is_float());
    let _guard = cresset_tensor::no_grad();
    tensor.to(To { dtype, ..to })
}
