//! Functions that a program hangs on the graph, and what the engine does with them.
//!
//! For one node the order is torch's: hooks of the tensors that the node computed, first
//! registered first; then retained gradients; then, unless the pass only wanted to know the
//! gradient so far, hooks before the node, the node, and hooks after it. At a leaf the place of
//! the last is taken by hooks that look at the finished sum.

use super::node::{Function, Grads, Node};
use super::tracking::Collected;
use crate::{Cause, Error, Result, Tensor};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Sees a tensor's gradient, and may give another in its place.
type GradHook = dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync;
/// Sees a leaf after its gradient has grown.
type LeafHook = dyn Fn(&Tensor) -> Result<()> + Send + Sync;
/// Sees the gradients that a node is given.
type BeforeHook = dyn Fn(&[Option<Tensor>]) -> Result<Option<Grads>> + Send + Sync;
/// Sees the gradients that a node gives, and those it was given.
type AfterHook = dyn Fn(&[Option<Tensor>], &[Option<Tensor>]) -> Result<Option<Grads>> + Send + Sync;

/// Hooks in the order of their registration.
struct List<T>(Arc<Mutex<Vec<(u64, T)>>>);

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Arc::default())
    }
}

impl<T: Clone + Send + 'static> List<T> {
    fn add(&self, hook: T) -> HookHandle {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        self.0.lock().push((number, hook));
        let list: Arc<dyn Remove> = self.0.clone();
        HookHandle { list: Arc::downgrade(&list), number }
    }

    /// The hooks as they are now: while they run, they may add and remove others.
    fn all(&self) -> SmallVec<[T; 1]> {
        self.0.lock().iter().map(|(_, hook)| hook.clone()).collect()
    }
}

trait Remove: Send + Sync {
    fn remove(&self, number: u64);
}

impl<T: Send> Remove for Mutex<Vec<(u64, T)>> {
    fn remove(&self, number: u64) {
        let mut hooks = self.lock();
        let at = hooks.iter().position(|(other, _)| *other == number);
        let removed = at.map(|at| hooks.remove(at));
        // What a hook owns is dropped after the lock: it may be a lot.
        drop(hooks);
        drop(removed);
    }
}

/// A registered hook. It stays when the handle is dropped.
pub struct HookHandle {
    list: Weak<dyn Remove>,
    number: u64,
}

impl HookHandle {
    /// Takes the hook away.
    pub fn remove(self) {
        if let Some(list) = self.list.upgrade() {
            list.remove(self.number);
        }
    }
}

/// The hooks of a leaf. The leaf owns them: the node at the end of its paths comes and goes.
#[derive(Default)]
pub(super) struct LeafHooks {
    gradient: List<Arc<GradHook>>,
    accumulated: List<Arc<LeafHook>>,
}

/// The hooks of a recorded call.
#[derive(Default)]
pub(super) struct NodeHooks {
    /// Hooks of the tensors the call gave, by the number of the output.
    gradient: List<(usize, Arc<GradHook>)>,
    /// Where tensors keep their gradient. Weak: nobody else needs one whose tensor is gone.
    retained: Mutex<Vec<(usize, Weak<Collected>)>>,
    before: List<Arc<BeforeHook>>,
    after: List<Arc<AfterHook>>,
}

impl NodeHooks {
    /// Whether gradients are shown to anyone before the node runs.
    pub(super) fn has_gradient_hooks(&self) -> bool {
        !self.gradient.all().is_empty()
    }

    pub(super) fn retain(&self, output: usize, place: &Arc<Collected>) {
        self.retained.lock().push((output, Arc::downgrade(place)));
    }

    pub(super) fn release(&self, place: &Arc<Collected>) {
        self.retained.lock().retain(|(_, other)| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(place)));
    }
}

impl Node {
    pub(super) fn hooks(&self) -> &NodeHooks {
        self.hooks.get_or_init(Box::default)
    }

    pub(super) fn add_before(
        &self,
        hook: impl Fn(&[Option<Tensor>]) -> Result<Option<Grads>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.hooks().before.add(Arc::new(hook))
    }

    pub(super) fn add_after(
        &self,
        hook: impl Fn(&[Option<Tensor>], &[Option<Tensor>]) -> Result<Option<Grads>> + Send + Sync + 'static,
    ) -> HookHandle {
        self.hooks().after.add(Arc::new(hook))
    }
}

impl Tensor {
    /// Calls `hook` with this tensor's gradient whenever one has been computed, on the thread that
    /// runs the pass. If it gives another gradient, that one is used instead.
    ///
    /// A hook belongs to the tensor as it is: after a change in place it still sees the gradient
    /// of what was there before.
    ///
    /// # Errors
    /// If the tensor does not require grad.
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        self.check_tracked("register_hook")?;
        Ok(match self.origin() {
            Some(edge) => edge.node.hooks().gradient.add((edge.output, Arc::new(hook))),
            None => self.leaf_hooks().gradient.add(Arc::new(hook)),
        })
    }

    /// Calls `hook` with this leaf whenever its gradient has grown.
    ///
    /// # Errors
    /// If this is not a leaf that requires grad.
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
    ) -> Result<HookHandle> {
        let op = "register_post_accumulate_grad_hook";
        self.check_tracked(op)?;
        if !self.is_leaf() {
            let text = "only leaves collect gradients; use register_hook() for a computed tensor";
            return Err(Error::new(Cause::Graph, op, text));
        }
        Ok(self.leaf_hooks().accumulated.add(Arc::new(hook)))
    }

    /// Keeps this tensor's gradient in [`grad`](Tensor::grad), as that of a leaf is.
    ///
    /// # Errors
    /// If the tensor does not require grad.
    pub fn retain_grad(&self) -> Result<()> {
        self.check_tracked("retain_grad")?;
        self.retain();
        Ok(())
    }

    fn check_tracked(&self, op: &'static str) -> Result<()> {
        if self.requires_grad() {
            return Ok(());
        }
        let text = format_args!("a tensor of shape {:?} does not require grad", self.shape());
        Err(Error::new(Cause::Graph, op, text))
    }
}

/// Shows the gradients of a node's tensors to their hooks, and puts down those to be retained.
pub(super) fn tensor_hooks(node: &Node, grads: &mut Grads) -> Result<()> {
    if let Function::Accumulate { leaf, .. } = &node.function
        && let Some(hooks) = leaf.known_leaf_hooks()
        && let Some(gradient) = grads.first_mut()
    {
        hooks.gradient.all().iter().try_for_each(|hook| replace(node, gradient, &**hook))?;
    }
    let Some(hooks) = node.hooks.get() else { return Ok(()) };
    for (output, hook) in hooks.gradient.all() {
        if let Some(gradient) = grads.get_mut(output) {
            replace(node, gradient, &*hook)?;
        }
    }
    let retained = hooks.retained.lock().clone();
    for (output, place) in retained {
        if let (Some(Some(gradient)), Some(place)) = (grads.get(output), place.upgrade()) {
            let before = place.lock().clone();
            let sum = match before {
                Some(before) => before.add(gradient)?,
                None => gradient.copy()?,
            };
            let old = place.lock().replace(sum);
            drop(old);
        }
    }
    Ok(())
}

fn replace(node: &Node, gradient: &mut Option<Tensor>, hook: &GradHook) -> Result<()> {
    let Some(before) = gradient else { return Ok(()) };
    if let Some(after) = hook(before)? {
        before.check_gradient(node.name, &after)?;
        *gradient = Some(after);
    }
    Ok(())
}

/// Shows the gradients that a node is about to be given to its hooks.
pub(super) fn before(node: &Node, grads: &mut Grads) -> Result<()> {
    let Some(hooks) = node.hooks.get() else { return Ok(()) };
    for hook in hooks.before.all() {
        if let Some(replaced) = hook(grads)? {
            check_number(node, "before", grads.len(), replaced.len())?;
            *grads = replaced;
        }
    }
    Ok(())
}

/// Shows the gradients that a node gave, and was given, to its hooks.
pub(super) fn after(node: &Node, results: &mut Grads, grads: &Grads) -> Result<()> {
    let Some(hooks) = node.hooks.get() else { return Ok(()) };
    for hook in hooks.after.all() {
        if let Some(replaced) = hook(results, grads)? {
            check_number(node, "after", results.len(), replaced.len())?;
            *results = replaced;
        }
    }
    Ok(())
}

/// Shows a leaf whose gradient has grown to its hooks.
pub(super) fn accumulated(leaf: &Tensor) -> Result<()> {
    let Some(hooks) = leaf.known_leaf_hooks() else { return Ok(()) };
    hooks.accumulated.all().iter().try_for_each(|hook| hook(leaf))
}

fn check_number(node: &Node, when: &str, expected: usize, found: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let text = format_args!("a hook {when} the node gave {found} gradients instead of {expected}");
    Err(Error::new(Cause::Graph, node.name, text))
}
