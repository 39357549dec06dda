//! What a tensor knows of the graph it is part of.

use super::node::{Edge, Node};
use crate::{Cause, Error, Result, Tensor};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// A tensor's place in the graph; empty and cheap for those that have none.
#[derive(Default)]
pub(crate) struct Tracking {
    tracked: AtomicBool,
    place: Mutex<Option<Box<Place>>>,
}

#[derive(Default)]
struct Place {
    /// The call that computed the tensor; none for a leaf.
    origin: Option<Edge>,
    /// The end of paths to this leaf. Weak: it owns the leaf.
    accumulator: Weak<Node>,
    grad: Option<Tensor>,
}

impl Tracking {
    #[inline]
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracked.load(Relaxed)
    }

    fn update<R>(&self, change: impl FnOnce(&mut Place) -> R) -> R {
        change(self.place.lock().get_or_insert_default())
    }
}

impl Tensor {
    /// Whether gradients flow to or through this tensor.
    pub fn requires_grad(&self) -> bool {
        self.0.tracking.is_tracked()
    }

    /// Makes this a leaf that collects gradients, or an ordinary tensor again.
    ///
    /// # Errors
    /// For element types without gradients, and for tensors that calls computed.
    pub fn set_requires_grad(&self, requires: bool) -> Result<()> {
        if requires && !self.dtype().is_float() {
            let text = format_args!("only floats have gradients, this is a tensor of {}", self.dtype());
            return Err(Error::new(Cause::DType, "requires_grad", text));
        }
        if !self.is_leaf() {
            return match requires {
                true => Ok(()),
                false => Err(Error::new(
                    Cause::Graph,
                    "requires_grad",
                    "a computed tensor stays in its graph; use detach()",
                )),
            };
        }
        self.0.tracking.tracked.store(requires, Relaxed);
        if requires {
            self.0.storage.track();
        }
        Ok(())
    }

    /// This tensor, collecting gradients. See [`set_requires_grad`](Tensor::set_requires_grad).
    pub fn with_grad(self) -> Result<Tensor> {
        self.set_requires_grad(true)?;
        Ok(self)
    }

    /// Whether no recorded call computed this tensor.
    pub fn is_leaf(&self) -> bool {
        self.0.tracking.place.lock().as_ref().is_none_or(|place| place.origin.is_none())
    }

    /// The name of the recorded call that computed this tensor, e.g. `MulBackward0`.
    pub fn grad_fn(&self) -> Option<&'static str> {
        self.0
            .tracking
            .place
            .lock()
            .as_ref()
            .and_then(|place| place.origin.as_ref())
            .map(|edge| edge.node.name)
    }

    /// The gradient collected so far.
    pub fn grad(&self) -> Option<Tensor> {
        self.0.tracking.place.lock().as_ref().and_then(|place| place.grad.clone())
    }

    /// Replaces the collected gradient.
    ///
    /// # Errors
    /// If it is not of this tensor's shape, element type and device.
    pub fn set_grad(&self, grad: Tensor) -> Result<()> {
        self.check_gradient("set_grad", &grad)?;
        self.put_grad(Some(grad));
        Ok(())
    }

    /// Refuses a gradient that does not look like this tensor.
    pub(super) fn check_gradient(&self, op: &'static str, grad: &Tensor) -> Result<()> {
        let fits = (self.shape(), self.dtype(), self.device()) == (grad.shape(), grad.dtype(), grad.device());
        if fits {
            return Ok(());
        }
        let text = format_args!(
            "a gradient of shape {:?}, {}, on {}, for a tensor of shape {:?}, {}, on {}",
            grad.shape(),
            grad.dtype(),
            grad.device(),
            self.shape(),
            self.dtype(),
            self.device(),
        );
        Err(Error::new(Cause::Shape, op, text))
    }

    /// Forgets the collected gradient.
    pub fn clear_grad(&self) {
        self.put_grad(None);
    }

    pub(super) fn put_grad(&self, grad: Option<Tensor>) {
        // The old gradient is dropped after the lock: dropping it may run a lot of code.
        let _old = self.0.tracking.update(|place| std::mem::replace(&mut place.grad, grad));
    }

    /// This tensor as the output that `edge` points to.
    pub(crate) fn tracked(mut self, edge: Edge) -> Tensor {
        if Arc::get_mut(&mut self.0).is_none() {
            // An operator gave back a tensor that others hold: its output is a view of that.
            let (storage, layout) = (self.0.storage.clone(), self.0.layout.clone());
            self = Tensor::from_parts(storage, layout, self.0.dtype, true);
        }
        self.set_origin(edge);
        self
    }

    /// Puts the tensor behind `edge`, also when others hold it.
    pub(crate) fn set_origin(&self, edge: Edge) {
        self.0.tracking.update(|place| place.origin = Some(edge));
        self.0.storage.track();
        self.0.tracking.tracked.store(true, Relaxed);
    }

    /// The call that computed this tensor.
    pub(super) fn origin(&self) -> Option<Edge> {
        if !self.requires_grad() {
            return None;
        }
        self.0.tracking.place.lock().as_ref().and_then(|place| place.origin.clone())
    }

    /// Whether nobody else can see these elements, so that they may be changed at will.
    pub(super) fn is_sole_owner(&self) -> bool {
        Arc::strong_count(&self.0) == 1 && self.0.storage.is_unshared() && !self.0.layout.may_overlap()
    }

    /// Where a gradient of this tensor goes; `None` if nowhere.
    pub(crate) fn edge(&self) -> Option<Edge> {
        if !self.requires_grad() {
            return None;
        }
        self.0.tracking.update(|place| {
            if let Some(edge) = &place.origin {
                return Some(edge.clone());
            }
            let node = place.accumulator.upgrade().unwrap_or_else(|| {
                let node = Arc::new(Node::accumulate(self.clone()));
                place.accumulator = Arc::downgrade(&node);
                node
            });
            Some(self.edge_to(node, 0))
        })
    }

    /// An edge for a gradient that looks like this tensor.
    pub(super) fn edge_to(&self, node: Arc<Node>, output: usize) -> Edge {
        let shape = self.shape().into();
        Edge { node, output, shape, dtype: self.dtype(), device: self.device() }
    }

    /// Refuses a view whose elements were changed behind its back: its place in the graph
    /// no longer tells where they come from.
    pub(super) fn check_fresh(&self, op: &'static str) -> Result<()> {
        let Some(seen) = self.0.view_of else { return Ok(()) };
        let changed = if self.requires_grad() { self.version() } else { self.0.storage.recorded_version() };
        if changed <= seen {
            return Ok(());
        }
        let text = format_args!(
            "the tensor that this view of shape {:?} looks into was changed in place by {}; take the view again",
            self.shape(),
            self.storage().changed_by(),
        );
        Err(Error::new(Cause::Graph, op, text))
    }
}
