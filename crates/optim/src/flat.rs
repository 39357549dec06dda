//! A state dict as tensors with names, as files hold them.

use crate::{GroupState, StateDict, Value};
use cresset_tensor::{Cause, DType, Error, Result, Tensor};
use std::collections::BTreeMap;

/// More parameters than any model has: a file that speaks of more is broken.
const MOST_PARAMETERS: usize = 1 << 20;

impl StateDict {
    /// All of it as tensors with names such as `state.0.exp_avg` and `groups.0.options.lr`, to be written to a
    /// file. [`from_tensors`](StateDict::from_tensors) reads it back.
    ///
    /// ```
    /// use cresset_optim::{Adam, AdamOptions, Optimizer, StateDict, Tensor};
    ///
    /// let weight = Tensor::ones([2], ())?.with_grad()?;
    /// weight.set_grad(Tensor::ones([2], ())?)?;
    /// let mut adam = Adam::new(vec![weight], AdamOptions::default())?;
    /// adam.step()?;
    /// let tensors = adam.state_dict()?.to_tensors()?; // for nn::save_state
    /// adam.load_state_dict(&StateDict::from_tensors(tensors)?)?;
    /// # Ok::<(), cresset_optim::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a tensor cannot be made.
    pub fn to_tensors(&self) -> Result<Vec<(String, Tensor)>> {
        let mut tensors = Vec::new();
        for (i, kept) in self.state.iter().enumerate() {
            let named = |(name, tensor): (&String, &Tensor)| (format!("state.{i}.{name}"), tensor.clone());
            tensors.extend(kept.iter().map(named));
        }
        for (i, group) in self.groups.iter().enumerate() {
            let mut write =
                |name: &str, value: &Value| write(format!("groups.{i}.{name}"), value, &mut tensors);
            write("parameters", &Value::Int(group.parameters as i64))?;
            group.initial_lr.map_or(Ok(()), |lr| write("initial_lr", &Value::Float(lr)))?;
            group.options.iter().try_for_each(|(name, value)| write(&format!("options.{name}"), value))?;
        }
        Ok(tensors)
    }

    /// Reads what [`to_tensors`](StateDict::to_tensors) gave, in any order.
    ///
    /// # Errors
    /// For names that are no part of a state, and where something is missing or of another kind.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<StateDict> {
        let mut state: BTreeMap<usize, BTreeMap<String, Tensor>> = BTreeMap::new();
        let mut groups: BTreeMap<usize, BTreeMap<String, Tensor>> = BTreeMap::new();
        for (name, tensor) in tensors {
            let mut parts = name.splitn(3, '.');
            let (list, number, rest) = (parts.next(), parts.next(), parts.next());
            let into = match list {
                Some("state") => &mut state,
                Some("groups") => &mut groups,
                _ => return Err(unknown(&name)),
            };
            let number = number.and_then(|number| number.parse().ok());
            let (Some(number), Some(rest)) = (number, rest) else { return Err(unknown(&name)) };
            into.entry(number).or_default().insert(rest.to_owned(), tensor);
        }
        let count = groups.len();
        let groups = groups.into_iter().enumerate().map(|(i, (number, tensors))| {
            if i == number { group(i, tensors) } else { Err(missing(format_args!("groups.{i} of {count}"))) }
        });
        let groups: Vec<GroupState> = groups.collect::<Result<_>>()?;
        let parameters: usize = groups.iter().map(|group| group.parameters).sum();
        if let Some((number, _)) = state.last_key_value().filter(|(number, _)| **number >= parameters) {
            let text = format_args!("state.{number} is there, expected less than {parameters}");
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        let state = (0..parameters).map(|i| state.remove(&i).unwrap_or_default()).collect();
        Ok(StateDict { state, groups })
    }
}

const NAME: &str = "StateDict";

fn unknown(name: &str) -> Error {
    Error::new(Cause::Argument, NAME, format_args!("{name:?} is no part of an optimizer's state"))
}

fn missing(what: impl std::fmt::Display) -> Error {
    Error::new(Cause::Argument, NAME, format_args!("{what} is missing"))
}

/// Reads the numbers of group `i`.
fn group(i: usize, tensors: BTreeMap<String, Tensor>) -> Result<GroupState> {
    let mut group = GroupState::default();
    let mut parameters = None;
    for (name, tensor) in &tensors {
        let told = || unknown(&format!("groups.{i}.{name}"));
        let value = read(tensor)?.ok_or_else(told)?;
        let mut parts = name.split('.');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("parameters"), None, ..) => parameters = Some(value),
            (Some("initial_lr"), None, ..) => group.initial_lr = Some(value.as_f64().ok_or_else(told)?),
            (Some("options"), Some(option), None, _) => {
                group.options.insert(option.to_owned(), value);
            }
            (Some("options"), Some(option), Some(_), None) => {
                let list = group.options.entry(option.to_owned()).or_insert(Value::List(Vec::new()));
                // Names are sorted, and no list has ten numbers.
                let Value::List(list) = list else { return Err(told()) };
                list.push(value);
            }
            _ => return Err(told()),
        }
    }
    let Some(Value::Int(count)) = parameters else {
        return Err(missing(format_args!("groups.{i}.parameters")));
    };
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST_PARAMETERS);
    group.parameters = count.ok_or_else(|| unknown(&format!("groups.{i}.parameters")))?;
    Ok(group)
}

/// A value as a tensor whose element type and rank say what it is.
fn write(name: String, value: &Value, tensors: &mut Vec<(String, Tensor)>) -> Result<()> {
    let tensor = match value {
        Value::None => Tensor::zeros([0], DType::F64)?,
        Value::Bool(value) => Tensor::new(*value)?,
        Value::Int(value) => Tensor::new(*value)?,
        Value::Float(value) => Tensor::new(*value)?,
        Value::Text(text) => Tensor::new(text.as_bytes().to_vec())?,
        Value::List(list) => {
            let mut each = list.iter().enumerate();
            return each.try_for_each(|(i, value)| write(format!("{name}.{i}"), value, tensors));
        }
    };
    tensors.push((name, tensor));
    Ok(())
}

/// The value that a tensor stands for; `None` if it stands for none.
fn read(tensor: &Tensor) -> Result<Option<Value>> {
    Ok(match (tensor.dtype(), tensor.shape()) {
        (DType::F64, [0]) => Some(Value::None),
        (DType::F64, []) => Some(Value::Float(tensor.item()?.as_f64())),
        (DType::I64, []) => Some(Value::Int(tensor.item()?.as_i64())),
        (DType::Bool, []) => Some(Value::Bool(tensor.item()?.as_f64() != 0.0)),
        (DType::U8, [_]) => String::from_utf8(tensor.to_vec()?).ok().map(Value::Text),
        _ => None,
    })
}
