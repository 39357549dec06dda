//! One optimizer for all algorithms that change each parameter by its own gradient.

mod algorithm;
mod members;

pub use algorithm::Algorithm;
pub(crate) use algorithm::no_fused;

use crate::foreach::zero;
use crate::hooks::{Hooks, When};
use crate::scope::scope;
use crate::state::{GroupState, State, StateDict};
use crate::{HookId, Optimizer, StepHook, Value};
use cresset_dispatch::observe::{self, Role};
use cresset_tensor::autograd::enable_grad;
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};
use members::Members;
pub(crate) use members::check as check_member;

/// Parameters with options of their own.
#[derive(Clone, Debug)]
pub struct Group<O> {
    /// The parameters.
    pub parameters: Vec<Tensor>,
    /// Their options.
    pub options: O,
}

/// An optimizer that changes each parameter by its own gradient, as algorithm `A` says.
///
/// Used by the names of the algorithms: [`Sgd`](crate::Sgd), [`AdamW`](crate::AdamW) and so on.
pub struct Descent<A: Algorithm> {
    groups: Vec<Members<A>>,
    hooks: Hooks,
}

impl<A: Algorithm> Descent<A> {
    /// An optimizer of `parameters`.
    ///
    /// # Errors
    /// If there are none, if they are not floats and leaves of the graph, each once and all on one device,
    /// or if the optimizer cannot work with the options.
    pub fn new(parameters: Vec<Tensor>, options: A) -> Result<Descent<A>> {
        Descent::with_groups(vec![Group { parameters, options }])
    }

    /// An optimizer of groups of parameters, each with options of its own.
    ///
    /// ```
    /// use cresset_optim::{Group, Optimizer, Sgd, SgdOptions, Tensor};
    ///
    /// let [weight, bias] = [Tensor::ones([2, 2], ())?, Tensor::zeros([2], ())?];
    /// let base = SgdOptions { lr: 0.1, momentum: 0.9, ..Default::default() };
    /// let decaying = SgdOptions { weight_decay: 1e-4, ..base.clone() };
    /// let sgd = Sgd::with_groups(vec![
    ///     Group { parameters: vec![weight.with_grad()?], options: decaying },
    ///     Group { parameters: vec![bias.with_grad()?], options: base },
    /// ])?;
    /// assert_eq!(sgd.lrs(), [0.1, 0.1]);
    /// # Ok::<(), cresset_optim::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Descent::new).
    pub fn with_groups(groups: Vec<Group<A>>) -> Result<Descent<A>> {
        if groups.iter().all(|group| group.parameters.is_empty()) {
            return Err(Error::new(
                Cause::Argument,
                A::NAME,
                "there are no parameters, expected at least one",
            ));
        }
        let mut optimizer = Descent { groups: Vec::new(), hooks: Hooks::default() };
        groups.into_iter().try_for_each(|group| optimizer.add_group(group))?;
        Ok(optimizer)
    }

    /// One more group.
    ///
    /// # Errors
    /// As [`new`](Descent::new), and for parameters that are in another group. Nothing is added then.
    pub fn add_group(&mut self, group: Group<A>) -> Result<()> {
        let members = Members::new(group)?;
        let known = || self.groups.iter().flat_map(Members::parameters);
        if members.parameters().any(|parameter| known().any(|other| other.same_as(parameter))) {
            return Err(Error::new(
                Cause::Argument,
                A::NAME,
                "a parameter is in two groups, expected in one",
            ));
        }
        self.groups.push(members);
        Ok(())
    }

    /// The options of a group; `None` if there is none.
    pub fn options(&self, group: usize) -> Option<&A> {
        self.groups.get(group).map(|group| &group.options)
    }

    /// Replaces the options of a group.
    ///
    /// # Errors
    /// If there is no such group, or the optimizer cannot work with the options.
    pub fn set_options(&mut self, group: usize, options: A) -> Result<()> {
        options.check()?;
        self.group(group)?.options = options;
        Ok(())
    }

    fn group(&mut self, group: usize) -> Result<&mut Members<A>> {
        let count = self.groups.len();
        self.groups.get_mut(group).ok_or_else(|| {
            let text = format_args!("there is no group {group}, expected one below {count}");
            Error::new(Cause::Argument, A::NAME, text)
        })
    }

    fn run_hooks(&mut self, when: When) -> Result<()> {
        let mut hooks = self.hooks.take(when);
        let outcome = hooks.iter_mut().try_for_each(|(_, hook)| hook(self));
        self.hooks.put_back(when, hooks);
        outcome
    }

    fn step_after(&mut self, closure: Option<&mut dyn FnMut() -> Result<Tensor>>) -> Result<Option<Tensor>> {
        let _scope = scope(A::STEP, |visit| {
            for members in &self.groups {
                members.parameters().for_each(|tensor| visit(Role::Parameter, tensor));
                members.states().flat_map(State::tensors).for_each(|tensor| visit(Role::State, tensor));
            }
        });
        self.run_hooks(When::Before)?;
        let loss = closure.map(|closure| {
            let _guard = enable_grad();
            closure()
        });
        let loss = loss.transpose()?;
        {
            let _guard = no_grad();
            self.groups.iter_mut().try_for_each(Members::step)?;
        }
        self.run_hooks(When::After)?;
        Ok(loss)
    }
}

impl<A: Algorithm> Optimizer for Descent<A> {
    fn name(&self) -> &'static str {
        A::NAME
    }

    fn step(&mut self) -> Result<()> {
        self.step_after(None).map(drop)
    }

    fn step_with(&mut self, closure: &mut dyn FnMut() -> Result<Tensor>) -> Result<Tensor> {
        let loss = self.step_after(Some(closure))?;
        Ok(loss.expect("a step with a closure has a loss"))
    }

    fn zero_grad(&self) {
        let _scope = self.zero_grad_scope();
        self.groups.iter().flat_map(Members::parameters).for_each(Tensor::clear_grad);
    }

    fn zero_grad_in_place(&self) -> Result<()> {
        let _scope = self.zero_grad_scope();
        let parameters = || self.groups.iter().flat_map(Members::parameters);
        if !observe::is_watched() || !self.groups.iter().all(Members::goes_by_lists) {
            return parameters().try_for_each(zero_in_place);
        }
        let grads = parameters().filter_map(|parameter| out_of_graph(parameter).transpose());
        let grads = grads.collect::<Result<Vec<_>>>()?;
        if grads.is_empty() { Ok(()) } else { zero(&grads) }
    }

    fn parameters(&self) -> Vec<Vec<Tensor>> {
        self.groups.iter().map(|group| group.parameters().cloned().collect()).collect()
    }

    fn lrs(&self) -> Vec<f64> {
        self.groups.iter().map(|group| group.options.lr()).collect()
    }

    fn set_lrs(&mut self, lrs: &[f64]) -> Result<()> {
        check_count(A::NAME, "learning rates", lrs.len(), self.groups.len())?;
        self.groups.iter_mut().zip(lrs).for_each(|(group, &lr)| group.options.set_lr(lr));
        Ok(())
    }

    fn initial_lrs(&mut self) -> Vec<f64> {
        let initial = |group: &mut Members<A>| *group.initial_lr.get_or_insert(group.options.lr());
        self.groups.iter_mut().map(initial).collect()
    }

    fn set_initial_lrs(&mut self, lrs: &[f64]) -> Result<()> {
        check_count(A::NAME, "learning rates", lrs.len(), self.groups.len())?;
        self.groups.iter_mut().zip(lrs).for_each(|(group, &lr)| group.initial_lr = Some(lr));
        Ok(())
    }

    fn option(&self, group: usize, name: &str) -> Option<Value> {
        let entries = self.groups.get(group)?.options.entries();
        entries.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn set_option(&mut self, group: usize, name: &str, value: Value) -> Result<()> {
        let mut options = self.group(group)?.options.clone();
        options.set(name, &value)?;
        self.set_options(group, options)
    }

    fn state_dict(&self) -> Result<StateDict> {
        let _guard = no_grad();
        let mut dict = StateDict::default();
        for members in &self.groups {
            dict.state.extend(members.save()?);
            let options = members.options.entries().into_iter();
            dict.groups.push(GroupState {
                options: options.map(|(name, value)| (name.to_owned(), value)).collect(),
                parameters: members.parameters().count(),
                initial_lr: members.initial_lr,
            });
        }
        Ok(dict)
    }

    fn load_state_dict(&mut self, dict: &StateDict) -> Result<()> {
        let _guard = no_grad();
        check_count(A::NAME, "groups", dict.groups.len(), self.groups.len())?;
        let mut state = dict.state.iter();
        let mut loaded = Vec::new();
        for (members, saved) in self.groups.iter().zip(&dict.groups) {
            let count = members.parameters().count();
            check_count(A::NAME, "parameters of a group", saved.parameters, count)?;
            let mut options = members.options.clone();
            saved.options.iter().try_for_each(|(name, value)| options.set(name, value))?;
            options.check()?;
            let states = members.load(&options, &mut state)?;
            loaded.push((options, states, saved.initial_lr));
        }
        for (members, (options, states, initial_lr)) in self.groups.iter_mut().zip(loaded) {
            members.options = options;
            members.initial_lr = initial_lr;
            members.put_states(states);
        }
        Ok(())
    }

    fn before_step(&mut self, hook: StepHook) -> HookId {
        self.hooks.add(When::Before, hook)
    }

    fn after_step(&mut self, hook: StepHook) -> HookId {
        self.hooks.add(When::After, hook)
    }

    fn remove_hook(&mut self, hook: HookId) -> bool {
        self.hooks.remove(hook)
    }
}

impl<A: Algorithm> Descent<A> {
    fn zero_grad_scope(&self) -> Option<observe::Span> {
        scope(A::ZERO_GRAD, |visit| {
            let parameters = self.groups.iter().flat_map(Members::parameters);
            parameters.for_each(|tensor| visit(Role::Parameter, tensor));
        })
    }
}

/// Fills a gradient with zeros, and takes it out of the graph that made it.
pub(crate) fn zero_in_place(parameter: &Tensor) -> Result<()> {
    out_of_graph(parameter)?.map_or(Ok(()), |grad| grad.zero_())
}

/// The gradient of a parameter, taken out of the graph that made it, in memory of its own.
fn out_of_graph(parameter: &Tensor) -> Result<Option<Tensor>> {
    if let Some(grad) = parameter.grad().filter(Tensor::requires_grad) {
        parameter.set_grad(grad.detach()?)?;
    }
    parameter.own_grad()
}

pub(crate) fn check_count(op: &'static str, what: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let text = format_args!("there are {found} {what}, expected {expected}");
    Err(Error::new(Cause::Argument, op, text))
}
