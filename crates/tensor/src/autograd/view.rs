//! Views, and the history of what they look into.
//!
//! A view hangs on its base, the tensor that is no view itself and whose elements it shows. A
//! recorded change through a view becomes part of the base's history, as a [`Slices`] node. Every
//! other view of the base then takes its place in the graph anew, by its layout, as soon as
//! someone asks for it.

use super::engine::fit;
use super::node::{Edge, Function, Gradient, Grads, Node};
use super::record;
use crate::ops::AsStrided;
use crate::{Cause, Error, Key, Layout, Result, Tensor, shown};
use cresset_dispatch::key;
use cresset_kernels::Shared;
use smallvec::{SmallVec, smallvec};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a view looks into.
pub(crate) struct ViewOf {
    base: Tensor,
    how: How,
    /// The version of the storage up to which the view's place in the graph is right.
    seen: AtomicU64,
}

/// How a view came about: whether changes can be traced through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// By an operator that only looks, while calls were recorded.
    Traced,
    /// While calls were not recorded.
    Unrecorded,
    /// As one of several views that one call gave.
    OneOfSeveral,
    /// By an operator whose derivative may be more than that of looking.
    Opaque,
    /// In inference mode.
    Inference,
}

impl ViewOf {
    /// A view of `of`, or of what that looks into itself.
    pub(crate) fn new(of: &Tensor) -> ViewOf {
        let (base, inherited) = match &of.0.view {
            Some(view) => (view.base.clone(), view.how),
            None => (of.clone(), How::Traced),
        };
        let excluded = key::excluded();
        let how = match inherited {
            How::Traced if excluded.contains(Key::CHANGES) => How::Inference,
            How::Traced if excluded.contains(Key::AUTOGRAD) => How::Unrecorded,
            inherited => inherited,
        };
        ViewOf { base, how, seen: AtomicU64::new(of.version()) }
    }

    /// Whether nobody else holds the base.
    pub(super) fn is_sole_owner(&self) -> bool {
        Shared::is_unique(&self.base.0)
    }
}

impl Tensor {
    /// The tensor that this view looks into; `None` if it is no view.
    pub fn base(&self) -> Option<&Tensor> {
        self.0.view.as_ref().map(|view| &view.base)
    }

    /// How this view came about; [`How::Traced`] for what is no view.
    pub(super) fn how(&self) -> How {
        self.0.view.as_ref().map_or(How::Traced, |view| view.how)
    }

    /// The same view, come about like this. Only for its maker: nobody else may hold it.
    pub(crate) fn made(mut self, how: How) -> Tensor {
        if let Some(view) = Shared::get_mut(&mut self.0).and_then(|inner| inner.view.as_mut()) {
            view.how = how;
        }
        self
    }

    /// Whether calls on this tensor concern autograd. An old view of elements that have become
    /// part of a graph since does.
    #[inline]
    pub(crate) fn needs_autograd(&self) -> bool {
        // Views follow before a call takes its number: their nodes come before the call's.
        self.follow("").is_err() || self.0.tracking.is_tracked()
    }

    /// Whether the base was changed behind this view's back, by a recorded call.
    #[inline]
    fn is_outdated(&self) -> bool {
        let recorded = || self.0.storage.recorded_version();
        self.0.view.as_ref().is_some_and(|view| recorded() > view.seen.load(Relaxed))
    }

    /// Takes this view's place in the graph anew, if the base was changed meanwhile.
    ///
    /// # Errors
    /// If that place cannot be told from the layout alone.
    #[inline]
    pub(super) fn follow(&self, op: &'static str) -> Result<()> {
        match &self.0.view {
            Some(view) if self.is_outdated() => self.follow_base(op, view),
            _ => Ok(()),
        }
    }

    #[cold]
    fn follow_base(&self, op: &'static str, view: &ViewOf) -> Result<()> {
        let recorded = self.0.storage.recorded_version();
        if view.base.requires_grad() && self.dtype().is_float() {
            if view.how != How::Traced || view.base.dtype() != self.dtype() {
                let text = format_args!(
                    "the tensor that this view of shape {:?} looks into was changed in place by {}; take the view again",
                    self.shape(),
                    self.storage().changed_by(),
                );
                return Err(Error::new(Cause::Graph, op, text));
            }
            let (layout, from) = (self.layout().clone(), view.base.layout().clone());
            let anew = record::record(AsStrided { layout, from, says_offset: true }, [&view.base])?;
            if let Some(edge) = anew.origin() {
                self.set_origin(edge);
            }
        }
        view.seen.store(recorded, Relaxed);
        Ok(())
    }
}

/// Refuses changes in place that would make gradients wrong.
pub(super) fn check_change(op: &'static str, target: &Tensor) -> Result<()> {
    let refuse = |text: &str| Err(Error::new(Cause::Graph, op, text));
    if let Some(base) = target.base() {
        match target.how() {
            How::Traced => {}
            How::Unrecorded => {
                return refuse(
                    "a view made under no_grad() cannot be changed in place while gradients are recorded; make the view or the change on the other side of no_grad()",
                );
            }
            How::OneOfSeveral => {
                return refuse(
                    "one of several views that a call gave cannot be changed in place while gradients are recorded; change a copy instead",
                );
            }
            How::Opaque => {
                return refuse(
                    "a view that an operator with a derivative of its own gave cannot be changed in place while gradients are recorded; change a copy instead",
                );
            }
            How::Inference => {
                return refuse(
                    "a view made in inference mode cannot be changed in place while gradients are recorded; change a copy instead",
                );
            }
        }
        if base.requires_grad() && base.is_leaf() {
            return refuse(
                "a view of a leaf that requires grad cannot be changed in place; do it under no_grad()",
            );
        }
        if base.layout().may_overlap() || base.dtype() != target.dtype() {
            return refuse(
                "this view shows its elements in a way that changes cannot be traced through; change a copy instead",
            );
        }
    }
    if target.requires_grad() && target.is_leaf() {
        return refuse("a leaf that requires grad cannot be changed in place; do it under no_grad()");
    }
    Ok(())
}

/// What a node does for a base that was changed through a view: gradients of what the view
/// shows go through the call that changed it, all others pass it by.
pub(super) struct Slices {
    /// The call, as if the view were a tensor of its own.
    pub(super) changed: Shared<Node>,
    view: Layout,
    base: Layout,
}

impl Slices {
    /// The node for `base`, whose gradient went to `before`, changed by `changed` through a view.
    pub(super) fn node(
        changed: Shared<Node>,
        view: &Layout,
        base: &Tensor,
        before: Option<Edge>,
    ) -> Shared<Node> {
        let mut edges: SmallVec<[Option<Edge>; 2]> = smallvec![before];
        edges.extend(changed.edges.iter().skip(1).cloned());
        let slices = Slices { changed, view: view.clone(), base: base.layout().clone() };
        let mut node = Node::new("torch::autograd::CopySlices", edges, Function::Slices(Box::new(slices)));
        node.outputs.push(Gradient::of(base));
        Shared::new(node)
    }

    /// Gradients of the base as it was and of the call's other inputs; `derive` runs the call's
    /// own derivative.
    pub(super) fn derive(
        &self,
        grad: &Tensor,
        derive: impl FnOnce(&Grads) -> Result<Grads>,
    ) -> Result<Grads> {
        let whole = self.in_place_of_base(grad)?;
        let part = whole.as_part(self.view.clone())?;
        let mut results = derive(&smallvec![Some(part.copy()?)])?;
        if let (Some(result), Some(Some(edge))) = (results.first_mut(), self.changed.edges.first()) {
            match result.take() {
                Some(gradient) => part.copy_(&fit(gradient, edge, self.changed.name)?)?,
                None => part.zero_()?,
            }
            *result = Some(whole);
        }
        Ok(results)
    }

    /// The gradient, laid out in memory as the base is.
    fn in_place_of_base(&self, grad: &Tensor) -> Result<Tensor> {
        let options = (grad.dtype(), grad.device());
        let whole = if self.base.is_contiguous() && self.base.offset() == 0 {
            shown::new_empty_strided(grad, &self.base)?
        } else {
            let memory = Tensor::zeros([self.base.end()], options)?;
            memory.as_part(self.base.clone())?
        };
        whole.copy_(grad)?;
        Ok(whole)
    }
}
