//! The arguments of a recorded call, as the operator that takes them asks for them.

use crate::golden::{Golden, Passed};
use crate::value::{Described, Value};
use cresset_tensor::{Cause, DType, Device, Error, Operand, Options, Result, Scalar, Tensor};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};

/// The position of an argument that is passed by name only.
pub const KEYWORD: usize = usize::MAX;

/// The inputs of a call, by number.
pub(crate) type Tensors = BTreeMap<usize, Tensor>;

/// What a recorded call passes. Every argument is to be asked for: one that nobody asks for is
/// unknown, and makes the case unsupported.
pub struct Arguments<'a> {
    passed: &'a Passed,
    tensors: &'a Tensors,
    device: Device,
    asked: RefCell<HashSet<String>>,
    refused: Cell<bool>,
    /// Whether the call was recorded, with the random numbers that torch drew.
    recorded: bool,
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(passed: &'a Passed, tensors: &'a Tensors, device: Device) -> Arguments<'a> {
        let (asked, refused) = (RefCell::default(), Cell::new(false));
        Arguments { passed, tensors, device, asked, refused, recorded: true }
    }

    /// Of a call that was never recorded: it draws random numbers of its own.
    pub(crate) fn fresh(self) -> Arguments<'a> {
        Arguments { recorded: false, ..self }
    }

    /// Whether random numbers are those that torch drew when the call was recorded.
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// The argument at `position` or called `name`; `None` is an answer for an `Option`.
    ///
    /// # Errors
    /// If it is missing or of another kind.
    pub fn get<T: FromValue>(&self, position: usize, name: &'static str) -> Result<T> {
        let value = self.value(position, name).unwrap_or(&Value::None);
        T::from_value(value, self.tensors).ok_or_else(|| {
            self.refused.set(true);
            let text = format_args!("argument {name:?} is {}, expected {}", value.kind(), T::EXPECTED);
            Error::new(Cause::Argument, "", text)
        })
    }

    /// As [`get`](Arguments::get), with a value for when it is missing.
    pub fn or<T: FromValue>(&self, position: usize, name: &'static str, default: T) -> Result<T> {
        Ok(self.get::<Option<T>>(position, name)?.unwrap_or(default))
    }

    /// All arguments from `position` on, or the list that stands there alone, or the one called
    /// `name`: torch takes sizes either way.
    pub fn rest<T: FromValue>(&self, position: usize, name: &'static str) -> Result<Vec<T>> {
        match self.passed.args.get(position) {
            Some(Value::List(_) | Value::Tuple(_)) | None => self.get(position, name),
            Some(_) => (position..self.passed.args.len()).map(|at| self.get(at, name)).collect(),
        }
    }

    /// An int that must not be negative: a negative one is refused, as its type would here.
    pub fn size(&self, position: usize, name: &'static str) -> Result<usize> {
        usize::try_from(self.get::<i64>(position, name)?).map_err(|_| {
            Error::new(Cause::Argument, "", format_args!("argument {name:?} must not be negative"))
        })
    }

    /// A list, where one element does not stand for a list.
    pub fn list<T: FromValue>(&self, position: usize, name: &'static str) -> Result<Vec<T>> {
        let list: Vec<T> = self.get(position, name)?;
        if self.is_list(position, name) {
            return Ok(list);
        }
        Err(Error::new(Cause::Argument, "", format_args!("argument {name:?} is no list")))
    }

    /// Whether the argument at `position` can be had as a `T`.
    pub fn is<T: FromValue>(&self, position: usize) -> bool {
        self.passed.args.get(position).is_some_and(|value| T::from_value(value, self.tensors).is_some())
    }

    /// The tensor that is to receive the result, and all inputs.
    pub(crate) fn out(&self) -> Option<(Tensor, Vec<Tensor>)> {
        let (number, is_input) = match self.value(KEYWORD, "out")? {
            Value::Tensor(Described { number, .. }) => (number, false),
            Value::Same(number) => (number, true),
            _ => return None,
        };
        let inputs = self.tensors.iter().filter(|(input, _)| is_input || *input != number);
        Some((self.tensors.get(number)?.clone(), inputs.map(|(_, tensor)| tensor.clone()).collect()))
    }

    /// The tensors that are to receive several results, and all inputs.
    pub(crate) fn outs(&self) -> Option<(Vec<Tensor>, Vec<Tensor>)> {
        let (Value::List(list) | Value::Tuple(list)) = self.value(KEYWORD, "out")? else { return None };
        let of_results = |number: &usize| {
            list.iter().any(|value| matches!(value, Value::Tensor(described) if described.number == *number))
        };
        let inputs = self.tensors.iter().filter(|(number, _)| !of_results(number));
        let inputs = inputs.map(|(_, tensor)| tensor.clone()).collect();
        let outs = list.iter().map(|value| Tensor::from_value(value, self.tensors));
        Some((outs.collect::<Option<_>>()?, inputs))
    }

    /// Whether the argument is a list.
    pub fn is_list(&self, position: usize, name: &'static str) -> bool {
        matches!(self.value(position, name), Some(Value::List(_) | Value::Tuple(_)))
    }

    /// Whether the argument was given at all, be it `None`.
    pub fn has(&self, position: usize, name: &'static str) -> bool {
        self.passed.args.len() > position || self.passed.kwargs.iter().any(|(given, _)| given == name)
    }

    /// The element type and device of a new tensor; `dtype` unless said otherwise.
    pub fn options(&self, dtype: DType) -> Result<Options> {
        let named: Option<DType> = self.get(KEYWORD, "dtype")?;
        let (dtype, names_dtype) = (named.unwrap_or(dtype), named.is_some());
        let _: Option<String> = self.get(KEYWORD, "device")?;
        let _: Option<bool> = self.get(KEYWORD, "requires_grad")?;
        Ok(Options { dtype, device: self.device, names_dtype })
    }

    fn value(&self, position: usize, name: &str) -> Option<&'a Value> {
        if let Some(value) = self.passed.args.get(position) {
            self.asked.borrow_mut().insert(position.to_string());
            return Some(value);
        }
        let (_, value) = self.passed.kwargs.iter().find(|(given, _)| given == name)?;
        self.asked.borrow_mut().insert(name.to_owned());
        Some(value)
    }

    /// Counts the first argument as asked for.
    pub(crate) fn skip_first(&self) {
        let _ = self.value(0, "input");
    }

    /// An argument that nobody asked for.
    pub(crate) fn unknown(&self) -> Option<String> {
        let asked = self.asked.borrow();
        let given = |value: &Value| !matches!(value, Value::None);
        let by_position = (0..self.passed.args.len()).filter(|&at| given(&self.passed.args[at]));
        let by_name = self.passed.kwargs.iter().filter(|(_, value)| given(value));
        by_position
            .map(|at| at.to_string())
            .chain(by_name.map(|(name, _)| name.clone()))
            .find(|argument| !asked.contains(argument))
    }

    /// Whether an argument was of another kind than the operator takes.
    pub(crate) fn were_refused(&self) -> bool {
        self.refused.get()
    }
}

/// A tensor, or a number in its place.
#[derive(Clone)]
pub enum Term {
    /// A tensor.
    Tensor(Tensor),
    /// A number.
    Scalar(Scalar),
}

impl<'a> From<&'a Term> for Operand<'a> {
    fn from(term: &'a Term) -> Operand<'a> {
        match term {
            Term::Tensor(tensor) => Operand::Tensor(tensor),
            Term::Scalar(scalar) => Operand::Scalar(*scalar),
        }
    }
}

/// An argument that is of one kind or of another.
#[derive(Clone)]
pub enum Either<A, B> {
    /// Of the first kind.
    One(A),
    /// Of the second.
    Other(B),
}

/// The number 0, and nothing else.
pub struct Zero;

/// What an argument can be asked for as.
pub trait FromValue: Sized {
    /// What it looks like, for messages.
    const EXPECTED: &'static str;

    #[doc(hidden)]
    #[expect(private_interfaces, reason = "recorded values are nobody's business outside")]
    fn from_value(value: &Value, tensors: &Tensors) -> Option<Self>;
}

macro_rules! from_value {
    ($($ty:ty, $expected:literal: |$value:ident, $tensors:ident| $body:expr;)*) => {$(
        impl FromValue for $ty {
            const EXPECTED: &'static str = $expected;

            #[expect(private_interfaces, reason = "recorded values are nobody's business outside")]
            fn from_value($value: &Value, $tensors: &Tensors) -> Option<$ty> {
                $body
            }
        }
    )*};
}

from_value! {
    Tensor, "a tensor": |value, tensors| match value {
        Value::Tensor(Described { number, .. }) | Value::Same(number) => tensors.get(number).cloned(),
        _ => None,
    };
    Scalar, "a number": |value, _tensors| match value {
        Value::Scalar(scalar) => Some(*scalar),
        _ => None,
    };
    f64, "a number": |value, _tensors| match value {
        Value::Scalar(scalar) => Some(scalar.as_f64()),
        _ => None,
    };
    i64, "an int": |value, _tensors| match value {
        Value::Scalar(Scalar::Int(number)) => Some(*number),
        _ => None,
    };
    isize, "an int": |value, tensors| i64::from_value(value, tensors)?.try_into().ok();
    usize, "an int from 0 on": |value, tensors| i64::from_value(value, tensors)?.try_into().ok();
    bool, "a bool": |value, _tensors| match value {
        Value::Scalar(Scalar::Bool(truth)) => Some(*truth),
        _ => None,
    };
    String, "a text": |value, _tensors| match value {
        Value::Text(text) | Value::Device(text) | Value::MemoryFormat(text) => Some(text.clone()),
        _ => None,
    };
    Zero, "0": |value, _tensors| match value {
        Value::Scalar(scalar) if scalar.as_f64() == 0.0 => Some(Zero),
        _ => None,
    };
    DType, "a dtype": |value, _tensors| match value {
        Value::DType(dtype) => Some(*dtype),
        _ => None,
    };
    Term, "a tensor or a number": |value, tensors| match value {
        Value::Scalar(scalar) => Some(Term::Scalar(*scalar)),
        other => Tensor::from_value(other, tensors).map(Term::Tensor),
    };
}

impl<A: FromValue, B: FromValue> FromValue for Either<A, B> {
    const EXPECTED: &'static str = A::EXPECTED;

    #[expect(private_interfaces, reason = "recorded values are nobody's business outside")]
    fn from_value(value: &Value, tensors: &Tensors) -> Option<Either<A, B>> {
        let one = A::from_value(value, tensors).map(Either::One);
        one.or_else(|| B::from_value(value, tensors).map(Either::Other))
    }
}

impl<T: FromValue> FromValue for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    #[expect(private_interfaces, reason = "recorded values are nobody's business outside")]
    fn from_value(value: &Value, tensors: &Tensors) -> Option<Option<T>> {
        match value {
            Value::None => Some(None),
            other => T::from_value(other, tensors).map(Some),
        }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    const EXPECTED: &'static str = "a list";

    /// A list, or one element in the place of a list.
    #[expect(private_interfaces, reason = "recorded values are nobody's business outside")]
    fn from_value(value: &Value, tensors: &Tensors) -> Option<Vec<T>> {
        match value {
            Value::List(list) | Value::Tuple(list) => {
                list.iter().map(|value| T::from_value(value, tensors)).collect()
            }
            one => T::from_value(one, tensors).map(|one| vec![one]),
        }
    }
}

/// Makes the tensors of a call, each in memory of its own that lies as recorded.
pub(crate) fn prepare(golden: &Golden, passed: &Passed, device: Device, track: bool) -> Result<Tensors> {
    let mut tensors = Tensors::new();
    let named = passed.kwargs.iter().map(|(_, value)| value);
    for value in passed.args.iter().chain(named) {
        prepare_value(golden, value, device, track, &mut tensors)?;
    }
    if passed.shared {
        share(&mut tensors)?;
    }
    Ok(tensors)
}

/// Moves tensors of one type to one memory, each to the place that it had in its own.
fn share(tensors: &mut Tensors) -> Result<()> {
    let memories: Vec<Tensor> = tensors.values().cloned().collect();
    for tensor in tensors.values_mut() {
        let alike = memories.iter().filter(|memory| memory.dtype() == tensor.dtype());
        let reach = |memory: &&Tensor| (memory.layout().end(), std::cmp::Reverse(memory.layout().offset()));
        let Some(widest) = alike.max_by_key(reach) else { continue };
        let (strides, offset) = (tensor.strides().to_vec(), tensor.layout().offset());
        *tensor = widest.as_strided(tensor.shape(), &strides, offset)?.detach()?;
    }
    Ok(())
}

fn prepare_value(
    golden: &Golden,
    value: &Value,
    device: Device,
    track: bool,
    tensors: &mut Tensors,
) -> Result<()> {
    match value {
        Value::List(list) | Value::Tuple(list) => {
            list.iter().try_for_each(|value| prepare_value(golden, value, device, track, tensors))
        }
        Value::Tensor(described) => {
            let tensor = place(golden, described, device)?;
            tensor.set_requires_grad(track && described.requires_grad)?;
            tensors.insert(described.number, tensor);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn place(golden: &Golden, described: &Described, device: Device) -> Result<Tensor> {
    let missing = |reason| Error::new(Cause::Argument, "", reason);
    let values = golden.tensor(&described.key).map_err(missing)?;
    if described.strides.is_none() && described.offset == 0 {
        return values.copy()?.to(device);
    }
    let strides = described.strides.as_deref().unwrap_or(values.strides());
    let steps = values.shape().iter().zip(strides).map(|(size, stride)| size.saturating_sub(1) * stride);
    let count = 1 + described.offset + steps.sum::<usize>();
    let memory = Tensor::zeros([count], values.dtype())?;
    write(&memory, values, strides, described.offset)?;
    memory.to(device)?.as_strided(values.shape(), strides, described.offset)?.detach()
}

/// Writes `values` through strides, which may lead to one place more than once.
fn write(memory: &Tensor, values: &Tensor, strides: &[usize], offset: usize) -> Result<()> {
    let mut places = vec![offset as i64];
    for (&size, &stride) in values.shape().iter().zip(strides) {
        places = places.iter().flat_map(|at| (0..size).map(move |i| at + (i * stride) as i64)).collect();
    }
    cresset_kernels::with_dtype!(values.dtype(), T => {
        let mut elements = memory.to_vec::<T>()?;
        for (place, value) in places.iter().zip(values.to_vec::<T>()?) {
            elements[*place as usize] = value;
        }
        memory.copy_(&Tensor::from_slice(&elements, memory.shape())?)
    })
}
