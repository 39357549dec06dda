//! Nodes and edges of the backward graph.

use super::anomaly::Trace;
use super::hooks::NodeHooks;
use super::saved::{Kept, Taken};
use super::view::Slices;
use super::waiting::{NodeSet, id};
use crate::{DType, Device, Operand, Result, Tensor};
use cresset_dispatch::thread;
use cresset_kernels::{Dims, Owned, Shared};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

/// A gradient for each input; `None` where none flows.
pub type Grads = SmallVec<[Option<Tensor>; 2]>;

/// Which tensors an operator keeps for its derivative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saves {
    /// Only gradients flow through.
    Nothing,
    /// The inputs.
    Inputs,
    /// The inputs from this number on. The others are missing among what was kept.
    InputsFrom(usize),
    /// The outputs.
    Outputs,
    /// The inputs, then the outputs.
    Both,
    /// So many inputs from the first on, then the outputs. The other inputs are missing among what
    /// was kept.
    FirstAndOutputs(usize),
    /// So many inputs from the first on, then the outputs from a number on. All others are missing among
    /// what was kept.
    FirstAndOutputsFrom(usize, usize),
    /// The inputs, then the outputs from this number on. The other outputs are missing among what was
    /// kept.
    AndOutputsFrom(usize),
}

impl Saves {
    pub(super) fn inputs(self) -> bool {
        !matches!(self, Saves::Nothing | Saves::Outputs)
    }

    /// Whether the input with this number is kept.
    pub(super) fn input(self, number: usize) -> bool {
        match self {
            Saves::Inputs | Saves::Both | Saves::AndOutputsFrom(_) => true,
            Saves::InputsFrom(first) => number >= first,
            Saves::FirstAndOutputs(count) | Saves::FirstAndOutputsFrom(count, _) => number < count,
            Saves::Nothing | Saves::Outputs => false,
        }
    }

    pub(super) fn outputs(self) -> bool {
        !matches!(self, Saves::Nothing | Saves::Inputs | Saves::InputsFrom(_))
    }

    /// Whether the output with this number is kept, where any are.
    pub(super) fn output(self, number: usize) -> bool {
        match self {
            Saves::AndOutputsFrom(first) | Saves::FirstAndOutputsFrom(_, first) => number >= first,
            _ => true,
        }
    }
}

/// Inputs whose elements a derivative can do without, though [`Saves`] names them.
///
/// Each is told by a function from the inputs that get gradients to those that are not needed, as bits.
#[derive(Clone, Copy)]
pub enum Needless {
    /// None.
    No,
    /// They are missing among what was kept.
    Missing(fn(u8) -> u8),
    /// Tensors without memory that lie as they did are kept in their place.
    Layouts(fn(u8) -> u8),
}

impl Needless {
    /// Two factors, the first with this number: each is needed for the gradient of the other only.
    pub const fn factor<const FIRST: u8>(gets: u8) -> u8 {
        let [a, b] = [gets >> FIRST & 1, gets >> (FIRST + 1) & 1];
        ((1 - b) | (1 - a) << 1) << FIRST
    }
}

/// What knows the gradients of a call's inputs: an operator, or a function with a derivative of its own.
pub(super) trait Derive: Send + Sync + 'static {
    fn derive(&self, ctx: &Backward<'_>) -> Result<Grads>;
}

/// Some [`Derive`].
pub(super) struct Derivative {
    of: Owned,
    run: fn(&Owned, &Backward<'_>) -> Result<Grads>,
}

impl Derivative {
    pub(super) fn of<D: Derive>(value: D) -> Derivative {
        let run = |of: &Owned, ctx: &Backward<'_>| of.get::<D>().expect("it was made of one").derive(ctx);
        Derivative { of: Owned::new(value), run }
    }

    pub(super) fn run(&self, ctx: &Backward<'_>) -> Result<Grads> {
        (self.run)(&self.of, ctx)
    }
}

/// One recorded call, or the end of a path at a leaf.
pub(crate) struct Node {
    /// Larger for later calls of one thread: of the nodes that are ready, the latest goes first.
    /// Leaves outrank all: a finished gradient is put down at once.
    pub(super) sequence: u64,
    /// The thread the call was made on.
    pub(super) thread: u32,
    pub(super) name: &'static str,
    /// Where the gradient of each input goes.
    pub(super) edges: SmallVec<[Option<Edge>; 2]>,
    /// What the outputs look like, and so their gradients; a leaf tells itself.
    pub(super) outputs: SmallVec<[Gradient; 1]>,
    pub(super) function: Function,
    /// What the derivative needs to see again.
    pub(super) saved: Keeps,
    /// Whether the derivative does without gradients that did not come.
    pub(super) takes_missing: bool,
    /// Whether the derivative is a program's own, which lets the gradients go that it was given.
    pub(super) own: bool,
    /// Of how many outputs observers are told, where it is more than have gradients.
    pub(super) told: usize,
    /// What a program hung on the node.
    pub(super) hooks: OnceLock<Box<NodeHooks>>,
    /// Where the call was made, if someone may want to know.
    pub(super) trace: Option<Box<Trace>>,
}

/// What a node does with the gradients it is given.
pub(super) enum Function {
    /// Adds to the gradient of a leaf.
    Accumulate { leaf: Tensor, one_at_a_time: Mutex<()> },
    /// Computes the gradients of the inputs. Saved tensors are dropped after use.
    Derive(Derivative),
    /// Computes the gradients of the inputs of a call that changed a view.
    Slices(Box<Slices>),
    /// Nothing: the node is being put together, or dropped.
    Nothing,
}

/// What a node keeps for its derivative; gone once the graph was run.
pub(super) type Keeps = Mutex<Option<SmallVec<[Kept; 2]>>>;

/// An output of a node.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(super) node: Shared<Node>,
    pub(super) output: usize,
}

impl Edge {
    /// Whether a gradient looks as the one that is to go there.
    #[inline]
    pub(super) fn looks_like(&self, gradient: &Tensor) -> bool {
        let (shape, dtype, device) = match &self.node.function {
            Function::Accumulate { leaf, .. } => (leaf.shape(), leaf.dtype(), leaf.device()),
            _ => {
                let output = &self.node.outputs[self.output];
                (&output.shape[..], output.dtype, output.device)
            }
        };
        gradient.dtype() == dtype && gradient.device() == device && gradient.layout().has_shape(shape)
    }

    pub(super) fn shape(&self) -> &[usize] {
        match &self.node.function {
            Function::Accumulate { leaf, .. } => leaf.shape(),
            _ => &self.node.outputs[self.output].shape,
        }
    }

    pub(super) fn dtype(&self) -> DType {
        match &self.node.function {
            Function::Accumulate { leaf, .. } => leaf.dtype(),
            _ => self.node.outputs[self.output].dtype,
        }
    }

    pub(super) fn device(&self) -> Device {
        match &self.node.function {
            Function::Accumulate { leaf, .. } => leaf.device(),
            _ => self.node.outputs[self.output].device,
        }
    }
}

/// What a gradient looks like.
pub(super) struct Gradient {
    pub(super) shape: Dims,
    pub(super) dtype: DType,
    pub(super) device: Device,
}

impl Gradient {
    /// That of an output which does not exist.
    pub(super) fn none() -> Gradient {
        Gradient { shape: Dims::from_slice(&[0]), dtype: DType::F32, device: Device::CPU }
    }

    /// The gradient of `tensor`.
    pub(super) fn of(tensor: &Tensor) -> Gradient {
        Gradient { shape: Dims::from_slice(tensor.shape()), dtype: tensor.dtype(), device: tensor.device() }
    }
}

thread_local! {
    /// Each thread counts its own calls: what another thread does must not come between a call
    /// that says the number of its node and the node that takes it.
    static SEQUENCE: Cell<u64> = const { Cell::new(0) };
}

/// The number that the next node of this thread will get.
pub(crate) fn next_sequence() -> u64 {
    SEQUENCE.get()
}

/// Leaves out a number: a call that was to be recorded failed.
pub(crate) fn skip_number() {
    take_sequence();
}

/// Takes the number of the next node of this thread.
pub(super) fn take_sequence() -> u64 {
    SEQUENCE.replace(SEQUENCE.get() + 1)
}

impl Node {
    /// The node of a call that was made just now.
    #[inline(always)]
    pub(super) fn new(name: &'static str, edges: SmallVec<[Option<Edge>; 2]>, function: Function) -> Node {
        Node::numbered(take_sequence(), name, edges, function)
    }

    #[inline(always)]
    pub(super) fn numbered(
        sequence: u64,
        name: &'static str,
        edges: SmallVec<[Option<Edge>; 2]>,
        function: Function,
    ) -> Node {
        Node {
            sequence,
            thread: thread::number(),
            name,
            edges,
            outputs: SmallVec::new(),
            function,
            saved: Mutex::new(Some(SmallVec::new())),
            takes_missing: false,
            own: false,
            told: 0,
            hooks: OnceLock::new(),
            trace: None,
        }
    }

    /// The end of all paths that lead to `leaf`.
    #[inline(always)]
    pub(super) fn accumulate(leaf: Tensor) -> Node {
        let function = Function::Accumulate { leaf, one_at_a_time: Mutex::new(()) };
        Node::numbered(u64::MAX, "torch::autograd::AccumulateGrad", SmallVec::new(), function)
    }
}

impl Node {
    /// Whether no other node is dropped with this one, but for the ends of paths.
    fn ends_here(&mut self) -> bool {
        let keeps = self.saved.get_mut().as_ref().is_some_and(|saved| !saved.is_empty())
            || matches!(self.function, Function::Slices(_));
        let stays = |edge: &Edge| {
            matches!(edge.node.function, Function::Accumulate { .. }) || Shared::count(&edge.node) > 1
        };
        !keeps && self.edges.iter().flatten().all(stays)
    }
}

/// What a node owned.
type Remains = (SmallVec<[Option<Edge>; 2]>, Option<SmallVec<[Kept; 2]>>, Function);

thread_local! {
    /// What nodes owned that were dropped while another one was; none while no node is dropped.
    static REMAINS: RefCell<Option<Vec<Remains>>> = const { RefCell::new(None) };
}

/// A graph can be a million nodes deep, so dropping one must not recurse: what nodes own is
/// dropped by the outermost drop of the thread, in a loop.
impl Drop for Node {
    fn drop(&mut self) {
        if self.ends_here() {
            return;
        }
        let function = std::mem::replace(&mut self.function, Function::Nothing);
        let mut mine = Some((std::mem::take(&mut self.edges), self.saved.get_mut().take(), function));
        let outermost = REMAINS.try_with(|remains| match &mut *remains.borrow_mut() {
            Some(queue) => {
                queue.extend(mine.take());
                false
            }
            idle => {
                *idle = Some(Vec::new());
                true
            }
        });
        if outermost != Ok(true) {
            return;
        }
        while let Some(remains) = mine.take() {
            drop(remains);
            mine = REMAINS.with(|remains| {
                let mut remains = remains.borrow_mut();
                let next = remains.as_mut().and_then(Vec::pop);
                if next.is_none() {
                    *remains = None;
                }
                next
            });
        }
    }
}

/// What a derivative can see.
pub struct Backward<'a> {
    pub(super) node: &'a Node,
    pub(super) saved: &'a [Taken],
    pub(super) grads: &'a [Option<Tensor>],
    /// The nodes that the pass goes to, where it does not go to all.
    pub(super) wanted: Option<&'a NodeSet>,
}

impl Backward<'_> {
    /// The gradient of the first output.
    pub fn grad(&self) -> &Tensor {
        self.grad_of(0)
    }

    /// The gradient of output `i`; zeros if nothing was computed from that output.
    pub fn grad_of(&self, i: usize) -> &Tensor {
        self.grads[i].as_ref().expect("the engine gives every output a gradient")
    }

    /// The gradient of output `i`, if one came; for operators that [take](crate::Op::TAKES_MISSING) none.
    pub fn grad_if_any(&self, i: usize) -> Option<&Tensor> {
        self.grads.get(i).and_then(Option::as_ref)
    }

    /// The `i`th tensor kept by [`Op::SAVES`](crate::Op::SAVES).
    pub fn saved(&self, i: usize) -> &Tensor {
        self.optional(i).expect("Op::SAVES names what the derivative uses")
    }

    /// The `i`th tensor kept, if that input was a tensor at all.
    pub fn optional(&self, i: usize) -> Option<&Tensor> {
        match self.saved.get(i) {
            Some(Taken::Tensor(tensor)) => Some(tensor),
            _ => None,
        }
    }

    /// The `i`th operand kept: a tensor, or the number that stood in its place.
    pub fn operand(&self, i: usize) -> Operand<'_> {
        match self.saved.get(i) {
            Some(Taken::Scalar(scalar)) => Operand::Scalar(*scalar),
            _ => Operand::Tensor(self.saved(i)),
        }
    }

    /// As [`operand`](Backward::operand), if it was given at all.
    pub(crate) fn optional_operand(&self, i: usize) -> Option<Operand<'_>> {
        match self.saved.get(i) {
            Some(Taken::Tensor(_) | Taken::Scalar(_)) => Some(self.operand(i)),
            _ => None,
        }
    }

    /// The shape of input `i`, whose gradient someone wants.
    ///
    /// # Panics
    /// If nobody does: ask [`needs`](Backward::needs) first, as `grads!` does.
    pub fn shape(&self, i: usize) -> &[usize] {
        self.edge(i).shape()
    }

    /// The element type of input `i`, whose gradient someone wants.
    ///
    /// # Panics
    /// As [`shape`](Backward::shape).
    pub fn dtype(&self, i: usize) -> DType {
        self.edge(i).dtype()
    }

    /// Where input `i` is, whose gradient someone wants.
    ///
    /// # Panics
    /// As [`shape`](Backward::shape).
    pub fn device(&self, i: usize) -> Device {
        self.edge(i).device()
    }

    fn edge(&self, i: usize) -> &Edge {
        let edge = self.node.edges.get(i).and_then(Option::as_ref);
        edge.expect("only inputs that get a gradient are asked about")
    }

    /// How many inputs there were, missing ones too.
    pub fn inputs(&self) -> usize {
        self.node.edges.len()
    }

    /// Whether anyone wants the gradient of input `i`.
    pub fn needs(&self, i: usize) -> bool {
        let edge = self.node.edges.get(i).and_then(Option::as_ref);
        edge.is_some_and(|edge| self.wanted.is_none_or(|wanted| wanted.contains(&id(&edge.node))))
    }
}
