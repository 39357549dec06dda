//! What is kept for a parameter from step to step, and how it is handed out and taken back.

use crate::Value;
use cresset_dispatch::observe;
use cresset_tensor::{Argument, Cause, DType, Error, MemoryFormat, Result, Tensor, composite};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// Everything that the next step of an optimizer depends on.
#[derive(Clone, Debug, Default)]
pub struct StateDict {
    /// What is kept for each parameter, by torch's names, in the order of all groups. Empty for
    /// parameters that never had a gradient.
    pub state: Vec<BTreeMap<String, Tensor>>,
    /// The groups.
    pub groups: Vec<GroupState>,
}

/// The options of one group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupState {
    /// The options by torch's names.
    pub options: BTreeMap<String, Value>,
    /// How many parameters it has.
    pub parameters: usize,
    /// The learning rate that schedulers start from, if there were any.
    pub initial_lr: Option<f64>,
}

/// By which calls torch makes a [`Number`] for a parameter's first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// `torch.zeros(())`
    Zeros,
    /// `torch.ones(())`
    Ones,
    /// `torch.tensor(number)`
    Number,
    /// `torch.as_tensor(number).clone().detach()`
    Copy,
}

/// A number that torch keeps as a tensor of one element, in single precision: the count of steps above
/// all. Where operators must show in a profile as torch's do, it is a tensor here too.
#[derive(Clone, Debug)]
pub(crate) struct Number {
    value: f32,
    tensor: Option<Tensor>,
}

impl Number {
    pub(crate) fn new(value: f64) -> Number {
        Number { value: value as f32, tensor: None }
    }

    pub(crate) fn get(&self) -> f64 {
        f64::from(self.value)
    }

    /// Replaces it, without a trace.
    pub(crate) fn put(&mut self, value: f64) {
        *self = Number::new(value);
    }

    /// One more, without a trace. A tensor that someone watches is counted by an operator.
    pub(crate) fn count(&mut self) -> u64 {
        let tensor = self.tensor.take().filter(|_| observe::is_watched());
        *self = Number { value: (self.get() + 1.0) as f32, tensor };
        self.value as u64
    }

    /// Makes the tensor as torch makes it for a parameter's first step.
    pub(crate) fn show(&mut self, made: Made) -> Result<()> {
        if observe::is_watched() {
            self.tensor = Some(match made {
                Made::Zeros => Tensor::zeros([], DType::F32)?,
                Made::Ones => Tensor::ones([], DType::F32)?,
                Made::Number => Tensor::number(f64::from(self.value), DType::F32)?,
                Made::Copy => as_tensor(self.value)?.copy_in(MemoryFormat::Preserve)?.detach()?,
            });
        }
        Ok(())
    }

    /// Reads the tensor, if someone watches.
    pub(crate) fn read(&self) -> Result<()> {
        self.tensor.as_ref().map_or(Ok(()), |tensor| tensor.item().map(drop))
    }

    /// Goes on without the tensor.
    pub(crate) fn forget(&mut self) {
        self.tensor = None;
    }

    /// Multiplies it, without a trace.
    pub(crate) fn scale(&mut self, by: f64) -> f64 {
        *self = Number { value: self.value * by as f32, tensor: None };
        self.get()
    }

    /// It as a tensor that operators may change; [`item`](Number::item) reads it afterwards.
    pub(crate) fn tensor(&mut self) -> Result<&Tensor> {
        if self.tensor.is_none() {
            self.tensor = Some(Tensor::new(self.value)?);
        }
        Ok(self.tensor.as_ref().expect("made above"))
    }

    /// One more, by an operator.
    pub(crate) fn count_traced(&mut self) -> Result<()> {
        let value = self.get() + 1.0;
        self.tensor()?.add_(1)?;
        self.value = value as f32;
        Ok(())
    }

    /// Multiplies it, by an operator.
    pub(crate) fn scale_traced(&mut self, by: f64) -> Result<()> {
        let value = self.value * by as f32;
        self.tensor()?.mul_(by)?;
        self.value = value;
        Ok(())
    }

    /// Replaces it, by an operator.
    pub(crate) fn put_traced(&mut self, value: f64) -> Result<()> {
        let made = as_tensor(value as f32)?;
        self.tensor()?.copy_(&made)?;
        self.value = value as f32;
        Ok(())
    }

    /// Reads it, by an operator.
    pub(crate) fn item(&mut self) -> Result<f64> {
        Ok(self.tensor()?.item()?.as_f64())
    }
}

/// A number as a tensor, by the calls that `torch.as_tensor` makes.
fn as_tensor(value: f32) -> Result<Tensor> {
    // As torch counts element types and layouts.
    let (single, strided) = (Argument::Int(6), Argument::Int(0));
    let (none, off) = (Argument::None, Argument::Bool(false));
    let nothing: [&Tensor; 0] = [];
    let made = {
        let _span = composite("aten::empty", nothing, |visit| {
            [Argument::Ints(&[]), single, strided, none, off, none].into_iter().for_each(visit);
        });
        Tensor::new(value)?
    };
    drop(composite("aten::to", [&made], |visit| {
        [none, single, off, off, none].into_iter().for_each(visit);
    }));
    drop(composite("aten::lift_fresh", [&made], |_| {}));
    Ok(made)
}

/// What is kept for one parameter.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The numbers, in the order of [`Algorithm::NUMBERS`](crate::descent::Algorithm::NUMBERS).
    pub(crate) numbers: SmallVec<[Number; 3]>,
    /// The tensors, by torch's names.
    tensors: SmallVec<[(&'static str, Tensor); 3]>,
    /// Whether a step was taken.
    pub(crate) started: bool,
}

impl State {
    pub(crate) fn new(numbers: impl Iterator<Item = f64>) -> State {
        State { numbers: numbers.map(Number::new).collect(), ..State::default() }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Tensor> {
        self.tensors.iter().find(|(known, _)| *known == name).map(|(_, tensor)| tensor)
    }

    /// A tensor that the algorithm keeps.
    ///
    /// # Errors
    /// If it does not, which is a fault of the algorithm.
    pub(crate) fn tensor(&self, name: &'static str) -> Result<Tensor> {
        let missing = || Error::new(Cause::Argument, name, "is kept for no parameter");
        self.find(name).cloned().ok_or_else(missing)
    }

    pub(crate) fn put(&mut self, name: &'static str, tensor: Tensor) {
        match self.tensors.iter_mut().find(|(known, _)| *known == name) {
            Some((_, kept)) => *kept = tensor,
            None => self.tensors.push((name, tensor)),
        }
    }

    pub(crate) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.iter().map(|(_, tensor)| tensor)
    }

    /// A copy by names.
    pub(crate) fn save(&self, numbers: &[&str]) -> Result<BTreeMap<String, Tensor>> {
        let mut saved = BTreeMap::new();
        for (name, number) in numbers.iter().zip(&self.numbers) {
            saved.insert((*name).to_owned(), Tensor::new(number.value)?);
        }
        for (name, tensor) in &self.tensors {
            saved.insert((*name).to_owned(), tensor.copy()?);
        }
        Ok(saved)
    }

    /// Reads a saved state for `parameter`: numbers, and those of `names` that are there.
    pub(crate) fn load(
        saved: &BTreeMap<String, Tensor>,
        numbers: &[&'static str],
        names: &[&'static str],
        parameter: &Tensor,
    ) -> Result<State> {
        let mut state = State { started: true, ..State::default() };
        for name in numbers {
            let missing =
                || Error::new(Cause::Argument, "load_state_dict", format_args!("{name} is missing"));
            let number = saved.get(*name).ok_or_else(missing)?;
            state.numbers.push(Number::new(number.item()?.as_f64()));
        }
        for (name, tensor) in saved {
            if numbers.contains(&name.as_str()) {
                continue;
            }
            let Some(name) = names.iter().find(|known| *known == name) else {
                let text = format_args!("{name} is kept by no such optimizer, only {}", names.join(", "));
                return Err(Error::new(Cause::Argument, "load_state_dict", text));
            };
            state.put(name, fitted(tensor, parameter)?);
        }
        Ok(state)
    }
}

/// A copy with the element type of `parameter`, where that is.
pub(crate) fn fitted(tensor: &Tensor, parameter: &Tensor) -> Result<Tensor> {
    let dtype: DType = if tensor.dtype().is_float() { parameter.dtype() } else { tensor.dtype() };
    tensor.copy()?.to_dtype(dtype)?.to(parameter.device())
}
