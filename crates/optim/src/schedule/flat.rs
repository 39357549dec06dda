//! Where a scheduler is, as tensors with names, as files hold them.

use super::ScheduleState;
use cresset_tensor::{Cause, DType, Error, Result, Tensor};
use std::collections::BTreeMap;

const NAME: &str = "ScheduleState";

/// How deep schedulers of schedulers may go: a file with more is broken.
const DEEPEST: usize = 16;

impl ScheduleState {
    /// All of it as tensors with names, to be written to a file; those of parts have names such as
    /// `parts.0.epoch`. [`from_tensors`](ScheduleState::from_tensors) reads it back.
    ///
    /// # Errors
    /// If a tensor cannot be made.
    pub fn to_tensors(&self) -> Result<Vec<(String, Tensor)>> {
        let mut tensors = vec![
            ("epoch".to_owned(), Tensor::new(self.epoch as i64)?),
            ("base_lrs".to_owned(), Tensor::from_slice(&self.base_lrs, [self.base_lrs.len()])?),
            ("lrs".to_owned(), Tensor::from_slice(&self.lrs, [self.lrs.len()])?),
        ];
        for (name, number) in &self.numbers {
            tensors.push((format!("numbers.{name}"), Tensor::new(*number)?));
        }
        for (i, part) in self.parts.iter().enumerate() {
            let inner = part.to_tensors()?.into_iter();
            tensors.extend(inner.map(|(name, tensor)| (format!("parts.{i}.{name}"), tensor)));
        }
        Ok(tensors)
    }

    /// Reads what [`to_tensors`](ScheduleState::to_tensors) gave, in any order.
    ///
    /// # Errors
    /// For names that are no part of a state, and where something is missing or of another kind.
    pub fn from_tensors(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Result<ScheduleState> {
        read(tensors.into_iter().collect(), "", DEEPEST)
    }
}

fn read(tensors: Vec<(String, Tensor)>, place: &str, deeper: usize) -> Result<ScheduleState> {
    let mut state = ScheduleState::default();
    let mut epoch = None;
    let mut parts: BTreeMap<usize, Vec<(String, Tensor)>> = BTreeMap::new();
    for (name, tensor) in tensors {
        let unknown = || {
            let text = format_args!("\"{place}{name}\" is no part of a scheduler's state");
            Error::new(Cause::Argument, NAME, text)
        };
        let rank = match tensor.dtype() {
            DType::I64 | DType::F64 => tensor.dim(),
            _ => return Err(unknown()),
        };
        match (name.split_once('.'), rank) {
            (None, 0) if name == "epoch" => epoch = usize::try_from(tensor.item()?.as_i64()).ok(),
            (None, 1) if name == "base_lrs" => state.base_lrs = tensor.to_dtype(DType::F64)?.to_vec()?,
            (None, 1) if name == "lrs" => state.lrs = tensor.to_dtype(DType::F64)?.to_vec()?,
            (Some(("numbers", number)), 0) => {
                state.numbers.insert(number.to_owned(), tensor.item()?.as_f64());
            }
            (Some(("parts", rest)), _) if deeper > 0 => {
                let (i, inner) = rest.split_once('.').ok_or_else(unknown)?;
                let i = i.parse().map_err(|_| unknown())?;
                parts.entry(i).or_default().push((inner.to_owned(), tensor));
            }
            _ => return Err(unknown()),
        }
    }
    let missing = |what: String| Error::new(Cause::Argument, NAME, format_args!("{place}{what} is missing"));
    state.epoch = epoch.ok_or_else(|| missing("epoch".to_owned()))?;
    for (i, (number, tensors)) in parts.into_iter().enumerate() {
        if i != number {
            return Err(missing(format!("parts.{i}")));
        }
        state.parts.push(read(tensors, &format!("{place}parts.{i}."), deeper - 1)?);
    }
    Ok(state)
}
