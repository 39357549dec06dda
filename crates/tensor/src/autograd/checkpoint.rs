//! Checkpoints: what a function computes on the way is not kept for the derivative, but computed
//! again when the derivative asks for it.
//!
//! Inside a checkpoint calls are recorded as everywhere, but the tensors they would keep are only
//! counted. The first node that asks for one runs the function once more; the calls are then
//! recorded again, and the tensors that they keep, taken in the same order, are the missing ones. With the
//! last of them the function is stopped, by an error: what it would compute then, nobody needs.

use super::mode::{enable_grad, is_grad_enabled};
use super::node::Node;
use super::saved::{Kept, Place, Saved, Taken};
use crate::op::{Given, Op as _, Output};
use crate::ops::Detach;
use crate::random::{self, Generator};
use crate::{Autocast, Cause, Error, Result, Spec, Tensor};
use cresset_dispatch::observe;
use cresset_kernels::Shared;
use parking_lot::Mutex;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Calls `f` without keeping what it computes on the way: the backward pass calls it again, with
/// the same random numbers, and gradients are those that they would have been.
///
/// `f` must do the same each time it is called. Tensors that it captures get their gradients
/// like those it is given. When it is called again, it is stopped as soon as all is there that
/// gradients need: the operator that it calls then gives an error, which it should hand on with `?`.
///
/// ```
/// use cresset_tensor::autograd::checkpoint;
/// use cresset_tensor::Tensor;
///
/// let x = Tensor::new([0.5f64, 1.0])?.with_grad()?;
/// let y = checkpoint(|x| x[0].exp()?.tanh()?.exp(), &[&x])?;
/// y.sum()?.backward()?;
/// # assert!(x.grad().is_some());
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
///
/// # Errors
/// What `f` says. The backward pass fails if `f` keeps other tensors the second time.
pub fn checkpoint<O: Output>(
    f: impl Fn(&[Tensor]) -> Result<O> + Send + Sync + 'static,
    inputs: &[impl Borrow<Tensor>],
) -> Result<O> {
    let inputs: Vec<Tensor> = inputs.iter().map(|input| input.borrow().clone()).collect();
    if !is_grad_enabled() {
        return f(&inputs);
    }
    let f = Arc::new(f);
    let again = f.clone();
    let frame = Frame {
        again: Box::new(move |inputs| again(inputs).map(drop)),
        inputs: inputs.iter().map(Input::keep).collect::<Result<_>>()?,
        generator: random::generator(),
        autocast: Autocast::here(),
        wanted: Mutex::default(),
        computed: Mutex::default(),
    };
    let _inside = enter(Active::Counting(Arc::new(frame)));
    f(&inputs)
}

type Again = dyn Fn(&[Tensor]) -> Result<()> + Send + Sync;

/// One call of a checkpointed function.
pub(super) struct Frame {
    again: Box<Again>,
    inputs: Vec<Input>,
    /// The random numbers that the first run began with.
    generator: Generator,
    /// How its calls were cast.
    autocast: Autocast,
    /// For each tensor that calls inside would have kept, whether it must be computed again.
    wanted: Mutex<Vec<bool>>,
    /// Those tensors, where they were computed again and nobody has taken them yet.
    computed: Mutex<Vec<Option<Computed>>>,
}

/// A tensor computed again, and its version when it was kept.
type Computed = (Tensor, u64);

struct Input {
    kept: Kept,
    requires_grad: bool,
}

impl Input {
    fn keep(tensor: &Tensor) -> Result<Input> {
        super::mode::check_savable("checkpoint", tensor)?;
        Ok(Input { kept: Kept::input(Given::Tensor(tensor)), requires_grad: tensor.requires_grad() })
    }

    /// The input as the first run saw it, outside the graph.
    fn unpack(&self, node: &Shared<Node>) -> Result<Tensor> {
        let Taken::Tensor(tensor) = self.kept.look(node, false)? else {
            unreachable!("inputs of checkpoints are tensors");
        };
        let tensor = tensor.alias();
        tensor.set_requires_grad(self.requires_grad)?;
        Ok(tensor)
    }
}

/// What happens to tensors that calls on this thread keep.
#[derive(Clone)]
enum Active {
    /// They are counted, and left to be computed again.
    Counting(Arc<Frame>),
    /// They are collected: the frame's function is being run again.
    Collecting(Arc<Mutex<Collected>>),
}

struct Collected {
    wanted: Vec<bool>,
    tensors: Vec<Option<Computed>>,
    /// Whether the function was stopped, because all tensors are there.
    stopped: bool,
}

/// How many threads run a function again.
static COLLECTING: AtomicUsize = AtomicUsize::new(0);

/// Stops a function that is run again, once all tensors are there.
#[inline]
pub(super) fn stop_if_complete() -> Result<()> {
    if COLLECTING.load(Relaxed) == 0 { Ok(()) } else { stop_here() }
}

#[cold]
fn stop_here() -> Result<()> {
    let Some(Active::Collecting(collected)) = ACTIVE.with_borrow(Clone::clone) else { return Ok(()) };
    let mut collected = collected.lock();
    if collected.stopped || collected.tensors.len() < collected.wanted.len() {
        return Ok(());
    }
    collected.stopped = true;
    let text =
        "a checkpoint has computed again what gradients need, and ends here; hand this error on with `?`";
    Err(Error::stop("checkpoint", text))
}

thread_local! {
    static ACTIVE: RefCell<Option<Active>> = const { RefCell::new(None) };
}

/// Restores what was active before.
struct Inside(Option<Active>);

fn enter(active: Active) -> Inside {
    Inside(ACTIVE.replace(Some(active)))
}

impl Drop for Inside {
    fn drop(&mut self) {
        drop(ACTIVE.replace(self.0.take()));
    }
}

/// Counts a thread that runs a function again.
struct Counted;

impl Counted {
    fn new() -> Counted {
        COLLECTING.fetch_add(1, Relaxed);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COLLECTING.fetch_sub(1, Relaxed);
    }
}

/// Torch takes each tensor out of the graph that it keeps.
fn show_detached(tensor: &Tensor) {
    let _below = crate::op::below();
    drop(Detach.call([tensor]));
}

/// A tensor that a node keeps only by its number in a frame.
pub(super) struct Recomputed {
    frame: Arc<Frame>,
    number: usize,
    place: Place,
    spec: Spec,
}

/// Keeps a tensor as this thread does now.
pub(super) fn keep(saved: Saved) -> Kept {
    match ACTIVE.with_borrow(Clone::clone) {
        None => Kept::Tensor(saved),
        Some(Active::Counting(frame)) => {
            let mut wanted = frame.wanted.lock();
            let number = wanted.len();
            // A leaf is alive anyway, and it is the one that the gradient is about.
            let alive = saved.is_leaf();
            wanted.push(!alive);
            drop(wanted);
            match alive {
                true => Kept::Tensor(saved),
                false => {
                    let (place, spec) = saved.without_elements();
                    Kept::Recomputed(Box::new(Recomputed { frame, number, place, spec }))
                }
            }
        }
        Some(Active::Collecting(collected)) => {
            if observe::is_watched() {
                show_detached(&saved.elements().0);
            }
            let mut collected = collected.lock();
            let wanted = collected.wanted.get(collected.tensors.len()).copied().unwrap_or(false);
            collected.tensors.push(wanted.then(|| saved.elements()));
            drop(collected);
            Kept::Tensor(saved)
        }
    }
}

impl Recomputed {
    /// The tensor as it would have been kept.
    pub(super) fn compute(&self, node: &Shared<Node>) -> Result<Saved> {
        let known = self.frame.computed.lock().get_mut(self.number).and_then(Option::take);
        let found = match known {
            Some(computed) => Some(computed),
            None => {
                let mut all = self.frame.run_again(node)?;
                let found = all.get_mut(self.number).and_then(Option::take);
                *self.frame.computed.lock() = all;
                found
            }
        };
        match found {
            Some((elements, version)) if Spec::like(&elements) == self.spec => {
                Ok(Saved::of_parts(elements, self.place.clone(), version))
            }
            found => Err(self.differs(node, found.map(|(elements, _)| Spec::like(&elements)))),
        }
    }

    #[cold]
    fn differs(&self, node: &Shared<Node>, found: Option<Spec>) -> Error {
        let Spec { shape, dtype } = &self.spec;
        let found = match found {
            Some(Spec { shape, dtype }) => format!("one of shape {:?}, {dtype}", &shape[..]),
            None => "none".to_owned(),
        };
        let text = format_args!(
            "a checkpointed function did not do the same again: the gradient needs tensor {} that it kept, of shape {:?}, {dtype}, and the second time there was {found}",
            self.number,
            &shape[..],
        );
        Error::new(Cause::Graph, node.name, text)
    }
}

impl Frame {
    /// Runs the function again; gives the tensors that its calls keep.
    fn run_again(&self, node: &Shared<Node>) -> Result<Vec<Option<Computed>>> {
        let inputs = self.inputs.iter().map(|input| input.unpack(node)).collect::<Result<Vec<_>>>()?;
        let wanted = self.wanted.lock().clone();
        let collected = Arc::new(Mutex::new(Collected { wanted, tensors: Vec::new(), stopped: false }));
        let outcome = {
            let _inside = enter(Active::Collecting(collected.clone()));
            let (_recorded, _counted) = (enable_grad(), Counted::new());
            let _cast = self.autocast.begin();
            random::replay(self.generator.clone(), || (self.again)(&inputs))
        };
        let mut collected = collected.lock();
        match outcome {
            Err(error) if !collected.stopped => Err(error),
            _ => Ok(std::mem::take(&mut collected.tensors)),
        }
    }
}
