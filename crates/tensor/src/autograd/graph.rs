//! The graph as a program can look at it.

use super::hooks::HookHandle;
use super::node::{Function, Grads, Node};
use crate::{Result, Tensor};
use cresset_kernels::Shared;
use std::fmt;

/// A recorded call, or the place where a leaf's gradient is summed up.
#[derive(Clone)]
pub struct GradNode(Shared<Node>);

impl GradNode {
    /// The name, e.g. `MulBackward0`, or `torch::autograd::AccumulateGrad` for a leaf.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Where the gradient of each input goes: a node, and which of its outputs that input was.
    pub fn next(&self) -> Vec<Option<(GradNode, usize)>> {
        let next = |edge: &super::node::Edge| (GradNode(edge.node.clone()), edge.output);
        self.0.edges.iter().map(|edge| edge.as_ref().map(next)).collect()
    }

    /// The leaf whose gradient this node sums up; `None` for a recorded call.
    pub fn leaf(&self) -> Option<&Tensor> {
        match &self.0.function {
            Function::Accumulate { leaf, .. } => Some(leaf),
            _ => None,
        }
    }

    /// Calls `hook` before the node runs, with the gradients of the call's outputs. If it gives
    /// as many others, those are used instead.
    pub fn register_prehook(
        &self,
        hook: impl Fn(&[Option<Tensor>]) -> Result<Option<Grads>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.0.add_before(hook)
    }

    /// Calls `hook` after the node has run, with the gradients of the call's inputs and those of
    /// its outputs. If it gives as many others for the inputs, those are used instead.
    pub fn register_hook(
        &self,
        hook: impl Fn(&[Option<Tensor>], &[Option<Tensor>]) -> Result<Option<Grads>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.0.add_after(hook)
    }

    /// Whether both are the same node.
    pub fn same_as(&self, other: &GradNode) -> bool {
        Shared::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for GradNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.name())
    }
}

impl Tensor {
    /// The node that a gradient of this tensor arrives at: the call that computed it, or the
    /// place where a leaf's gradient is summed up. `None` if it does not require grad.
    ///
    /// The node of a leaf lives as long as someone holds it or a graph leads there.
    pub fn grad_node(&self) -> Option<GradNode> {
        self.edge().map(|edge| GradNode(edge.node))
    }
}
