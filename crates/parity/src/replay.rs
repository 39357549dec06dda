//! Runs a recorded case and compares everything that was recorded of it.

use crate::arguments::{Arguments, Tensors, prepare};
use crate::compare::{compare, compare_values, numbers};
use crate::golden::{Case, ErrorCase, Expected, Golden, InPlace, Leaf, Second};
use crate::ops::{self, Entry};
use cresset_tensor::autograd::{self, Pass};
use cresset_tensor::{Cause, Device, Error, Tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What became of a case.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// As recorded; the worst error is this share of what is allowed.
    Passed {
        /// At most 1.
        worst: f64,
    },
    /// Not as recorded.
    Failed(String),
    /// An operator, a form or an argument that is not known here.
    Unsupported(String),
}

pub(crate) type Outcome<T> = Result<T, Verdict>;

pub(crate) fn failed(reason: impl Into<String>) -> Verdict {
    Verdict::Failed(reason.into())
}

/// What an error means: a device may lack a kernel, all else is not as recorded.
pub(crate) fn refused(error: &Error) -> Verdict {
    match error.cause() {
        Cause::NoKernel => Verdict::Unsupported(error.to_string()),
        _ => failed(error.to_string()),
    }
}

/// Replays a case that has an answer.
pub fn replay(golden: &Golden, case: &Case, device: Device) -> Verdict {
    guarded(|| {
        let entry = entry(golden)?;
        let forward = replay_forward(golden, entry, case, device)?;
        let in_place = replay_in_place(golden, entry, case, device)?;
        Ok(f64::max(forward, in_place))
    })
}

/// Replays a case that torch refuses.
pub fn replay_error(golden: &Golden, case: &ErrorCase, device: Device) -> Verdict {
    guarded(|| {
        let entry = entry(golden)?;
        let tensors = prepare(golden, &case.passed, device, true).map_err(|error| refused(&error))?;
        let arguments = Arguments::new(&case.passed, &tensors, device);
        match entry.call(&arguments) {
            // Who passes something of the wrong type is refused by the compiler here.
            Err(error) if arguments.were_refused() && !case.of_types => {
                Err(Verdict::Unsupported(error.to_string()))
            }
            Err(error) if error.cause() == Cause::NoKernel => Err(refused(&error)),
            Err(_) => Ok(0.0),
            // A device tells of some mistakes when their result is waited for.
            Ok(outputs) if outputs.iter().any(|output| output.to(Device::CPU).is_err()) => Ok(0.0),
            Ok(_) => match arguments.unknown() {
                Some(name) => Err(Verdict::Unsupported(format!("argument {name}"))),
                None => Err(failed("gives an answer, expected an error")),
            },
        }
    })
}

/// A panic is a failure like any other here.
pub(crate) fn guarded(run: impl FnOnce() -> Outcome<f64>) -> Verdict {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(worst)) => Verdict::Passed { worst },
        Ok(Err(verdict)) => verdict,
        Err(_) => failed("panicked"),
    }
}

fn entry(golden: &Golden) -> Outcome<&'static Entry> {
    let found = ops::find(&golden.name()).or_else(|| ops::find(&golden.op));
    found.ok_or_else(|| Verdict::Unsupported("operator".to_owned()))
}

fn replay_forward(golden: &Golden, entry: &Entry, case: &Case, device: Device) -> Outcome<f64> {
    let tensors = prepare(golden, &case.passed, device, true).map_err(|error| refused(&error))?;
    let arguments = Arguments::new(&case.passed, &tensors, device);
    let result = entry.call(&arguments);
    let outputs = match (result, arguments.unknown()) {
        (Err(error), _) if arguments.were_refused() => return Err(Verdict::Unsupported(error.to_string())),
        (_, Some(name)) => return Err(Verdict::Unsupported(format!("argument {name}"))),
        (Err(error), None) => return Err(refused(&error)),
        (Ok(outputs), None) => outputs,
    };
    if outputs.len() != case.outputs.len() {
        return Err(failed(format!("gives {} tensors, expected {}", outputs.len(), case.outputs.len())));
    }
    let mut worst: f64 = 0.0;
    for (i, (output, leaf)) in outputs.iter().zip(&case.outputs).enumerate() {
        let told = |reason: String| failed(format!("output {i} {reason}"));
        if let (1, false, Some(chosen)) = (i, device.is_cpu(), entry.chosen()) {
            let there = chosen(&arguments, &outputs).map_err(|error| refused(&error))?;
            worst = worst.max(compare(golden, &there, &case.outputs[0].expected).map_err(told)?);
            if compare(golden, output, &leaf.expected).is_err() {
                // Gradients go where the index says, which is another place than was recorded.
                return Ok(worst);
            }
            continue;
        }
        worst = worst.max(compare(golden, output, &leaf.expected).map_err(told)?);
        compare_memory(output, leaf, &tensors, case.returns_input).map_err(told)?;
    }
    let gradients = Gradients { golden, case, tensors: &tensors, outputs: &outputs };
    Ok(worst.max(gradients.replay()?))
}

/// Whether an output is a view, and of what. Strides of fresh memory are our own business.
fn compare_memory(got: &Tensor, leaf: &Leaf, tensors: &Tensors, returns_input: bool) -> Result<(), String> {
    let shares = |k: usize| tensors.get(&k).is_some_and(|input| input.storage().same_as(got.storage()));
    let Some(k) = leaf.alias else {
        if (leaf.view || returns_input) && got.numel() == 0 {
            // What holds nothing shares nothing that could have been seen.
            return Ok(());
        }
        return match tensors.keys().find(|&&k| shares(k)) {
            Some(k) => Err(format!("shares memory with input {k}, expected its own")),
            None => Ok(()),
        };
    };
    if !shares(k) {
        return Err(format!("has its own memory, expected that of input {k}"));
    }
    if got.is_view() != leaf.view && !returns_input {
        let says = |view| if view { "a view" } else { "no view" };
        return Err(format!("is {}, expected {}", says(got.is_view()), says(leaf.view)));
    }
    let Some(strides) = &leaf.strides else { return Ok(()) };
    let differs = |dim: &usize| got.shape()[*dim] > 1 && got.strides()[*dim] != strides[*dim];
    if got.numel() > 0 && (0..got.dim()).any(|dim| differs(&dim)) {
        return Err(format!("has strides {:?}, expected {strides:?}", got.strides()));
    }
    Ok(())
}

struct Gradients<'a> {
    golden: &'a Golden,
    case: &'a Case,
    tensors: &'a Tensors,
    outputs: &'a [Tensor],
}

impl Gradients<'_> {
    fn replay(&self) -> Outcome<f64> {
        if self.case.grads.is_empty() {
            return Ok(0.0);
        }
        let mut cotangents = Vec::new();
        for (number, leaf) in self.case.outputs.iter().enumerate() {
            if let Some(key) = &leaf.cotangent {
                cotangents.push((number, self.cotangent(key)?));
            }
        }
        let inputs = self.inputs(&self.case.grads)?;
        let roots: Vec<_> = cotangents.iter().map(|(i, grad)| (&self.outputs[*i], Some(grad))).collect();
        let again = self.case.second.is_some();
        let pass = Pass { retain_graph: again, create_graph: again, allow_unused: true };
        let grads = autograd::grad(&roots, &inputs, pass).map_err(|error| refused(&error))?;
        let mut worst: f64 = 0.0;
        for ((k, expected), grad) in self.case.grads.iter().zip(&grads) {
            let told = |reason: String| failed(format!("gradient of input {k} {reason}"));
            worst = worst.max(match grad {
                Some(grad) => compare(self.golden, grad, expected).map_err(told)?,
                None if expected.key.is_none() => 0.0,
                None => return Err(told("is none, expected a tensor".to_owned())),
            });
        }
        match &self.case.second {
            Some(second) => Ok(worst.max(self.replay_second(second, &inputs, &cotangents, &grads)?)),
            None => Ok(worst),
        }
    }

    /// A gradient that is sent back; tracked, for its own gradient is recorded too.
    fn cotangent(&self, key: &str) -> Outcome<Tensor> {
        let device = self.outputs[0].device();
        let values = self.golden.tensor(key).map_err(failed)?;
        let tracked = values.copy().and_then(|copy| copy.to(device)?.with_grad());
        tracked.map_err(|error| refused(&error))
    }

    fn inputs<T>(&self, numbered: &[(usize, T)]) -> Outcome<Vec<&Tensor>> {
        let input = |(k, _): &(usize, T)| {
            self.tensors.get(k).ok_or_else(|| failed(format!("there is no input number {k}")))
        };
        numbered.iter().map(input).collect()
    }

    fn replay_second(
        &self,
        second: &Second,
        inputs: &[&Tensor],
        cotangents: &[(usize, Tensor)],
        grads: &[Option<Tensor>],
    ) -> Outcome<f64> {
        let told = |error: Error| match error.cause() {
            Cause::NoKernel => refused(&error),
            _ => failed(format!("second gradient: {error}")),
        };
        let mut directions = Vec::new();
        for (k, key) in &second.directions {
            let at = self.case.grads.iter().position(|(number, _)| number == k);
            let Some(grad) = at.and_then(|at| grads[at].as_ref()).filter(|grad| grad.requires_grad()) else {
                continue;
            };
            let direction = self.golden.tensor(key).map_err(failed)?.to(grad.device()).map_err(told)?;
            directions.push((grad, direction));
        }
        let roots: Vec<_> = directions.iter().map(|(grad, direction)| (*grad, Some(direction))).collect();
        let of_inputs = self.inputs(&second.inputs)?;
        debug_assert!(of_inputs.len() <= inputs.len());
        let of_cotangents = second.cotangents.iter().map(|(o, _)| {
            let found = cotangents.iter().find(|(number, _)| number == o);
            found.map(|(_, cotangent)| cotangent).ok_or_else(|| failed(format!("no gradient of output {o}")))
        });
        let of_cotangents = of_cotangents.collect::<Outcome<Vec<_>>>()?;
        let wanted: Vec<&Tensor> = of_inputs.into_iter().chain(of_cotangents).collect();
        let results = if roots.is_empty() {
            vec![None; wanted.len()]
        } else {
            autograd::grad(&roots, &wanted, Pass { allow_unused: true, ..Pass::default() }).map_err(told)?
        };
        let expected = second.inputs.iter().chain(&second.cotangents);
        let mut worst: f64 = 0.0;
        for ((number, expected), result) in expected.zip(results) {
            let told = |reason: String| failed(format!("second gradient of {number} {reason}"));
            worst = worst.max(compare_or_zero(self.golden, result.as_ref(), expected).map_err(told)?);
        }
        Ok(worst)
    }
}

/// Second gradients that are zero may be left out, by torch or by us.
fn compare_or_zero(golden: &Golden, got: Option<&Tensor>, expected: &Expected) -> Result<f64, String> {
    let is_zero = |x: &Tensor| Ok::<_, String>(numbers(x)?.iter().all(|number| number.as_f64() == 0.0));
    match (got, &expected.key) {
        (None, None) => Ok(0.0),
        (Some(got), Some(_)) => compare(golden, got, expected),
        (Some(got), None) if is_zero(got)? => Ok(0.0),
        (None, Some(key)) if is_zero(golden.tensor(key)?)? => Ok(0.0),
        (Some(_), None) => Err("is not zero, expected none".to_owned()),
        (None, Some(_)) => Err("is none, expected other than zero".to_owned()),
    }
}

fn replay_in_place(golden: &Golden, entry: &Entry, case: &Case, device: Device) -> Outcome<f64> {
    let Some(recorded) = &case.in_place else { return Ok(0.0) };
    let Some(change) = entry.change() else {
        return Err(Verdict::Unsupported("in-place form".to_owned()));
    };
    let tensors = prepare(golden, &case.passed, device, false).map_err(|error| refused(&error))?;
    let arguments = Arguments::new(&case.passed, &tensors, device);
    let told = |reason: String| failed(format!("in place: {reason}"));
    let mut target = tensors.get(&0).ok_or_else(|| told("there is no first input".to_owned()))?.clone();
    let (before, dtype) = (target.version(), target.dtype());
    let values = target.copy().map_err(|error| told(error.to_string()))?;
    arguments.skip_first();
    let result = change(&mut target, &arguments);
    if let Some(name) = arguments.unknown() {
        return Err(Verdict::Unsupported(format!("argument {name} in place")));
    }
    match (recorded, result) {
        (InPlace::Refused, Ok(())) => Err(told("gives an answer, expected an error".to_owned())),
        (_, Err(error)) if error.cause() == Cause::NoKernel => Err(refused(&error)),
        (InPlace::Refused, Err(_)) => {
            let unchanged = Expected { key: None, noise: 0.0, ill: false };
            compare_values(golden, &target, &values, &unchanged)
                .map_err(|reason| told(format!("was refused, but the target {reason}")))
        }
        (InPlace::Works { .. }, Err(error)) => Err(told(error.to_string())),
        (InPlace::Works { bump }, Ok(())) => {
            if target.dtype() != dtype {
                return Err(told(format!("the target became {}", target.dtype())));
            }
            // What has grown is a copy of what it was.
            let grown = tensors.get(&0).is_some_and(|first| !first.storage().same_as(target.storage()));
            let moved = target.version() - if grown { values.version() } else { before };
            if bump.is_some_and(|bump| bump != moved) {
                return Err(told(format!("the version moved by {moved}, expected {bump:?}")));
            }
            let leaf = &case.outputs[0].expected;
            let key = leaf.key.as_deref().unwrap_or_default();
            let wanted = golden.tensor(key).map_err(told)?.to_dtype(dtype);
            let wanted = wanted.map_err(|error| told(error.to_string()))?;
            compare_values(golden, &target, &wanted, leaf).map_err(told)
        }
    }
}
