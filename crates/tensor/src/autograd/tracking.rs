//! What a tensor knows of the graph it is part of.

use super::hooks::LeafHooks;
use super::mode::check_inference_leaf;
use super::node::{Edge, Node};
use super::view::How;
use crate::{Cause, Error, Result, Tensor};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// A gradient, or none yet.
pub(super) type Collected = Mutex<Option<Tensor>>;

/// A tensor's place in the graph; empty and cheap for those that have none.
#[derive(Default)]
pub(crate) struct Tracking {
    tracked: AtomicBool,
    place: Mutex<Place>,
}

#[derive(Default)]
struct Place {
    /// The call that computed the tensor; none for a leaf.
    origin: Option<Edge>,
    /// What few tensors have.
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    /// The end of paths to this leaf. Weak: it owns the leaf.
    accumulator: Weak<Node>,
    grad: Arc<Collected>,
    hooks: Option<Arc<LeafHooks>>,
    /// Whether a computed tensor keeps its gradient.
    retains: bool,
}

impl Tracking {
    #[inline]
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracked.load(Relaxed)
    }

    fn update<R>(&self, change: impl FnOnce(&mut More) -> R) -> R {
        change(self.place.lock().more.get_or_insert_default())
    }

    /// Looks at what only some tensors have.
    fn look<R>(&self, look: impl FnOnce(&More) -> Option<R>) -> Option<R> {
        self.place.lock().more.as_deref().and_then(look)
    }
}

impl Tensor {
    /// Whether gradients flow to or through this tensor.
    pub fn requires_grad(&self) -> bool {
        self.needs_autograd() && self.0.tracking.is_tracked()
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
        if requires {
            check_inference_leaf(self)?;
        }
        self.0.tracking.tracked.store(requires, Relaxed);
        Ok(())
    }

    /// This tensor, collecting gradients. See [`set_requires_grad`](Tensor::set_requires_grad).
    pub fn with_grad(self) -> Result<Tensor> {
        self.set_requires_grad(true)?;
        Ok(self)
    }

    /// Whether no recorded call computed this tensor.
    pub fn is_leaf(&self) -> bool {
        self.origin().is_none()
    }

    /// The name of the recorded call that computed this tensor, e.g. `MulBackward0`.
    pub fn grad_fn(&self) -> Option<&'static str> {
        self.origin().map(|edge| edge.node.name.trim_start_matches("torch::autograd::"))
    }

    /// The gradient collected so far.
    pub fn grad(&self) -> Option<Tensor> {
        self.0.tracking.look(|more| more.grad.lock().clone())
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
        if grad.is_none() && self.0.tracking.look(|more| more.grad.lock().as_ref().map(drop)).is_none() {
            return;
        }
        // The old gradient is dropped after the lock: dropping it may run a lot of code.
        let _old = self.0.tracking.update(|more| std::mem::replace(&mut *more.grad.lock(), grad));
    }

    /// This tensor as the output that `edge` points to; if it is a view, one that came about
    /// like this.
    pub(super) fn tracked(self, edge: Edge, how: How) -> Tensor {
        let tensor = match triomphe::Arc::is_unique(&self.0) {
            true => self.made(how),
            // An operator gave back a tensor that others hold: its output is a view of that.
            false => self.with_layout(self.layout().clone()).made(How::Opaque),
        };
        tensor.set_origin(edge);
        tensor
    }

    /// Puts the tensor behind `edge`, also when others hold it.
    pub(super) fn set_origin(&self, edge: Edge) {
        // The old place is left after the lock: dropping it may run a lot of code.
        let (before, retains) = {
            let mut place = self.0.tracking.place.lock();
            let retains = place.more.as_mut().is_some_and(|more| std::mem::take(&mut more.retains));
            (place.origin.replace(edge), retains)
        };
        self.0.tracking.tracked.store(true, Relaxed);
        if retains {
            before.iter().for_each(|before| before.node.hooks().release(&self.collected()));
            self.retain();
        }
    }

    /// Keeps the gradient of a computed tensor. That of a leaf is kept anyway.
    pub(super) fn retain(&self) {
        if let Some(edge) = self.origin()
            && !self.0.tracking.update(|more| std::mem::replace(&mut more.retains, true))
        {
            edge.node.hooks().retain(edge.output, &self.collected());
        }
    }

    /// Where the gradient of this tensor is kept.
    fn collected(&self) -> Arc<Collected> {
        self.0.tracking.update(|more| more.grad.clone())
    }

    /// The hooks of this leaf, none of them yet if it is the first time.
    pub(super) fn leaf_hooks(&self) -> Arc<LeafHooks> {
        self.0.tracking.update(|more| more.hooks.get_or_insert_default().clone())
    }

    /// The hooks of this leaf, if it ever had any.
    pub(super) fn known_leaf_hooks(&self) -> Option<Arc<LeafHooks>> {
        self.0.tracking.look(|more| more.hooks.clone())
    }

    /// The call that computed this tensor.
    pub(super) fn origin(&self) -> Option<Edge> {
        // A place that cannot be told is an error for whoever records or runs, not here.
        let _ = self.follow("");
        if !self.0.tracking.is_tracked() {
            return None;
        }
        self.0.tracking.place.lock().origin.clone()
    }

    /// Whether nobody else can see these elements, so that they may be changed at will.
    pub(super) fn is_sole_owner(&self) -> bool {
        let holders = match &self.0.view {
            Some(view) if !view.is_sole_owner() => return false,
            Some(_) => 2,
            None => 1,
        };
        triomphe::Arc::is_unique(&self.0)
            && self.0.storage.holders() == holders
            && !self.0.layout.may_overlap()
    }

    /// Whether this is the only handle of memory that it sees from the first byte to the last, is no view,
    /// and has neither a place in a graph nor a gradient.
    pub(crate) fn is_alone(&mut self) -> bool {
        let Some(inner) = triomphe::Arc::get_mut(&mut self.0) else { return false };
        let place = inner.tracking.place.get_mut();
        inner.view.is_none()
            && inner.storage.holders() == 1
            && inner.layout.len() * inner.dtype.size() == inner.storage.len()
            && !*inner.tracking.tracked.get_mut()
            && place.origin.is_none()
            && place.more.is_none()
    }

    /// Where a gradient of this tensor goes; `None` if nowhere.
    pub(super) fn edge(&self) -> Option<Edge> {
        if !self.requires_grad() {
            return None;
        }
        let mut place = self.0.tracking.place.lock();
        if let Some(edge) = &place.origin {
            return Some(edge.clone());
        }
        let more = place.more.get_or_insert_default();
        let node = more.accumulator.upgrade().unwrap_or_else(|| {
            let node = Arc::new(Node::accumulate(self.clone()));
            more.accumulator = Arc::downgrade(&node);
            node
        });
        Some(Edge { node, output: 0 })
    }
}
