//! Makes a recorded module, calls it, and compares everything that was recorded of it.

use super::case::{Case, ErrorCase, Recorded};
use super::{Entry, Made, find};
use crate::arguments::{Arguments, KEYWORD, Tensors, prepare};
use crate::compare::compare;
use crate::golden::{Expected, Golden, Passed};
use crate::replay::{Outcome, Verdict, failed, guarded, refused};
use crate::report::{Fault, Report, Row, Suite};
use cresset_nn::Module as _;
use cresset_tensor::autograd::{self, Pass};
use cresset_tensor::{Cause, DType, Device, Error, Tensor};
use std::path::Path;

/// Modules.
pub const MODULES: Suite = Suite {
    one: "module",
    list: "modules",
    preface: "\
# Modules, beside PyTorch

What PyTorch's modules answered to its own sample inputs, replayed here by

    cresset parity modules FOLDER --markdown docs/parity-modules.md

A case passes if everything recorded of it is the same: the names of the parameters in their order, the
outputs, the gradients of inputs and parameters, the buffers after the call, all within torch's own tolerance
for the element type; and an error wherever torch raises one. The worst error is a share of the tolerance,
so 1 would be its edge. What is not offered is unsupported; it never counts as passed.

",
};

/// Replays the files of `folder`, or those of module `only`, and shows each row when it is done.
///
/// # Errors
/// If a file cannot be read, or there is none.
pub fn replay_folder(
    folder: &Path,
    only: Option<&str>,
    device: Device,
    show: impl FnMut(&Row),
) -> Result<Report, Fault> {
    Report::collect(MODULES, folder, only, show, |path| {
        Ok(Recorded::read(path)?.filter(|file| !file.cases.is_empty() || !file.errors.is_empty()).map(
            |file| {
                let category = find(&file.name).map_or("other", |(family, _)| family).to_owned();
                let mut row = Row { name: file.name.clone(), category, ..Row::default() };
                for case in &file.cases {
                    row.count(&case.id, guarded(|| replay(&file, case, device)));
                }
                for case in &file.errors {
                    row.count(&case.id, guarded(|| replay_error(&file, case, device)));
                }
                row
            },
        ))
    })
}

fn entry(file: &Recorded) -> Outcome<&'static Entry> {
    find(&file.name).map(|(_, entry)| entry).ok_or_else(|| Verdict::Unsupported("module".to_owned()))
}

fn replay(file: &Recorded, case: &Case, device: Device) -> Outcome<f64> {
    let golden = &file.golden;
    let told = |error: Error| refused(&error);
    let made = with_arguments(golden, &case.constructor, device, |a| make(entry(file)?, a))?;
    made.module.to((case.dtype, device)).map_err(told)?;
    made.module.set_training(case.training);
    let names: Vec<String> = made.module.named_parameters().into_iter().map(|(name, _)| name).collect();
    if names != case.parameters {
        return Err(failed(format!("has parameters {names:?}, expected {:?}", case.parameters)));
    }
    let mut state = Vec::new();
    for (name, key) in &case.state {
        state.push((name.clone(), golden.tensor(key).map_err(failed)?.clone()));
    }
    made.module.load_state_dict(&state).map_err(told)?;
    let inputs = prepare(golden, &case.passed, device, true).map_err(told)?;
    let outputs = call(&made, &Arguments::new(&case.passed, &inputs, device))?;
    if outputs.len() != case.outputs.len() {
        return Err(failed(format!("gives {} tensors, expected {}", outputs.len(), case.outputs.len())));
    }
    let mut worst: f64 = 0.0;
    for (i, (output, leaf)) in outputs.iter().zip(&case.outputs).enumerate() {
        let told = |reason: String| failed(format!("output {i} {reason}"));
        worst = worst.max(compare(golden, output, &leaf.expected).map_err(told)?);
    }
    let state = made.module.state_dict();
    for (name, expected) in &case.state_after {
        let told = |reason: String| failed(format!("{name} after the call {reason}"));
        let after = state.iter().find(|(other, _)| other == name);
        let (_, after) = after.ok_or_else(|| told("is missing".to_owned()))?;
        worst = worst.max(compare(golden, after, expected).map_err(told)?);
    }
    Ok(worst.max(gradients(golden, case, &made, &inputs, &outputs)?))
}

/// Compares the gradients of inputs and parameters.
fn gradients(
    golden: &Golden,
    case: &Case,
    made: &Made,
    inputs: &Tensors,
    outputs: &[Tensor],
) -> Outcome<f64> {
    let told = |error: Error| refused(&error);
    let mut cotangents = Vec::new();
    for (i, leaf) in case.outputs.iter().enumerate() {
        if let Some(key) = &leaf.cotangent {
            let values = golden.tensor(key).map_err(failed)?;
            cotangents.push((i, values.to(outputs[i].device()).map_err(told)?));
        }
    }
    let mut wanted: Vec<(String, Tensor, &Expected)> = Vec::new();
    for (k, expected) in &case.grads {
        let input = inputs.get(k).ok_or_else(|| failed(format!("there is no input number {k}")))?;
        wanted.push((format!("input {k}"), input.clone(), expected));
    }
    let parameters = made.module.named_parameters();
    for (name, expected) in &case.parameter_grads {
        let parameter = parameters.iter().find(|(other, _)| other == name);
        let (_, parameter) = parameter.ok_or_else(|| failed(format!("there is no parameter {name}")))?;
        wanted.push((name.clone(), parameter.clone(), expected));
    }
    if wanted.is_empty() || cotangents.is_empty() {
        return Ok(0.0);
    }
    let roots: Vec<_> = cotangents.iter().map(|(i, grad)| (&outputs[*i], Some(grad))).collect();
    let tensors: Vec<&Tensor> = wanted.iter().map(|(_, tensor, _)| tensor).collect();
    let grads =
        autograd::grad(&roots, &tensors, Pass { allow_unused: true, ..Pass::default() }).map_err(told)?;
    let mut worst: f64 = 0.0;
    for ((name, _, expected), grad) in wanted.iter().zip(grads) {
        let told = |reason: String| failed(format!("gradient of {name} {reason}"));
        worst = worst.max(match grad {
            Some(grad) => compare(golden, &grad, expected).map_err(told)?,
            None if expected.key.is_none() => 0.0,
            None => return Err(told("is none, expected a tensor".to_owned())),
        });
    }
    Ok(worst)
}

fn replay_error(file: &Recorded, case: &ErrorCase, device: Device) -> Outcome<f64> {
    let entry = entry(file)?;
    let tensors = prepare(&file.golden, &case.constructor, device, false).map_err(|error| refused(&error))?;
    let arguments = Arguments::new(&case.constructor, &tensors, device);
    let made = match (entry.make)(&arguments) {
        // Who passes something of the wrong type is refused by the compiler here.
        Err(error) if arguments.were_refused() && !case.of_types => {
            return Err(Verdict::Unsupported(error.to_string()));
        }
        Err(_) => return Ok(0.0),
        Ok(made) => made,
    };
    if let Some(name) = arguments.unknown() {
        return Err(Verdict::Unsupported(format!("argument {name}")));
    }
    if case.on_construction {
        return Err(failed("is made, expected an error"));
    }
    made.module.to(device).map_err(|error| refused(&error))?;
    let inputs = prepare(&file.golden, &case.passed, device, true).map_err(|error| refused(&error))?;
    match call(&made, &Arguments::new(&case.passed, &inputs, device)) {
        Ok(_) => Err(failed("gives an answer, expected an error")),
        Err(Verdict::Failed(_)) => Ok(0.0),
        Err(other) => Err(other),
    }
}

fn with_arguments<R>(
    golden: &Golden,
    passed: &Passed,
    device: Device,
    run: impl FnOnce(&Arguments<'_>) -> Outcome<R>,
) -> Outcome<R> {
    let tensors = prepare(golden, passed, device, false).map_err(|error| refused(&error))?;
    run(&Arguments::new(passed, &tensors, device))
}

pub(crate) fn make(entry: &Entry, arguments: &Arguments<'_>) -> Outcome<Made> {
    // Where it is and of what type is decided by the case.
    let elsewhere = arguments
        .get::<Option<String>>(KEYWORD, "device")
        .and_then(|_| arguments.get::<Option<DType>>(KEYWORD, "dtype"));
    elsewhere.map_err(|error| refused(&error))?;
    judge(arguments, (entry.make)(arguments))
}

pub(crate) fn call(made: &Made, arguments: &Arguments<'_>) -> Outcome<Vec<Tensor>> {
    judge(arguments, (made.call)(arguments))
}

/// Nothing counts that was made from arguments that nobody asked for.
fn judge<T>(arguments: &Arguments<'_>, result: cresset_tensor::Result<T>) -> Outcome<T> {
    match (result, arguments.unknown()) {
        (Err(error), _) if arguments.were_refused() => Err(Verdict::Unsupported(error.to_string())),
        (Err(error), _) if error.cause() == Cause::NoKernel => Err(refused(&error)),
        (_, Some(name)) => Err(Verdict::Unsupported(format!("argument {name}"))),
        (Err(error), None) => Err(refused(&error)),
        (Ok(value), None) => Ok(value),
    }
}
