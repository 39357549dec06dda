//! Recording: what happens to a call between the switchboard and its kernel.
//!
//! [`record`] and [`record_in_place`] are generic over operators, so they are kept thin: the
//! work is in [`Recording`], compiled once.

use super::no_grad;
use super::node::{Backward, Derivative, Edge, Function, Grads, Node, Saves, take_sequence};
use super::saved::{Kept, Saved};
use crate::op::{Forward, Given, InPlace, Inputs, Output};
use crate::{Cause, Device, Error, Result, Spec, Tensor};
use cresset_dispatch::thread;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Calls the operator below autograd, then attaches the recipe for its gradient.
pub(crate) fn record<O: Forward>(op: O, inputs: O::Inputs<'_>) -> Result<O::Output> {
    let mut recording = Recording::new(O::BACKWARD, O::SAVES);
    inputs.each(|given| recording.input(given));
    recording.check(O::NAME)?;
    let output = {
        let _below = no_grad();
        op.forward(inputs)?
    };
    let mut count = 0;
    output.each(|tensor| {
        recording.output(tensor, (count < O::DIFFERENTIABLE).then_some(count));
        count += 1;
    });
    if count.min(O::DIFFERENTIABLE) > 1 {
        output.each(|tensor| recording.describe(tensor));
    }
    let node = recording.finish(Box::new(move |ctx: &Backward<'_>| -> Result<Grads> { op.backward(ctx) }));
    Ok(output.map(|i, tensor| if i < O::DIFFERENTIABLE { attach(tensor, &node, i) } else { tensor }))
}

/// Changes the first input, which thereby becomes the output of the call.
pub(crate) fn record_in_place<O: InPlace>(op: O, inputs: O::Inputs<'_>, target: &Tensor) -> Result<()> {
    check_change(O::IN_PLACE, target)?;
    let mut recording = Recording::new(O::BACKWARD, O::SAVES);
    inputs.each(|given| recording.input(given));
    recording.check(O::IN_PLACE)?;
    if let Some(first) = recording.saved.first_mut().filter(|_| O::SAVES.inputs()) {
        // Gradients of the other inputs may need the elements that are about to be overwritten.
        let needed = recording.edges.iter().skip(1).any(Option::is_some);
        *first = if needed { Kept::Tensor(Saved::copy_of(target, copy(target)?)) } else { Kept::Nothing };
    }
    {
        let _below = no_grad();
        op.change(inputs, target)?;
    }
    if !target.dtype().is_float() {
        return Ok(());
    }
    target.storage().change_recorded();
    recording.output(target, Some(0));
    let node = recording.finish(Box::new(move |ctx: &Backward<'_>| -> Result<Grads> { op.backward(ctx) }));
    target.set_origin(target.edge_to(node, 0));
    Ok(())
}

fn copy(tensor: &Tensor) -> Result<Tensor> {
    let _unrecorded = no_grad();
    tensor.copy()
}

fn check_change(op: &'static str, target: &Tensor) -> Result<()> {
    if target.requires_grad() && target.is_leaf() {
        let text = "a leaf that requires grad cannot be changed in place; do it under no_grad()";
        return Err(Error::new(Cause::Graph, op, text));
    }
    if target.is_view() {
        let text = "a view cannot be changed in place while gradients are recorded; change the tensor it looks into, or a copy";
        return Err(Error::new(Cause::Graph, op, text));
    }
    Ok(())
}

fn attach(tensor: Tensor, node: &Arc<Node>, output: usize) -> Tensor {
    if !tensor.dtype().is_float() {
        return tensor;
    }
    let edge = tensor.edge_to(node.clone(), output);
    tensor.tracked(edge)
}

/// A [`Node`] being put together.
struct Recording {
    sequence: u64,
    name: &'static str,
    saves: Saves,
    edges: SmallVec<[Option<Edge>; 2]>,
    saved: SmallVec<[Kept; 2]>,
    stale: Option<Tensor>,
    outputs: Vec<(Spec, Device)>,
}

impl Recording {
    /// Takes the node's number before the kernel runs, so that nodes made inside come later.
    fn new(name: &'static str, saves: Saves) -> Recording {
        let sequence = take_sequence();
        Recording {
            sequence,
            name,
            saves,
            edges: SmallVec::new(),
            saved: SmallVec::new(),
            stale: None,
            outputs: Vec::new(),
        }
    }

    #[inline(never)]
    fn input(&mut self, given: Given<'_>) {
        let tensor = given.tensor();
        self.edges.push(tensor.and_then(Tensor::edge));
        if self.saves.inputs() {
            self.saved.push(Kept::input(given));
        }
        if let Some(view) = tensor.filter(|tensor| tensor.is_view() && tensor.check_fresh("").is_err()) {
            self.stale = Some(view.clone());
        }
    }

    fn check(&self, op: &'static str) -> Result<()> {
        self.stale.as_ref().map_or(Ok(()), |view| view.check_fresh(op))
    }

    /// Remembers what an output looks like, for operators that have several.
    fn describe(&mut self, tensor: &Tensor) {
        self.outputs.push((Spec::like(tensor), tensor.device()));
    }

    #[inline(never)]
    fn output(&mut self, tensor: &Tensor, number: Option<usize>) {
        if self.saves.outputs() {
            self.saved.push(Kept::Tensor(Saved::output(tensor, number)));
        }
    }

    #[inline(never)]
    fn finish(self, derivative: Box<Derivative>) -> Arc<Node> {
        let function = Function::Derive { saved: Mutex::new(Some(self.saved)), derivative };
        let thread = thread::number();
        Arc::new(Node {
            sequence: self.sequence,
            thread,
            name: self.name,
            edges: self.edges,
            outputs: self.outputs,
            function,
        })
    }
}
