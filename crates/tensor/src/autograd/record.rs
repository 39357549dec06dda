//! Recording: what happens to a call between the switchboard and its kernel.
//!
//! [`record`] and [`record_in_place`] are generic over operators, so they are kept thin: the
//! work is in [`Recording`], compiled once.

use super::anomaly::Trace;
use super::checkpoint;
use super::mode::{check_savable, no_grad};
use super::node::{
    Backward, Derivative, Derive, Edge, Function, Gradient, Grads, Needless, Node, Saves, skip_number,
};
use super::saved::{Kept, Saved};
use super::view::{How, Slices, check_change};
use crate::op::{Forward, Given, InPlace, Inputs, Output};
use crate::{Error, Key, Op, Result, Tensor, shown};
use cresset_dispatch::KeySet;
use cresset_dispatch::observe;
use cresset_kernels::Shared;
use smallvec::SmallVec;

/// Calls the operator below autograd, then attaches the recipe for its gradient.
pub fn record<O: Forward>(op: O, inputs: O::Inputs<'_>) -> Result<O::Output> {
    let mut recording = Recording::new(O::NAME, op.backward_name(inputs), O::SAVES);
    let node = recording.node();
    (node.takes_missing, node.told) = (O::TAKES_MISSING, O::TOLD);
    match O::NEEDLESS {
        Needless::No => {}
        Needless::Missing(needless) => recording.needless = needless(with_gradients(inputs)),
        Needless::Layouts(needless) => {
            (recording.needless, recording.layouts) = (needless(with_gradients(inputs)), true);
        }
    }
    inputs.each(|given| recording.input(given));
    recording.check()?;
    let output = {
        let _below = no_grad();
        // A call that fails has a number, as in torch.
        op.forward(inputs).inspect_err(|_| skip_number())?
    };
    let mut count = 0;
    output.each_place(|place| {
        match place {
            Some(tensor) => recording.output(tensor, (count < O::DIFFERENTIABLE).then_some(count)),
            None => recording.no_output(),
        }
        count += 1;
    });
    recording.check()?;
    let how = recording.how(O::VIEW, O::Output::SEVERAL);
    let node = recording.finish(Derivative::of(OfOperator(op)));
    Ok(output.map(|i, tensor| if i < O::DIFFERENTIABLE { attach(tensor, &node, i, how) } else { tensor }))
}

/// What a node keeps of an operator.
struct OfOperator<O>(O);

impl<O: Op> Derive for OfOperator<O> {
    fn derive(&self, ctx: &Backward<'_>) -> Result<Grads> {
        self.0.backward(ctx)
    }
}

/// What a node keeps of an operator that changed its first input.
struct OfOperatorInPlace<O>(O);

impl<O: InPlace> Derive for OfOperatorInPlace<O> {
    fn derive(&self, ctx: &Backward<'_>) -> Result<Grads> {
        self.0.backward_in_place(ctx)
    }
}

/// The inputs that get gradients, as bits.
fn with_gradients<I: Inputs>(inputs: I) -> u8 {
    let (mut gets, mut bit) = (0, 1u8);
    inputs.each(|given| {
        if given.tensor().is_some_and(Tensor::requires_grad) {
            gets |= bit;
        }
        bit = bit.wrapping_shl(1);
    });
    gets
}

/// Whether a change of `target`, by a call on tensors with these keys, must be recorded.
pub(crate) fn records_change(keys: KeySet, target: &Tensor) -> bool {
    // A view that is not tracked itself may still look into a tensor that is.
    let concerned = keys.contains(Key::AUTOGRAD) || target.base().is_some_and(Tensor::requires_grad);
    concerned && target.dtype().is_float() && KeySet::AUTOGRAD.here().contains(Key::AUTOGRAD)
}

/// Changes the first input, which thereby becomes the output of the call.
pub(crate) fn record_in_place<O: InPlace>(op: O, inputs: O::Inputs<'_>, target: &Tensor) -> Result<()> {
    // Before the call takes a number, as in torch.
    check_change(O::IN_PLACE, target)?;
    let saves = op.saves_in_place();
    let mut recording = Recording::new(O::IN_PLACE, op.backward_name_in_place(inputs), saves);
    inputs.each(|given| recording.input(given));
    recording.check()?;
    let base = target.base().map(|base| (base, base.edge()));
    let skipped = usize::from(!O::NEEDS_OVERWRITTEN);
    let needed = recording.node().edges.iter().skip(skipped).any(Option::is_some);
    if let Some(first) = recording.saved().first_mut().filter(|_| saves.input(0)) {
        // Gradients may need the elements that are about to be overwritten.
        *first = if needed { Kept::tensor(Saved::copy_of(target, copy(target)?)) } else { Kept::Nothing };
    }
    {
        let _below = no_grad();
        op.change(inputs, target)?;
    }
    target.storage().change_recorded();
    recording.output(target, Some(0));
    let node = recording.finish(Derivative::of(OfOperatorInPlace(op)));
    match base {
        // The view itself follows when it is asked for its place.
        Some((base, before)) => {
            let node = Slices::node(node, target.layout(), base, before);
            base.set_origin(Edge { node, output: 0 });
        }
        None => target.set_origin(Edge { node, output: 0 }),
    }
    Ok(())
}

/// The elements that a change is about to overwrite.
fn copy(tensor: &Tensor) -> Result<Tensor> {
    if observe::is_watched() && tensor.device().is_cpu() {
        let copied = shown::cloned_first(tensor)?;
        if tensor.requires_grad() {
            // Torch records the copy.
            skip_number();
        }
        return Ok(copied);
    }
    let _unrecorded = no_grad();
    tensor.copy()
}

/// An output in its place in the graph, if it can have one.
pub(super) fn attach(tensor: Tensor, node: &Shared<Node>, output: usize, how: How) -> Tensor {
    if !tensor.dtype().is_float() {
        return tensor;
    }
    tensor.tracked(Edge { node: node.clone(), output }, how)
}

/// A [`Node`] being put together.
pub(super) struct Recording {
    /// The operator that was called.
    op: &'static str,
    /// Made where it stays, and not shared yet.
    node: Shared<Node>,
    saves: Saves,
    /// How the inputs came about that are views, and not ordinary ones.
    inherited: How,
    refused: Option<Error>,
    /// Inputs whose elements are not needed, as bits.
    needless: u8,
    /// Whether it is kept how those lie.
    layouts: bool,
}

impl Recording {
    /// Takes the node's number before the kernel runs, so that nodes made inside come later.
    pub(super) fn new(op: &'static str, name: &'static str, saves: Saves) -> Recording {
        let node = Shared::with(|| Node::new(name, SmallVec::new(), Function::Nothing));
        Recording { op, node, saves, inherited: How::Traced, refused: None, needless: 0, layouts: false }
    }

    /// The node so far.
    #[inline]
    pub(super) fn node(&mut self) -> &mut Node {
        Shared::get_mut(&mut self.node).expect("nobody else has it before it is finished")
    }

    /// What the node keeps so far.
    fn saved(&mut self) -> &mut SmallVec<[Kept; 2]> {
        self.node().saved.get_mut().get_or_insert_default()
    }

    #[inline(never)]
    pub(super) fn input(&mut self, given: Given<'_>) {
        let number = self.node.edges.len();
        let needless = number < 8 && self.needless >> number & 1 == 1;
        let keeps = self.saves.input(number) && !needless;
        if let Some(tensor) = given.tensor() {
            self.look_at(tensor, keeps);
        }
        self.node().edges.push(given.tensor().and_then(Tensor::edge));
        if self.saves.inputs() {
            let kept = match given {
                _ if keeps => Kept::input(given),
                Given::Tensor(tensor) if needless && self.layouts => Kept::layout(tensor),
                _ => Kept::Nothing,
            };
            self.saved().push(kept);
        }
    }

    /// Notes what speaks against recording a call on `tensor`.
    fn look_at(&mut self, tensor: &Tensor, keeps: bool) {
        let followed = tensor.follow(self.op);
        let savable = if keeps { check_savable(self.op, tensor) } else { Ok(()) };
        self.refused = self.refused.take().or(followed.and(savable).err());
        if tensor.how() != How::Traced {
            self.inherited = tensor.how();
        }
    }

    pub(super) fn check(&mut self) -> Result<()> {
        checkpoint::stop_if_complete()?;
        self.refused.take().map_or(Ok(()), Err)
    }

    /// How outputs come about that are views.
    fn how(&self, looks_only: bool, several: bool) -> How {
        match self.inherited {
            How::Traced if !looks_only => How::Opaque,
            How::Traced if several => How::OneOfSeveral,
            inherited => inherited,
        }
    }

    /// Keeps something for the derivative.
    pub(super) fn keep(&mut self, kept: Kept) {
        self.saved().push(kept);
    }

    /// Remembers what an output looks like.
    pub(super) fn describe(&mut self, tensor: &Tensor) {
        self.node().outputs.push(Gradient::of(tensor));
    }

    #[inline(never)]
    fn output(&mut self, tensor: &Tensor, number: Option<usize>) {
        if number.is_some() {
            self.describe(tensor);
        }
        if self.saves.outputs() {
            let keeps = number.is_none_or(|number| self.saves.output(number));
            let kept = || Kept::tensor(Saved::output(tensor, number));
            self.saved().push(if keeps { kept() } else { Kept::Nothing });
        }
    }

    /// Leaves the place of an output free that was not asked for: no gradient will come to it.
    #[inline(never)]
    fn no_output(&mut self) {
        self.node().outputs.push(Gradient::none());
        if self.saves.outputs() {
            self.saved().push(Kept::Nothing);
        }
    }

    #[inline(never)]
    pub(super) fn finish(mut self, derivative: Derivative) -> Shared<Node> {
        let trace = Trace::here(self.op);
        let node = self.node();
        (node.function, node.trace) = (Function::Derive(derivative), trace);
        self.node
    }
}
