//! Paths of optimizers, taken again in every implementation.

use super::case::{Case, Closed, ErrorCase, Given, Path, parse_case, parse_error};
use super::make::{Wanted, find};
use crate::compare::compare_values;
use crate::golden::{BadFile, Expected, Golden, text, told_all};
use crate::replay::{Outcome, Verdict, failed, guarded, refused};
use crate::report::Row;
use cresset_optim::{Implementation, Optimizer};
use cresset_tensor::{DType, Device, Error, Result as TensorResult, Tensor};
use serde_json::Value as Json;

pub(super) fn row(
    path: &std::path::Path,
    json: &Json,
    golden: &Golden,
    device: Device,
) -> Result<Row, BadFile> {
    let bad = |reason: String| BadFile::new(path, reason);
    let name = text(&json["optimizer"]).map_err(bad)?;
    let cases = told_all(&json["cases"], parse_case).map_err(bad)?;
    let errors = told_all(&json["errors"], parse_error).map_err(bad)?;
    let mut row = Row { name: name.clone(), category: "optimizers".to_owned(), ..Row::default() };
    for case in &cases {
        let implementations = match find(&name) {
            Ok(entry) => entry.implementations,
            Err(_) => &[Implementation::Single],
        };
        for &implementation in implementations {
            let id = format!("{} {implementation:?}", case.id).to_lowercase();
            row.count(&id, guarded(|| replay(golden, &name, case, implementation, device)));
        }
    }
    for case in &errors {
        row.count(&case.id, guarded(|| replay_error(&name, case, device)));
    }
    Ok(row)
}

fn told(error: Error) -> Verdict {
    refused(&error)
}

fn tensor<'a>(golden: &'a Golden, expected: &Expected) -> Outcome<&'a Tensor> {
    let key = expected.key.as_deref().ok_or_else(|| failed("a tensor is missing"))?;
    golden.tensor(key).map_err(failed)
}

fn parameter(tensor: &Tensor, device: Device) -> TensorResult<Tensor> {
    tensor.copy()?.to(device)?.with_grad()
}

fn replay(
    golden: &Golden,
    name: &str,
    case: &Case,
    implementation: Implementation,
    device: Device,
) -> Outcome<f64> {
    let make = |groups| {
        let wanted = Wanted { options: &case.options, implementation, groups };
        (find(name)?.make)(&wanted).map_err(super::make::Refusal::verdict)
    };
    match &case.path {
        Path::Given(given) => {
            let mut parameters = Vec::new();
            for expected in &given.parameters {
                parameters.push(parameter(tensor(golden, expected)?, device).map_err(told)?);
            }
            let (split, factor) = given.split.unwrap_or((parameters.len(), 1.0));
            let (first, second) = parameters.split_at(split.min(parameters.len()));
            let mut groups = vec![(first.to_vec(), 1.0)];
            if !second.is_empty() {
                groups.push((second.to_vec(), factor));
            }
            replay_given(golden, given, &parameters, &mut *make(groups)?, device)
        }
        Path::Closed(closed) => {
            let start = tensor(golden, &closed.path)?.select(0, 0).map_err(told)?;
            let x = parameter(&start, device).map_err(told)?;
            replay_closed(golden, closed, &x, &mut *make(vec![(vec![x.clone()], 1.0)])?, device)
        }
    }
}

fn replay_given(
    golden: &Golden,
    given: &Given,
    parameters: &[Tensor],
    optimizer: &mut dyn Optimizer,
    device: Device,
) -> Outcome<f64> {
    let steps =
        given.grads.first().map_or(Ok(0), |grads| tensor(golden, grads).map(|grads| grads.shape()[0]))?;
    let mut worst: f64 = 0.0;
    for step in 0..steps {
        for (i, (parameter, grads)) in parameters.iter().zip(&given.grads).enumerate() {
            if given.missing.as_ref().is_some_and(|(of, at)| *of == i && at.contains(&step)) {
                parameter.clear_grad();
                continue;
            }
            let grad =
                tensor(golden, grads)?.select(0, step as isize).and_then(|grad| grad.copy()?.to(device));
            parameter.set_grad(grad.map_err(told)?).map_err(told)?;
        }
        optimizer.step().map_err(told)?;
        for (i, (parameter, path)) in parameters.iter().zip(&given.path).enumerate() {
            let wanted = tensor(golden, path)?.select(0, step as isize + 1).map_err(told)?;
            let reason = |reason: String| failed(format!("parameter {i} after step {step} {reason}"));
            worst = worst.max(compare_values(golden, parameter, &wanted, path).map_err(reason)?);
        }
    }
    Ok(worst.max(compare_state(golden, given, optimizer)?))
}

fn compare_state(golden: &Golden, given: &Given, optimizer: &dyn Optimizer) -> Outcome<f64> {
    let state = optimizer.state_dict().map_err(told)?.state;
    let mut worst: f64 = 0.0;
    for (i, (kept, expected)) in state.iter().zip(&given.state).enumerate() {
        if kept.len() != expected.len() {
            let names: Vec<_> = kept.keys().collect();
            return Err(failed(format!(
                "keeps {names:?} for parameter {i}, expected {} things",
                expected.len()
            )));
        }
        for (name, expected) in expected {
            let reason = |reason: String| failed(format!("{name} of parameter {i} {reason}"));
            let got = kept.get(name).ok_or_else(|| reason("is not kept".to_owned()))?;
            worst =
                worst.max(compare_values(golden, got, tensor(golden, expected)?, expected).map_err(reason)?);
        }
    }
    Ok(worst)
}

fn loss(problem: &str, x: &Tensor, matrix: &Tensor, vector: &Tensor) -> TensorResult<Tensor> {
    if problem == "rosenbrock" {
        // Written as it was recorded: some paths double a rounding error with every step.
        let side = x.select(0, 0)?.neg()?.add(1.0)?.pow(2.0)?;
        let valley = x.select(0, 1)?.sub(&x.select(0, 0)?.pow(2.0)?)?.pow(2.0)?;
        return side.add(&valley.mul(100.0)?);
    }
    matrix.mv(x)?.dot(x)?.mul(0.5)?.sub(&vector.dot(x)?)
}

fn replay_closed(
    golden: &Golden,
    closed: &Closed,
    x: &Tensor,
    optimizer: &mut dyn Optimizer,
    device: Device,
) -> Outcome<f64> {
    if !["rosenbrock", "quadratic"].contains(&closed.problem.as_str()) {
        return Err(Verdict::Unsupported(format!("problem {}", closed.problem)));
    }
    let [matrix, vector] = [&closed.matrix, &closed.vector];
    let matrix = tensor(golden, matrix)?.to(device).map_err(told)?;
    let vector = tensor(golden, vector)?.to(device).map_err(told)?;
    let path = tensor(golden, &closed.path)?;
    let mut worst: f64 = 0.0;
    for (step, &expected) in closed.losses.iter().enumerate() {
        let mut closure = || {
            x.clear_grad();
            let loss = loss(&closed.problem, x, &matrix, &vector)?;
            loss.backward()?;
            loss.detach()
        };
        let got = optimizer.step_with(&mut closure).map_err(told)?;
        let wanted = Tensor::new(expected).and_then(|wanted| wanted.to_dtype(DType::F64)).map_err(told)?;
        let exact = Expected { key: None, noise: 0.0, ill: false };
        let reason = |reason: String| failed(format!("the loss of step {step} {reason}"));
        worst = worst.max(compare_values(golden, &got, &wanted, &exact).map_err(reason)?);
        let wanted = path.select(0, step as isize + 1).map_err(told)?;
        let reason = |reason: String| failed(format!("x after step {step} {reason}"));
        worst = worst.max(compare_values(golden, x, &wanted, &closed.path).map_err(reason)?);
    }
    let state = optimizer.state_dict().map_err(told)?.state;
    for (name, count) in &closed.counters {
        let kept = state.first().and_then(|state| state.get(name));
        let got = kept.ok_or_else(|| failed(format!("{name} is not kept")))?.item().map_err(told)?.as_f64();
        if got != *count as f64 {
            return Err(failed(format!("{name} is {got}, expected {count}")));
        }
    }
    Ok(worst)
}

fn replay_error(name: &str, case: &ErrorCase, device: Device) -> Outcome<f64> {
    if case.pattern.contains("complex") {
        // Torch takes a complex parameter and refuses its first step; here none can be made.
        return match crate::golden::dtype("complex64") {
            Err(_) => Ok(0.0),
            Ok(_) => Err(Verdict::Unsupported("complex parameters".to_owned())),
        };
    }
    let entry = find(name)?;
    // Torch's own cases say which parameters they pass in words only.
    let is_of_shape = case.pattern.contains("2D");
    let shape: &[usize] = if name == "Muon" && !is_of_shape { &[2, 2] } else { &[3] };
    let parameter = Tensor::zeros(shape, device).and_then(Tensor::with_grad).map_err(told)?;
    let implementation = *entry.implementations.last().unwrap_or(&Implementation::Single);
    let groups = vec![(vec![parameter], 1.0)];
    match (entry.make)(&Wanted { options: &case.options, implementation, groups }) {
        Ok(_) => Err(failed("is made, expected an error")),
        Err(super::make::Refusal::Error(_)) => Ok(0.0),
        Err(unknown) => Err(unknown.verdict()),
    }
}
