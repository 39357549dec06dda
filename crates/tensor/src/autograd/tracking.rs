//! What a tensor knows of the graph it is part of.

use super::hooks::LeafHooks;
use super::mode::check_inference_leaf;
use super::node::{Edge, Node};
use super::view::How;
use crate::{Cause, Error, Result, Tensor};
use cresset_kernels::{Shared, Watcher};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// A gradient, or none yet.
pub(super) type Collected = Mutex<Option<Tensor>>;

/// A tensor's place in the graph; empty and cheap for those that have none.
#[derive(Default)]
pub(crate) struct Tracking {
    tracked: AtomicBool,
    /// Whether there is an origin: a leaf need not be locked to learn that it has none.
    computed: AtomicBool,
    /// The call that computed the tensor; none for a leaf.
    origin: Mutex<Option<Edge>>,
    /// What few tensors have.
    more: OnceLock<Box<More>>,
}

#[derive(Default)]
struct More {
    /// The end of paths to this leaf. Only watched: it owns the leaf.
    accumulator: Mutex<Option<Watcher<Node>>>,
    grad: Arc<Collected>,
    hooks: OnceLock<Box<LeafHooks>>,
    /// Whether a computed tensor keeps its gradient.
    retains: AtomicBool,
    /// Whether the gradient is a view of memory that others saw when it arrived.
    lent: AtomicBool,
}

impl Tracking {
    #[inline]
    pub(crate) fn is_tracked(&self) -> bool {
        self.tracked.load(Relaxed)
    }

    /// The call that computed the tensor.
    #[inline]
    fn origin(&self) -> Option<Edge> {
        if self.computed.load(Relaxed) { self.origin.lock().clone() } else { None }
    }

    fn more(&self) -> &More {
        self.more.get_or_init(Box::default)
    }

    /// What only some tensors have, if this one does.
    #[inline]
    fn known(&self) -> Option<&More> {
        self.more.get().map(|more| &**more)
    }

    /// Whether the tensor never had a place in a graph, nor a gradient.
    #[inline]
    fn is_blank(&self) -> bool {
        !self.tracked.load(Relaxed) && !self.computed.load(Relaxed) && self.more.get().is_none()
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
        self.0.tracking.known().and_then(|more| more.grad.lock().clone())
    }

    /// The gradient collected so far, in memory of its own, for those who change it in place.
    ///
    /// A gradient that came as a part of other memory, as after `cat` or `view`, is kept as that part. Two
    /// tensors may then have one piece of memory for gradients; here it is copied if someone else holds it.
    ///
    /// # Errors
    /// If there is no memory for the copy.
    pub fn own_grad(&self) -> Result<Option<Tensor>> {
        let Some(more) = self.0.tracking.known() else { return Ok(None) };
        let grad = more.grad.lock().clone();
        match grad {
            Some(grad) if more.lent.load(Relaxed) && grad.0.storage.holders() > 1 => {
                let own = grad.copy_as(self)?;
                self.put_grad(Some(own.clone()));
                Ok(Some(own))
            }
            grad => Ok(grad),
        }
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
        if grad.is_none() && self.0.tracking.known().is_none() {
            return;
        }
        let more = self.0.tracking.more();
        more.lent.store(false, Relaxed);
        // The old gradient is dropped after the lock: dropping it may run a lot of code.
        let _old = std::mem::replace(&mut *more.grad.lock(), grad);
    }

    /// Keeps a gradient that may be a view of memory that others see.
    pub(super) fn put_lent_grad(&self, grad: Tensor, lent: bool) {
        self.put_grad(Some(grad));
        self.0.tracking.more().lent.store(lent, Relaxed);
    }

    /// This tensor as the output that `edge` points to; if it is a view, one that came about
    /// like this.
    pub(super) fn tracked(self, edge: Edge, how: How) -> Tensor {
        let mut tensor = match Shared::is_unique(&self.0) {
            true => self.made(how),
            // An operator gave back a tensor that others hold: its output is a view of that.
            false => self.with_layout(self.layout().clone()).made(How::Opaque),
        };
        match Shared::get_mut(&mut tensor.0) {
            Some(inner) if inner.tracking.is_blank() => {
                *inner.tracking.origin.get_mut() = Some(edge);
                *inner.tracking.computed.get_mut() = true;
                *inner.tracking.tracked.get_mut() = true;
            }
            _ => tensor.set_origin(edge),
        }
        tensor
    }

    /// Puts the tensor behind `edge`, also when others hold it.
    pub(super) fn set_origin(&self, edge: Edge) {
        // The old place is left after the lock: dropping it may run a lot of code.
        let tracking = &self.0.tracking;
        let retains = tracking.known().is_some_and(|more| more.retains.swap(false, Relaxed));
        let before = {
            let mut origin = tracking.origin.lock();
            tracking.computed.store(true, Relaxed);
            origin.replace(edge)
        };
        tracking.tracked.store(true, Relaxed);
        if retains {
            before.iter().for_each(|before| before.node.hooks().release(&self.collected()));
            self.retain();
        }
    }

    /// Keeps the gradient of a computed tensor. That of a leaf is kept anyway.
    pub(super) fn retain(&self) {
        if let Some(edge) = self.origin()
            && !self.0.tracking.more().retains.swap(true, Relaxed)
        {
            edge.node.hooks().retain(edge.output, &self.collected());
        }
    }

    /// Where the gradient of this tensor is kept.
    fn collected(&self) -> Arc<Collected> {
        self.0.tracking.more().grad.clone()
    }

    /// The hooks of this leaf, none of them yet if it is the first time.
    pub(super) fn leaf_hooks(&self) -> &LeafHooks {
        self.0.tracking.more().hooks.get_or_init(Box::default)
    }

    /// The hooks of this leaf, if it ever had any.
    pub(super) fn known_leaf_hooks(&self) -> Option<&LeafHooks> {
        self.0.tracking.known().and_then(|more| more.hooks.get()).map(|hooks| &**hooks)
    }

    /// The call that computed this tensor.
    pub(super) fn origin(&self) -> Option<Edge> {
        // A place that cannot be told is an error for whoever records or runs, not here.
        let _ = self.follow("");
        if !self.0.tracking.is_tracked() {
            return None;
        }
        self.0.tracking.origin()
    }

    /// Whether this is the only handle of the tensor; others may see its elements all the same.
    pub(super) fn is_only_handle(&self) -> bool {
        Shared::is_unique(&self.0)
    }

    /// Whether nobody else can see these elements, so that they may be changed at will.
    pub(super) fn is_sole_owner(&self) -> bool {
        let holders = match &self.0.view {
            Some(view) if !view.is_sole_owner() => return false,
            Some(_) => 2,
            None => 1,
        };
        Shared::is_unique(&self.0) && self.0.storage.holders() == holders && !self.0.layout.may_overlap()
    }

    /// Whether this is the only handle of memory that it sees from the first byte to the last, is no view,
    /// and has neither a place in a graph nor a gradient.
    pub(crate) fn is_alone(&mut self) -> bool {
        let Some(inner) = Shared::get_mut(&mut self.0) else { return false };
        inner.view.is_none()
            && inner.storage.holders() == 1
            && inner.layout.len() * inner.dtype.size() == inner.storage.len()
            && inner.tracking.is_blank()
    }

    /// Where a gradient of this tensor goes; `None` if nowhere.
    pub(super) fn edge(&self) -> Option<Edge> {
        if !self.requires_grad() {
            return None;
        }
        if let Some(edge) = self.0.tracking.origin() {
            return Some(edge);
        }
        let mut accumulator = self.0.tracking.more().accumulator.lock();
        let node = accumulator.as_ref().and_then(Watcher::owner).unwrap_or_else(|| {
            let node = Shared::with(|| Node::accumulate(self.clone()));
            *accumulator = Some(Shared::watch(&node));
            node
        });
        Some(Edge { node, output: 0 })
    }
}
