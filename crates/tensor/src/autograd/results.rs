//! Finds the first call that makes NaN or infinity of finite numbers.
//!
//! The mode is a key of the thread, [`Key::RESULTS`], that every call reads together with its others: while
//! it is off, nothing is looked at. Calls inside of calls are looked at by themselves, so that the innermost
//! is named.

use super::anomaly::{DetectAnomaly, detect_anomaly};
use crate::op::Inputs;
use crate::{Cause, DType, Error, Key, Op, Result, Tensor};
use cresset_dispatch::KeySet;
use cresset_dispatch::key;
use cresset_dispatch::observe::Argument;
use ndarray::Dimension;
use std::backtrace::Backtrace;

/// As [`detect_anomaly`], and until the guard drops every call on this thread looks at its results: one that
/// gives NaN or infinity, where all it was given is finite, is an error that names operator, shapes and place.
///
/// Infinity that a program writes, such as `masked_fill(mask, f64::NEG_INFINITY)`, and what follows from it is
/// no anomaly. Each call reads all its tensors twice, those of devices through copies: this is for finding
/// mistakes.
///
/// ```
/// use cresset_tensor::Tensor;
/// use cresset_tensor::autograd::detect_anomaly_in_results;
///
/// let x = Tensor::new([1.0f32, 0.0])?;
/// let _guard = detect_anomaly_in_results();
/// let error = x.log().unwrap_err().to_string();
/// assert!(error.starts_with("aten::log: gave -inf at [1] of shape [2], of finite inputs of shape [2]"));
/// # Ok::<(), cresset_tensor::Error>(())
/// ```
pub fn detect_anomaly_in_results() -> DetectAnomaly {
    detect_anomaly().with_keys(key::include(KeySet::RESULTS))
}

/// A call on finite numbers whose results are to be looked at.
pub(crate) struct Looked {
    op: &'static str,
    inputs: Vec<Tensor>,
}

/// What to look at after a call of `op`, by this `name`; `None` if there is nothing to be found.
#[cold]
#[inline(never)]
pub(crate) fn look<O: Op>(op: &O, name: &'static str, inputs: O::Inputs<'_>) -> Result<Option<Box<Looked>>> {
    let (mut tensors, mut finite) = (Vec::new(), !O::VIEW);
    inputs.each(|given| tensors.extend(given.tensor().cloned()));
    op.arguments(inputs, &mut |argument| finite &= is_finite(argument));
    Looked { op: name, inputs: tensors }.if_finite(finite)
}

/// Whether a number that the program wrote is finite; tensors are looked at elsewhere.
fn is_finite(argument: Argument<'_>) -> bool {
    match argument {
        Argument::Float(number) => number.is_finite(),
        Argument::Floats(numbers) => numbers.iter().all(|number| number.is_finite()),
        _ => true,
    }
}

impl Looked {
    fn if_finite(self, mut finite: bool) -> Result<Option<Box<Looked>>> {
        for input in &self.inputs {
            finite = finite && unusual(input)?.is_none();
        }
        Ok(finite.then(|| Box::new(self)))
    }

    /// Refuses what the call gave, or left in its inputs, if that is not finite.
    #[cold]
    pub(crate) fn check(&self, each: impl FnOnce(&mut dyn FnMut(&Tensor))) -> Result<()> {
        let mut results = Vec::new();
        each(&mut |tensor| results.push(tensor.clone()));
        for result in results.iter().chain(&self.inputs) {
            if let Some((place, element)) = unusual(result)? {
                return Err(self.complain(result, &place, element));
            }
        }
        Ok(())
    }

    fn complain(&self, result: &Tensor, place: &[usize], element: f64) -> Error {
        let shapes: Vec<String> = self.inputs.iter().map(|input| format!("{:?}", input.shape())).collect();
        let inputs = match shapes.len() {
            0 => "nothing".to_owned(),
            1 => format!("finite inputs of shape {}", shapes[0]),
            _ => format!("finite inputs of shapes {}", shapes.join(" and ")),
        };
        let text = format_args!(
            "gave {element} at {place:?} of shape {:?}, of {inputs}; called here:\n{}",
            result.shape(),
            Backtrace::force_capture()
        );
        Error::new(Cause::Anomaly, self.op, text)
    }
}

/// The first element that is not finite, and its place.
fn unusual(tensor: &Tensor) -> Result<Option<(Vec<usize>, f64)>> {
    if !tensor.dtype().is_float() || tensor.is_meta() {
        return Ok(None);
    }
    let _unseen = key::exclude(KeySet::AUTOGRAD | KeySet::RESULTS);
    let host = tensor.on_host("detect_anomaly")?;
    host.converted(DType::F64)?.with_ndarray(|elements| {
        let found = elements.indexed_iter().find(|(_, element)| !f64::is_finite(**element));
        found.map(|(place, element)| (place.slice().to_vec(), *element))
    })
}

/// Whether calls on this thread look at their results.
#[inline]
pub(crate) fn are_looked_at() -> bool {
    KeySet::RESULTS.here().contains(Key::RESULTS)
}
