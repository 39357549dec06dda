//! Tensors kept for a derivative, and proof that they were not changed meanwhile.

use super::checkpoint::{self, Recomputed};
use super::node::{Edge, Node};
use super::view::How;
use crate::op::Given;
use crate::{Cause, Error, Result, Scalar, Spec, Tensor};
use cresset_kernels::Shared;

/// What a node keeps of one argument.
pub(super) enum Kept {
    Tensor(Saved),
    /// A tensor that is computed again when it is needed.
    Recomputed(Box<Recomputed>),
    Scalar(Scalar),
    Nothing,
}

/// The same, taken out for a derivative.
pub(super) enum Taken {
    Tensor(Tensor),
    Scalar(Scalar),
    Nothing,
}

impl Kept {
    /// Keeps an input.
    pub(super) fn input(given: Given<'_>) -> Kept {
        match given {
            Given::Tensor(tensor) => Kept::tensor(Saved::input(tensor)),
            Given::Scalar(scalar) => Kept::Scalar(scalar),
            Given::Nothing => Kept::Nothing,
        }
    }

    /// Keeps how a tensor lies, and none of its elements.
    pub(super) fn layout(tensor: &Tensor) -> Kept {
        let elements = tensor.without_memory();
        Kept::Tensor(Saved { version: elements.version(), elements, place: Place::Own })
    }

    /// Keeps a tensor, or what it takes to compute it again.
    pub(super) fn tensor(saved: Saved) -> Kept {
        checkpoint::keep(saved)
    }

    /// Whether it takes a call of a checkpoint to have it.
    pub(super) fn is_recomputed(&self) -> bool {
        matches!(self, Kept::Recomputed(_))
    }

    /// The argument; in its place in the graph, if the pass is `recorded` itself.
    pub(super) fn look(&self, node: &Shared<Node>, recorded: bool) -> Result<Taken> {
        Ok(match self {
            Kept::Tensor(saved) => Taken::Tensor(saved.unpack(node, recorded)?),
            Kept::Recomputed(recomputed) => Taken::Tensor(recomputed.compute(node)?.unpack(node, recorded)?),
            Kept::Scalar(scalar) => Taken::Scalar(*scalar),
            Kept::Nothing => Taken::Nothing,
        })
    }

    /// The argument, for a pass that is not recorded and after which nobody needs it.
    pub(super) fn take(self, node: &Shared<Node>) -> Result<Taken> {
        match self {
            Kept::Tensor(saved) => {
                saved.check(node)?;
                Ok(Taken::Tensor(saved.elements))
            }
            kept => kept.look(node, false),
        }
    }
}

/// A tensor as it was when a call was recorded.
///
/// The elements of a computed tensor are kept apart from its place in the graph: a node that
/// owned its own output would never be dropped, and a chain of owners only recursively.
pub(super) struct Saved {
    elements: Tensor,
    place: Place,
    version: u64,
}

/// Where in the graph the tensor belongs.
#[derive(Clone)]
pub(super) enum Place {
    /// A leaf, or outside: the tensor knows itself.
    Own,
    /// Computed by an earlier call.
    Computed(Edge),
    /// An output of the very node that keeps it.
    Output(usize),
}

impl Saved {
    /// Keeps an input.
    fn input(tensor: &Tensor) -> Saved {
        let version = tensor.version();
        match tensor.origin() {
            Some(edge) => Saved { elements: tensor.alias(), place: Place::Computed(edge), version },
            None if tensor.requires_grad() => Saved { elements: tensor.clone(), place: Place::Own, version },
            // The tensor itself may become part of this very graph later, by a change in place.
            None => Saved { elements: tensor.alias(), place: Place::Own, version },
        }
    }

    /// Keeps `elements`, a copy of `tensor`, which is about to be changed.
    pub(super) fn copy_of(tensor: &Tensor, elements: Tensor) -> Saved {
        let version = elements.version();
        Saved { elements, place: tensor.edge().map_or(Place::Own, Place::Computed), version }
    }

    /// Keeps an output: by its number, or as a constant if it has no gradient.
    pub(super) fn output(tensor: &Tensor, number: Option<usize>) -> Saved {
        let place = number.map_or(Place::Own, Place::Output);
        Saved { elements: tensor.alias(), place, version: tensor.version() }
    }

    /// A tensor whose elements were computed again.
    pub(super) fn of_parts(elements: Tensor, place: Place, version: u64) -> Saved {
        Saved { elements, place, version }
    }

    /// Whether it is a leaf that collects gradients.
    pub(super) fn is_leaf(&self) -> bool {
        matches!(self.place, Place::Own) && self.elements.requires_grad()
    }

    /// The elements, and the version they were kept at.
    pub(super) fn elements(&self) -> (Tensor, u64) {
        (self.elements.alias(), self.version)
    }

    /// What is left when the elements are let go: where they belong and what they look like.
    pub(super) fn without_elements(self) -> (Place, Spec) {
        let spec = Spec::like(&self.elements);
        (self.place, spec)
    }

    /// Refuses elements that were changed meanwhile.
    fn check(&self, node: &Shared<Node>) -> Result<()> {
        let now = self.elements.version();
        if now == self.version { Ok(()) } else { Err(changed(node.name, &self.elements, self.version, now)) }
    }

    /// The tensor; in its place in the graph, if the pass is `recorded` itself.
    fn unpack(&self, node: &Shared<Node>, recorded: bool) -> Result<Tensor> {
        self.check(node)?;
        Ok(match &self.place {
            Place::Computed(edge) if recorded => self.elements.alias().tracked(edge.clone(), How::Traced),
            Place::Output(output) if recorded => {
                self.elements.alias().tracked(Edge { node: node.clone(), output: *output }, How::Traced)
            }
            _ => self.elements.clone(),
        })
    }
}

#[cold]
fn changed(node: &'static str, tensor: &Tensor, then: u64, now: u64) -> Error {
    let text = format_args!(
        "a tensor of shape {:?} that the gradient needs was changed in place by {}: it was saved at version {then} and is at version {now}; change a copy instead",
        tensor.shape(),
        tensor.storage().changed_by(),
    );
    Error::new(Cause::Graph, node, text)
}
