//! Functions that a program hangs on the calls of a module.
//!
//! To see the gradients that belong to one call, what goes in and what comes out is passed through
//! a node of its own: gradients of the inputs are those of this call alone, as in torch.

use crate::{Forward, Members, Module, Tensors};
use cresset_tensor::autograd::{Context, Function};
use cresset_tensor::{Backward, Grads, Result, Tensor};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

type ForwardPreHook = dyn Fn(&mut [&mut Tensor]) -> Result<()> + Send + Sync;
type ForwardHook = dyn Fn(&[Tensor], &mut [&mut Tensor]) -> Result<()> + Send + Sync;
type BackwardPreHook = dyn Fn(&mut [Option<Tensor>]) -> Result<()> + Send + Sync;
type BackwardHook = dyn Fn(&mut [Option<Tensor>], &[Option<Tensor>]) -> Result<()> + Send + Sync;

/// The place for hooks in a module: a field of this type.
#[derive(Default)]
pub struct Hooks(OnceLock<Arc<Lists>>);

/// The hooks of a module, in the order of their registration.
#[derive(Default)]
pub(crate) struct Lists {
    /// How many hooks there are, so that calls of modules without any are not held up.
    count: AtomicUsize,
    hooks: Mutex<Vec<(u64, Hook)>>,
}

#[derive(Clone)]
enum Hook {
    ForwardPre(Arc<ForwardPreHook>),
    Forward(Arc<ForwardHook>),
    BackwardPre(Arc<BackwardPreHook>),
    Backward(Arc<BackwardHook>),
}

impl Hooks {
    /// See [`Module::register_forward_pre_hook`].
    pub fn register_forward_pre_hook(
        &self,
        hook: impl Fn(&mut [&mut Tensor]) -> Result<()> + Send + Sync + 'static,
    ) -> HookHandle {
        self.add(Hook::ForwardPre(Arc::new(hook)))
    }

    /// See [`Module::register_forward_hook`].
    pub fn register_forward_hook(
        &self,
        hook: impl Fn(&[Tensor], &mut [&mut Tensor]) -> Result<()> + Send + Sync + 'static,
    ) -> HookHandle {
        self.add(Hook::Forward(Arc::new(hook)))
    }

    /// See [`Module::register_full_backward_pre_hook`].
    pub fn register_full_backward_pre_hook(
        &self,
        hook: impl Fn(&mut [Option<Tensor>]) -> Result<()> + Send + Sync + 'static,
    ) -> HookHandle {
        self.add(Hook::BackwardPre(Arc::new(hook)))
    }

    /// See [`Module::register_full_backward_hook`].
    pub fn register_full_backward_hook(
        &self,
        hook: impl Fn(&mut [Option<Tensor>], &[Option<Tensor>]) -> Result<()> + Send + Sync + 'static,
    ) -> HookHandle {
        self.add(Hook::Backward(Arc::new(hook)))
    }

    fn add(&self, hook: Hook) -> HookHandle {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let lists = self.0.get_or_init(Arc::default);
        let number = NEXT.fetch_add(1, Relaxed);
        lists.hooks.lock().push((number, hook));
        lists.count.fetch_add(1, Relaxed);
        HookHandle { lists: Arc::downgrade(lists), number }
    }

    /// The hooks, if there are any.
    pub(crate) fn lists(&self) -> Option<&Lists> {
        self.0.get().map(|lists| &**lists).filter(|lists| lists.count.load(Relaxed) > 0)
    }
}

/// A registered hook. It stays when the handle is dropped.
pub struct HookHandle {
    lists: Weak<Lists>,
    number: u64,
}

impl HookHandle {
    /// Takes the hook away.
    pub fn remove(self) {
        let Some(lists) = self.lists.upgrade() else { return };
        let mut hooks = lists.hooks.lock();
        let Some(at) = hooks.iter().position(|(number, _)| *number == self.number) else { return };
        let removed = hooks.remove(at);
        lists.count.fetch_sub(1, Relaxed);
        // What a hook owns is dropped after the lock: it may be a lot.
        drop(hooks);
        drop(removed);
    }
}

impl Lists {
    /// The hooks as they are now: while they run, they may add and remove others.
    fn all(&self) -> Vec<Hook> {
        self.hooks.lock().iter().map(|(_, hook)| hook.clone()).collect()
    }

    /// Runs `forward` with all hooks around it.
    pub(crate) fn around<I: Tensors, O: Tensors>(
        &self,
        mut input: I,
        forward: impl Fn(I::Ref<'_>) -> Result<O>,
    ) -> Result<O> {
        let hooks = self.all();
        for hook in &hooks {
            if let Hook::ForwardPre(hook) = hook {
                hook(&mut list(&mut input))?;
            }
        }
        let backward = Watching::new(&hooks);
        if let Some(backward) = &backward {
            backward.inputs(&mut list(&mut input))?;
        }
        let mut output = forward(input.lend())?;
        let inputs: Vec<Tensor> = list(&mut input).into_iter().map(|tensor| tensor.clone()).collect();
        for hook in &hooks {
            if let Hook::Forward(hook) = hook {
                hook(&inputs, &mut list(&mut output))?;
            }
        }
        if let Some(backward) = &backward {
            backward.outputs(&mut list(&mut output))?;
        }
        Ok(output)
    }
}

fn list(tensors: &mut impl Tensors) -> Vec<&mut Tensor> {
    let mut list = Vec::new();
    tensors.each(&mut |tensor| list.push(tensor));
    list
}

/// The backward hooks of one call.
struct Watching {
    before: Vec<Arc<BackwardPreHook>>,
    after: Arc<[Arc<BackwardHook>]>,
    /// How many inputs there are, and whether a gradient of any is wanted.
    inputs: Mutex<(usize, bool)>,
    /// The gradients of the outputs, once they are known.
    arrived: Arc<Mutex<Vec<Option<Tensor>>>>,
}

impl Watching {
    fn new(hooks: &[Hook]) -> Option<Watching> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for hook in hooks {
            match hook {
                Hook::BackwardPre(hook) => before.push(hook.clone()),
                Hook::Backward(hook) => after.push(hook.clone()),
                Hook::ForwardPre(_) | Hook::Forward(_) => {}
            }
        }
        let none = before.is_empty() && after.is_empty();
        (!none).then(|| Watching {
            before,
            after: after.into(),
            inputs: Mutex::default(),
            arrived: Arc::default(),
        })
    }

    /// Passes the inputs through a node that shows their gradients to the hooks.
    fn inputs(&self, tensors: &mut [&mut Tensor]) -> Result<()> {
        let places = pass(tensors)?;
        *self.inputs.lock() = (tensors.len(), !places.is_empty());
        let Some(node) = places.first().and_then(|&at| tensors[at].grad_node()) else { return Ok(()) };
        let (after, arrived, count) = (self.after.clone(), self.arrived.clone(), tensors.len());
        node.register_hook(move |grads, _| {
            let mut all = vec![None; count];
            places.iter().zip(grads).for_each(|(&at, grad)| all[at] = grad.clone());
            let outputs = arrived.lock().clone();
            after.iter().try_for_each(|hook| hook(&mut all, &outputs))?;
            Ok(Some(places.iter().map(|&at| all[at].clone()).collect()))
        });
        Ok(())
    }

    /// Passes the outputs through a node that sees their gradients first.
    fn outputs(&self, tensors: &mut [&mut Tensor]) -> Result<()> {
        let places = pass(tensors)?;
        let Some(node) = places.first().and_then(|&at| tensors[at].grad_node()) else { return Ok(()) };
        let (before, after, arrived) = (self.before.clone(), self.after.clone(), self.arrived.clone());
        let (count, (inputs, wanted)) = (tensors.len(), *self.inputs.lock());
        node.register_prehook(move |grads| {
            let mut all = vec![None; count];
            places.iter().zip(grads).for_each(|(&at, grad)| all[at] = grad.clone());
            before.iter().try_for_each(|hook| hook(&mut all))?;
            *arrived.lock() = all.clone();
            if !wanted {
                // No gradient will come out at the other end.
                let mut none = vec![None; inputs];
                after.iter().try_for_each(|hook| hook(&mut none, &all))?;
            }
            Ok(Some(places.iter().map(|&at| all[at].clone()).collect()))
        });
        Ok(())
    }
}

/// Passes the tensors that require grad through one node, and tells which they are.
fn pass(tensors: &mut [&mut Tensor]) -> Result<Vec<usize>> {
    let places: Vec<usize> = (0..tensors.len()).filter(|&at| tensors[at].requires_grad()).collect();
    if places.is_empty() {
        return Ok(places);
    }
    let inputs: Vec<&Tensor> = places.iter().map(|&at| &*tensors[at]).collect();
    let passed = Pass.apply(&inputs)?;
    for (&at, passed) in places.iter().zip(passed) {
        *tensors[at] = passed;
    }
    Ok(places)
}

/// Gives what it is given.
struct Pass;

impl Function for Pass {
    const NAME: &'static str = "BackwardHookFunction";
    const BACKWARD: &'static str = "BackwardHookFunctionBackward";

    fn forward(&self, _ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        inputs.iter().map(|input| input.detach()).collect()
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        Ok((0..ctx.inputs()).map(|i| ctx.needs(i).then(|| ctx.grad_of(i).clone())).collect())
    }
}

/// A module with a place for hooks, for those that have none of their own. Names and results are
/// those of the module.
pub struct Hooked<M> {
    module: M,
    hooks: Hooks,
}

impl<M: Module> Hooked<M> {
    /// `module`, with a place for hooks.
    pub fn new(module: M) -> Hooked<M> {
        Hooked { module, hooks: Hooks::default() }
    }

    /// The module.
    pub fn module(&self) -> &M {
        &self.module
    }
}

impl<M: Module> Module for Hooked<M> {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        self.module.members(members);
    }

    fn hooks(&self) -> Option<&Hooks> {
        Some(&self.hooks)
    }

    fn class(&self) -> &'static str {
        self.module.class()
    }
}

impl<I: Tensors, M: Forward<I>> Forward<I> for Hooked<M> {
    type Output = M::Output;

    fn forward(&self, input: I::Ref<'_>) -> Result<M::Output> {
        self.module.forward(input)
    }
}
