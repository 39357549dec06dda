//! The parameters of one group, and a step of all of them.

use super::{Algorithm, Group};
use crate::Implementation;
use crate::foreach::each_by;
use crate::scope::More;
use crate::state::{Made, Number, State};
use cresset_dispatch::observe;
use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};
use std::collections::BTreeMap;

/// The parameters of a group with what is kept for them.
pub(super) struct Members<A: Algorithm> {
    pub(super) options: A,
    /// The learning rate that schedulers start from.
    pub(super) initial_lr: Option<f64>,
    slots: Vec<Slot>,
    /// What the fused step is called with, kept for its memory alone.
    tensors: Vec<Tensor>,
    /// Counts of steps, where someone watches the fused step.
    steps: Vec<Tensor>,
    rules: Vec<A::Rule>,
}

struct Slot {
    parameter: Tensor,
    /// None before the first gradient.
    state: Option<State>,
    /// The numbers before a fused step that may yet fail.
    before: State,
}

type Saved = BTreeMap<String, Tensor>;

impl<A: Algorithm> Members<A> {
    pub(super) fn new(group: Group<A>) -> Result<Members<A>> {
        let Group { parameters, options } = group;
        options.check()?;
        for (i, parameter) in parameters.iter().enumerate() {
            check(A::NAME, parameter, &parameters[..i])?;
            options.check_parameter(parameter)?;
        }
        let slot = |parameter| {
            let state = if A::FROM_THE_START { Some(started(&options, &parameter)?) } else { None };
            Ok(Slot { parameter, state, before: State::default() })
        };
        let slots = parameters.into_iter().map(slot).collect::<Result<_>>()?;
        Ok(Members {
            options,
            initial_lr: None,
            slots,
            tensors: Vec::new(),
            steps: Vec::new(),
            rules: Vec::new(),
        })
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = &Tensor> {
        self.slots.iter().map(|slot| &slot.parameter)
    }

    pub(super) fn states(&self) -> impl Iterator<Item = &State> {
        self.slots.iter().filter_map(|slot| slot.state.as_ref())
    }

    /// Takes a step.
    pub(super) fn step(&mut self) -> Result<()> {
        match self.implementation() {
            Some(Implementation::Fused) => self.fused(),
            Some(Implementation::Foreach) => self.foreach(),
            Some(Implementation::Single) => self.single(),
            None => Ok(()),
        }
    }

    /// Whether the options ask for steps over lists of tensors.
    pub(super) fn goes_by_lists(&self) -> bool {
        matches!(self.options.asked(), Some(Implementation::Fused | Implementation::Foreach))
    }

    /// How a step runs; none if there is nothing to step.
    fn implementation(&self) -> Option<Implementation> {
        let first = self.slots.first()?;
        Some(self.options.asked().unwrap_or_else(|| A::preferred(first.parameter.device().key)))
    }

    fn single(&mut self) -> Result<()> {
        // All of a group is prepared before any of it moves: torch's order.
        self.prepare()?;
        for slot in &mut self.slots {
            if let (Some(grad), Some(state)) = (slot.parameter.grad(), &mut slot.state) {
                self.options.single(&slot.parameter, &grad, state)?;
                state.started = true;
            }
        }
        Ok(())
    }

    fn foreach(&mut self) -> Result<()> {
        self.prepare()?;
        let (mut parameters, mut grads, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for slot in &mut self.slots {
            if let (Some(grad), Some(state)) = (slot.parameter.grad(), &mut slot.state) {
                parameters.push(slot.parameter.clone());
                grads.push(grad);
                states.push(state);
            }
        }
        if parameters.is_empty() {
            return Ok(());
        }
        self.options.foreach(&parameters, grads, &mut states)?;
        states.iter_mut().for_each(|state| state.started = true);
        Ok(())
    }

    fn prepare(&mut self) -> Result<()> {
        let options = &self.options;
        let is_fused = self.implementation() == Some(Implementation::Fused);
        self.slots.iter_mut().filter_map(|slot| slot.parameter.grad().map(|grad| (slot, grad))).try_for_each(
            |(slot, grad)| {
                if slot.state.is_none() {
                    let mut state = first(options);
                    for (number, &name) in state.numbers.iter_mut().zip(A::NUMBERS) {
                        let is_count = name == "step";
                        number.show(if is_count && is_fused { Made::Zeros } else { A::made(name) })?;
                    }
                    slot.state = Some(state);
                }
                let state = slot.state.get_or_insert_with(|| first(options));
                options.prepare(&slot.parameter, &grad, state)
            },
        )
    }

    fn fused(&mut self) -> Result<()> {
        self.prepare()?;
        self.show_steps()?;
        for slot in &mut self.slots {
            let (Some(grad), Some(state)) = (slot.parameter.grad(), &mut slot.state) else { continue };
            slot.before.numbers.clone_from(&state.numbers);
            self.rules.push(self.options.rule(state)?);
            self.tensors.extend([slot.parameter.clone(), grad]);
            for &name in self.options.kept() {
                self.tensors.push(state.tensor(name)?);
            }
        }
        let outcome =
            if self.rules.is_empty() { Ok(()) } else { A::fused(&self.tensors, &self.rules, &self.steps) };
        for slot in &mut self.slots {
            let (Some(_), Some(state)) = (slot.parameter.grad(), &mut slot.state) else { continue };
            match outcome {
                Ok(()) => state.started = true,
                Err(_) => {
                    state.numbers.clone_from(&slot.before.numbers);
                    state.numbers.iter_mut().for_each(Number::forget);
                }
            }
        }
        // Gradients are not kept alive.
        self.tensors.clear();
        self.rules.clear();
        self.steps.clear();
        outcome
    }

    /// While someone watches, counts the step of each parameter as torch does, by operators.
    fn show_steps(&mut self) -> Result<()> {
        if !observe::is_watched() || A::NUMBERS.first() != Some(&"step") {
            return Ok(());
        }
        for slot in &mut self.slots {
            if let (Some(_), Some(state)) = (slot.parameter.grad(), &mut slot.state) {
                self.steps.push(state.numbers[0].tensor()?.clone());
            }
        }
        each_by("aten::_foreach_add_", &self.steps, &[More::Int(1)], |_, steps| steps.add_(1))
    }

    pub(super) fn save(&self) -> Result<Vec<Saved>> {
        let save = |slot: &Slot| slot.state.as_ref().map_or(Ok(Saved::new()), |state| state.save(A::NUMBERS));
        self.slots.iter().map(save).collect()
    }

    /// Reads the states of all parameters, in their order.
    pub(super) fn load<'a>(
        &self,
        options: &A,
        saved: &mut impl Iterator<Item = &'a Saved>,
    ) -> Result<Vec<Option<State>>> {
        let mut states = Vec::new();
        for slot in &self.slots {
            let Some(saved) = saved.next() else {
                return Err(Error::new(Cause::Argument, A::NAME, "the state of a parameter is missing"));
            };
            let mut state = None;
            if !saved.is_empty() {
                let loaded = State::load(saved, A::NUMBERS, A::TENSORS, &slot.parameter)?;
                self.check_shapes(options, &slot.parameter, &loaded)?;
                state = Some(loaded);
            }
            states.push(state);
        }
        Ok(states)
    }

    fn check_shapes(&self, options: &A, parameter: &Tensor, state: &State) -> Result<()> {
        for &name in A::TENSORS {
            let Some(tensor) = state.find(name) else { continue };
            let expected = options.first_tensor(name, parameter, parameter)?;
            if tensor.shape() != expected.shape() {
                let text = format_args!(
                    "{name} of a parameter of shape {:?} is {:?}, expected {:?}",
                    parameter.shape(),
                    tensor.shape(),
                    expected.shape()
                );
                return Err(Error::new(Cause::Shape, A::NAME, text));
            }
        }
        Ok(())
    }

    pub(super) fn put_states(&mut self, states: Vec<Option<State>>) {
        self.slots.iter_mut().zip(states).for_each(|(slot, state)| slot.state = state);
    }
}

fn first<A: Algorithm>(options: &A) -> State {
    State::new(A::NUMBERS.iter().map(|&name| options.first_number(name)))
}

/// What an algorithm keeps for a parameter before there is any gradient.
fn started<A: Algorithm>(options: &A, parameter: &Tensor) -> Result<State> {
    let _guard = no_grad();
    let mut state = first(options);
    options.prepare(parameter, parameter, &mut state)?;
    state.numbers.iter_mut().try_for_each(|number| number.tensor().map(drop))?;
    Ok(state)
}

/// Refuses what is no parameter, and what does not fit to those `before` it.
pub(crate) fn check(optimizer: &'static str, parameter: &Tensor, before: &[Tensor]) -> Result<()> {
    let refused = |cause: Cause, text: std::fmt::Arguments<'_>| Err(Error::new(cause, optimizer, text));
    if !parameter.dtype().is_float() {
        return refused(Cause::DType, format_args!("a parameter is {}, expected floats", parameter.dtype()));
    }
    if !parameter.is_leaf() {
        return refused(Cause::Graph, format_args!("a parameter is the result of a call, expected a leaf"));
    }
    if before.iter().any(|other| other.same_as(parameter)) {
        return refused(Cause::Argument, format_args!("a parameter is given twice, expected once"));
    }
    match before.first() {
        Some(first) if first.device() != parameter.device() => refused(
            Cause::Device,
            format_args!(
                "parameters of a group are on {} and {}, of shapes {:?} and {:?}, expected one device",
                first.device(),
                parameter.device(),
                first.shape(),
                parameter.shape()
            ),
        ),
        _ => Ok(()),
    }
}
