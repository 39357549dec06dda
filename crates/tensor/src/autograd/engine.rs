//! Runs the graph backwards.
//!
//! Gradients wait at a node until every path to it has arrived. Of the nodes that are ready,
//! the latest call runs first, and leaves before all: the order in which torch runs them.

use super::mode::{enable_grad, no_grad};
use super::node::{Backward, Edge, Function, Grads, Node};
use super::saved::{Kept, Taken};
use super::waiting::{ByNode, NodeSet, Ready, ReadyNodes, Waiting, id};
use super::{anomaly, ending, hooks};
use crate::{Cause, Error, Layout, Result, Tensor};
use cresset_dispatch::observe::{self, Argument, Call, Kind, Name, Sequence, Span};
use cresset_kernels::Shared;
use smallvec::SmallVec;

/// How a backward pass is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass {
    /// Keeps what derivatives need, so that the graph can be run again.
    pub retain_graph: bool,
    /// Records the pass itself, so that gradients have gradients.
    pub create_graph: bool,
    /// Gives `None` for inputs of [`grad`] that the roots do not depend on, instead of an error.
    pub allow_unused: bool,
}

impl Tensor {
    /// Sends ones back through the graph and adds to the gradient of every leaf.
    ///
    /// # Errors
    /// If this is not a single number, or nothing it was computed from requires grad.
    pub fn backward(&self) -> Result<()> {
        backward(&[(self, None)], Pass::default())
    }

    /// Sends `gradient` back through the graph and adds to the gradient of every leaf.
    ///
    /// # Errors
    /// If the gradient is not of this tensor's shape and device, or nothing the tensor was
    /// computed from requires grad.
    pub fn backward_with(&self, gradient: &Tensor) -> Result<()> {
        backward(&[(self, Some(gradient))], Pass::default())
    }
}

/// Sends a gradient per tensor back through the graph and adds to the gradient of every leaf.
/// Without a gradient the tensor must be a single number, and one is sent.
pub fn backward(roots: &[(&Tensor, Option<&Tensor>)], pass: Pass) -> Result<()> {
    let mut run = Run::new(pass);
    run.start("backward", roots)?;
    run.finish()
}

/// The gradients of `roots` with respect to `inputs`. No leaf is changed.
///
/// # Errors
/// As [`backward`]; and if the roots do not depend on an input, unless
/// [`allow_unused`](Pass::allow_unused) is set, which makes its gradient `None`.
pub fn grad(
    roots: &[(&Tensor, Option<&Tensor>)],
    inputs: &[&Tensor],
    pass: Pass,
) -> Result<Vec<Option<Tensor>>> {
    let mut run = Run::new(pass);
    run.start("grad", roots)?;
    let mut wanted = Vec::with_capacity(inputs.len());
    for input in inputs {
        input.follow("grad")?;
        let edge = input.edge().ok_or_else(|| {
            let text = format_args!("an input of shape {:?} does not require grad", input.shape());
            Error::new(Cause::Graph, "grad", text)
        })?;
        run.captures.entry(id(&edge.node)).or_default().push((edge.output, None));
        wanted.push((id(&edge.node), edge));
    }
    let leading = run.leading();
    run.wanted = Some(leading.iter().chain(run.captures.keys()).copied().collect());
    run.leading = Some(leading);
    run.finish()?;
    let captured = |node, output| {
        let all: &SmallVec<[Capture; 1]> = &run.captures[&node];
        all.iter().find(|(other, _)| *other == output).and_then(|(_, gradient)| gradient.clone())
    };
    let gradients: Vec<_> = wanted.iter().map(|(node, edge)| captured(*node, edge.output)).collect();
    match gradients.iter().position(Option::is_none) {
        Some(i) if !pass.allow_unused => {
            let text = format_args!(
                "the roots do not depend on input {i}, of shape {:?}; set allow_unused if that is as it should be",
                inputs[i].shape()
            );
            Err(Error::new(Cause::Graph, "grad", text))
        }
        _ => Ok(gradients),
    }
}

/// An output that someone wants the gradient of, and the gradient.
type Capture = (usize, Option<Tensor>);

/// One pass through the graph.
struct Run {
    pending: Waiting,
    ready: ReadyNodes,
    /// Gradients to be returned instead of put down.
    captures: ByNode<SmallVec<[Capture; 1]>>,
    /// Gradients of the roots, which torch's callers hold until the end.
    first: SmallVec<[Tensor; 1]>,
    /// The nodes to run, where not all of them are.
    leading: Option<NodeSet>,
    /// These and the ones whose gradients are captured: what gradients are computed for.
    wanted: Option<NodeSet>,
    pass: Pass,
}

impl Run {
    fn new(pass: Pass) -> Run {
        Run {
            pending: Waiting::default(),
            ready: ReadyNodes::default(),
            captures: ByNode::default(),
            first: SmallVec::new(),
            leading: None,
            wanted: None,
            pass,
        }
    }

    /// Puts the gradients of `roots` where they begin.
    fn start(&mut self, op: &'static str, roots: &[(&Tensor, Option<&Tensor>)]) -> Result<()> {
        let _mode = mode(self.pass);
        let mut starts: SmallVec<[Ready; 1]> = SmallVec::new();
        for (root, gradient) in roots {
            root.follow(op)?;
            let edge = root.edge().ok_or_else(|| no_graph(op, root))?;
            let gradient = first_gradient(op, root, *gradient)?;
            if observe::is_watched() {
                self.first.push(gradient.clone());
            }
            let (place, new) = self.pending.entry(id(&edge.node));
            self.put(place, edge.output, gradient)?;
            if new {
                starts.push(Ready { node: edge.node, place });
            }
        }
        self.count(&starts);
        for Ready { node, place } in starts {
            if self.pending.at(place).missing == 0 {
                self.ready.push(node, place);
            }
        }
        Ok(())
    }

    /// Counts the edges that lead to each node reachable from `starts`.
    fn count(&mut self, starts: &[Ready]) {
        let mut stack: SmallVec<[&Shared<Node>; 8]> = starts.iter().map(|start| &start.node).collect();
        while let Some(node) = stack.pop() {
            for edge in node.edges.iter().flatten() {
                let (place, new) = self.pending.entry(id(&edge.node));
                self.pending.at(place).missing += 1;
                if new {
                    stack.push(&edge.node);
                }
            }
        }
    }

    /// The nodes that lead to one whose gradient is to be captured.
    fn leading(&self) -> NodeSet {
        let mut known = NodeSet::default();
        let mut leading = NodeSet::default();
        let mut stack: Vec<(&Shared<Node>, bool)> = self.ready.iter().map(|node| (node, false)).collect();
        while let Some((node, targets_are_known)) = stack.pop() {
            let targets = node.edges.iter().flatten().map(|edge| &edge.node);
            if targets_are_known {
                let leads = |target| leading.contains(&id(target)) || self.captures.contains_key(&id(target));
                if targets.into_iter().any(leads) {
                    leading.insert(id(node));
                }
            } else if known.insert(id(node)) {
                stack.push((node, true));
                stack.extend(targets.map(|target| (target, false)));
            }
        }
        leading
    }

    /// Runs all nodes.
    fn finish(&mut self) -> Result<()> {
        let (_mode, passing) = (mode(self.pass), ending::begin());
        if self.first.len() > 1 {
            show_roots();
        }
        while let Some(Ready { node, place }) = self.ready.pop() {
            let grads = std::mem::take(&mut self.pending.at(place).grads);
            self.evaluate(&node, grads)?;
        }
        passing.end()
    }

    /// Runs one node and passes its gradients on.
    fn evaluate(&mut self, node: &Shared<Node>, mut grads: Grads) -> Result<()> {
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&id(node))) {
            return Ok(());
        }
        let span = observe::span(&NodeCall { node, grads: &[], kind: Kind::Evaluate });
        let _span = span.map(Span::failing_on_fault);
        hooks::tensor_hooks(node, &mut grads)?;
        if let Some(wanted) = self.captures.get_mut(&id(node)) {
            for (output, place) in wanted {
                *place = grads.get(*output).cloned().flatten();
            }
        }
        if self.leading.as_ref().is_some_and(|leading| !leading.contains(&id(node))) {
            return Ok(());
        }
        // A node that no gradient reached only passes on that there is none.
        let reached = grads.iter().any(Option::is_some);
        let mut results = if reached { self.derive(node, grads)? } else { show_unreached(node) };
        for (result, edge) in results.iter_mut().zip(&node.edges) {
            *result = match (result.take(), edge) {
                (Some(gradient), Some(edge)) => Some(fit(gradient, edge, node.name)?),
                _ => None,
            };
        }
        let mut results = results.into_iter();
        for edge in &node.edges {
            let result = results.next().flatten();
            if let Some(edge) = edge {
                self.arrive(edge, result)?;
            }
        }
        Ok(())
    }

    /// The gradients of a node's inputs, hooks and all. Those of its outputs are let go.
    fn derive(&self, node: &Shared<Node>, mut grads: Grads) -> Result<Grads> {
        hooks::before(node, &mut grads)?;
        complete(node, &mut grads)?;
        let mut results = self
            .run(node, &mut grads, self.wanted.as_ref())
            .map_err(|error| anomaly::explain(node, error))?;
        hooks::after(node, &mut results, &grads)?;
        check_count(node, &results)?;
        anomaly::check(node, &results)?;
        Ok(results)
    }

    fn run(&self, node: &Shared<Node>, grads: &mut Grads, wanted: Option<&NodeSet>) -> Result<Grads> {
        // Let go after the derivative is done, by the engine.
        let _saved;
        let span = observe::span(&NodeCall { node, grads, kind: Kind::Backward });
        let _span = span.map(Span::failing_on_fault);
        match &node.function {
            Function::Accumulate { leaf, one_at_a_time } => {
                {
                    // Passes on several threads may end at one leaf.
                    let _one = one_at_a_time.lock();
                    accumulate(leaf, grads, self.pass)?;
                }
                if node.hooks.get().is_none() {
                    grads.clear();
                }
                hooks::accumulated(leaf)?;
                Ok(Grads::new())
            }
            Function::Derive(derivative) => {
                let again = node.saved.lock().iter().flatten().any(Kept::is_recomputed);
                let taken = unpack(node, self.pass)?;
                let results = derivative.run(&Backward { node, saved: &taken, grads, wanted });
                // What was computed again nobody else may hold: torch lets it go with the derivative.
                if !again {
                    _saved = taken;
                }
                if node.own && node.hooks.get().is_none() {
                    grads.clear();
                }
                results
            }
            Function::Slices(slices) => match grads.first() {
                Some(Some(grad)) => {
                    // The first of its edges is the old view's, which the pass does not know.
                    slices.derive(grad, |grads| self.run(&slices.changed, &mut grads.clone(), None))
                }
                _ => Ok(Grads::new()),
            },
            Function::Nothing => Ok(Grads::new()),
        }
    }

    /// Adds a gradient to those that wait at a place, for the output with this number.
    fn put(&mut self, place: usize, output: usize, gradient: Tensor) -> Result<()> {
        let grads = &mut self.pending.at(place).grads;
        if output == 0 && grads.is_empty() {
            grads.push(Some(gradient));
            return Ok(());
        }
        while grads.len() <= output {
            grads.push(None);
        }
        let place = &mut grads[output];
        *place = Some(match place.take() {
            // Nobody else sees the sum, so it may grow where it is.
            Some(sum) if !self.pass.create_graph && sum.is_sole_owner() && !seen_as_view(&sum) => {
                sum.grow(&gradient)?;
                sum
            }
            Some(sum) => sum.add(&gradient)?,
            None => gradient,
        });
        Ok(())
    }

    /// Notes what `edge` has brought: a gradient, or that there is none.
    fn arrive(&mut self, edge: &Edge, gradient: Option<Tensor>) -> Result<()> {
        let place = self.pending.find(id(&edge.node)).expect(COUNTED);
        if let Some(gradient) = gradient {
            self.put(place, edge.output, gradient)?;
        }
        let pending = self.pending.at(place);
        pending.missing -= 1;
        if pending.missing == 0 {
            self.ready.push(edge.node.clone(), place);
        }
        Ok(())
    }
}

/// Whether a sum is not to grow where it is, because someone watches and torch does not let views grow.
fn seen_as_view(sum: &Tensor) -> bool {
    sum.is_view() && observe::is_watched()
}

/// Torch runs a node that no gradient reached, too. It gives none.
fn show_unreached(node: &Node) -> Grads {
    if observe::is_watched() {
        let missing: Grads = SmallVec::from_elem(None, node.outputs.len().max(1));
        drop(observe::span(&NodeCall { node, grads: &missing, kind: Kind::Backward }));
    }
    Grads::new()
}

/// Several roots hang on a node of their own in torch.
#[cold]
fn show_roots() {
    let node = Node::new("torch::autograd::GraphRoot", SmallVec::new(), Function::Nothing);
    let _evaluated = observe::span(&NodeCall { node: &node, grads: &[], kind: Kind::Evaluate });
    let _run = observe::span(&NodeCall { node: &node, grads: &[], kind: Kind::Backward });
}

const COUNTED: &str = "every reachable node was counted, and runs after all that lead to it";

fn mode(pass: Pass) -> cresset_dispatch::key::ThreadKeys {
    if pass.create_graph { enable_grad() } else { no_grad() }
}

fn no_graph(op: &'static str, root: &Tensor) -> Error {
    let text = format_args!(
        "a tensor of shape {:?} was not computed from anything that requires grad; call with_grad() on the inputs first",
        root.shape()
    );
    Error::new(Cause::Graph, op, text)
}

fn first_gradient(op: &'static str, root: &Tensor, gradient: Option<&Tensor>) -> Result<Tensor> {
    match gradient {
        Some(gradient) => {
            let convert = gradient.dtype().is_float() && gradient.dtype() != root.dtype();
            let gradient = if convert { gradient.to_dtype(root.dtype())? } else { gradient.clone() };
            root.check_gradient(op, &gradient)?;
            Ok(gradient)
        }
        None if root.numel() == 1 => root.first_ones(),
        None => {
            let text = format_args!(
                "a tensor of shape {:?} is not a single number: give its gradient",
                root.shape()
            );
            Err(Error::new(Cause::Shape, op, text))
        }
    }
}

/// Gives a gradient the shape and dtype that its receiver had: undoes broadcasting.
#[inline]
pub(super) fn fit(gradient: Tensor, edge: &Edge, node: &'static str) -> Result<Tensor> {
    let fits = edge.looks_like(&gradient);
    if fits { Ok(gradient) } else { fitted(gradient, edge, node) }
}

fn fitted(gradient: Tensor, edge: &Edge, node: &'static str) -> Result<Tensor> {
    if gradient.device() != edge.device() {
        let text = format_args!(
            "returned a gradient of shape {:?} on {} for an input of shape {:?} on {}",
            gradient.shape(),
            gradient.device(),
            edge.shape(),
            edge.device()
        );
        return Err(Error::new(Cause::Device, node, text));
    }
    let gradient = match gradient.0.layout.has_shape(edge.shape()) {
        true => gradient,
        false
            if Layout::contiguous(edge.shape())
                .is_some_and(|l| l.broadcast_to(gradient.shape()).is_some()) =>
        {
            gradient.sum_to(edge.shape())?
        }
        false => {
            let (got, wanted) = (gradient.shape(), edge.shape());
            let text = format_args!("returned a gradient of shape {got:?} for an input of shape {wanted:?}");
            return Err(Error::new(Cause::Shape, node, text));
        }
    };
    if gradient.dtype() == edge.dtype() { Ok(gradient) } else { gradient.to_dtype(edge.dtype()) }
}

/// The gradients of all outputs: zeros for those that nothing was computed from.
fn complete(node: &Node, grads: &mut Grads) -> Result<()> {
    for (i, output) in node.outputs.iter().enumerate().filter(|(_, output)| output.dtype.is_float()) {
        if grads.len() <= i {
            grads.resize(i + 1, None);
        }
        if grads[i].is_none() && !node.takes_missing {
            grads[i] = Some(Tensor::zeros(&output.shape, (output.dtype, output.device))?);
        }
    }
    Ok(())
}

/// Refuses results that leave out an input that wants a gradient, or that are too many.
fn check_count(node: &Node, results: &Grads) -> Result<()> {
    let wanted = node.edges.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    if (wanted..=node.edges.len()).contains(&results.len()) {
        return Ok(());
    }
    let text =
        format_args!("the derivative returned {} gradients for {} inputs", results.len(), node.edges.len());
    Err(Error::new(Cause::Graph, node.name, text))
}

/// Takes out what a node kept; for good, unless the graph is to be run again.
fn unpack(node: &Shared<Node>, pass: Pass) -> Result<SmallVec<[Taken; 2]>> {
    let mut kept = node.saved.lock();
    let Some(saved) = kept.as_ref() else {
        let text =
            "the graph was run before and what the gradient needs is gone; pass retain_graph the first time";
        return Err(Error::new(Cause::Graph, node.name, text));
    };
    // A node that keeps no tensor can be run again and again.
    let lasts = !saved.iter().any(|kept| matches!(kept, Kept::Tensor(_) | Kept::Recomputed(_)));
    if lasts || pass.retain_graph || pass.create_graph {
        return saved.iter().map(|kept| kept.look(node, pass.create_graph)).collect();
    }
    let saved = kept.take();
    drop(kept);
    let mut taken = SmallVec::new();
    for kept in saved.into_iter().flatten() {
        taken.push(kept.take(node)?);
    }
    Ok(taken)
}

fn accumulate(leaf: &Tensor, grads: &Grads, pass: Pass) -> Result<()> {
    let Some(Some(gradient)) = grads.first() else { return Ok(()) };
    let sum = match leaf.grad() {
        // Recorded sums must not be changed in place; others may.
        Some(sum) if pass.create_graph || sum.requires_grad() => sum.add(gradient)?,
        Some(_) => return leaf.own_grad()?.map_or(Ok(()), |sum| sum.add_(gradient)),
        None if pass.create_graph => gradient.clone(),
        None if gradient.is_only_handle() && !gradient.requires_grad() && lies_as(gradient, leaf) => {
            let lent = !gradient.is_sole_owner();
            // It leaves the graph of its pass, and a view need not stay one.
            let gradient = match observe::is_watched() || gradient.is_view() {
                true => gradient.detach()?,
                false => gradient.clone(),
            };
            leaf.put_lent_grad(gradient, lent);
            return Ok(());
        }
        // Others hold this tensor: a later sum in place would change theirs.
        None => gradient.copy_as(leaf)?,
    };
    leaf.put_grad(Some(sum));
    Ok(())
}

/// Whether a gradient may be kept as it lies: without gaps, and where it can be in the order of its leaf.
fn lies_as(gradient: &Tensor, leaf: &Tensor) -> bool {
    let (gradient, leaf) = (gradient.layout(), leaf.layout());
    // Where a single element is repeated by a stride of 0, others may hold what it was expanded from.
    let along = |dim: usize| match (gradient.shape()[dim], gradient.strides()[dim]) {
        (1, stride) if stride != 0 => true,
        (_, stride) => stride == leaf.strides()[dim],
    };
    match leaf.is_dense() {
        true => (0..leaf.rank()).all(along),
        false => gradient.is_contiguous(),
    }
}

/// The engine at a node, or the node's derivative, as observers see it.
struct NodeCall<'a> {
    node: &'a Node,
    grads: &'a [Option<Tensor>],
    kind: Kind,
}

impl Call for NodeCall<'_> {
    fn name(&self) -> Name<'_> {
        Name::Static(self.node.name)
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        for grad in self.grads {
            visit(grad.as_ref().map_or(Argument::None, |grad| Argument::Tensor(grad.argument())));
        }
        if self.kind == Kind::Backward {
            (self.grads.len()..self.node.told).for_each(|_| visit(Argument::None));
        }
    }

    fn sequence(&self) -> Option<Sequence> {
        // Torch leaves the number out where a hook on a gradient runs before the node.
        let hooked = self.kind == Kind::Evaluate
            && self.node.hooks.get().is_some_and(|hooks| hooks.has_gradient_hooks());
        let recorded = !matches!(self.node.function, Function::Accumulate { .. }) && !hooked;
        recorded.then_some(Sequence { number: self.node.sequence, forward_thread: self.node.thread })
    }
}
