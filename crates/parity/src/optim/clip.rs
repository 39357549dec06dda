//! Gradients that were clipped.

use crate::compare::compare;
use crate::golden::{Golden, parse_expected};
use crate::replay::{Outcome, failed, guarded, refused};
use crate::report::Row;
use crate::value::float;
use cresset_nn::{TotalNorm, clip_grad_norm_with, clip_grad_value};
use cresset_tensor::{Device, Tensor};
use serde_json::Value as Json;

pub(super) fn row(json: &Json, golden: &Golden, device: Device) -> Row {
    let mut row = Row { name: "clip_grad".to_owned(), category: "gradients".to_owned(), ..Row::default() };
    for case in json["cases"].as_array().into_iter().flatten() {
        let id = case["id"].as_str().unwrap_or_default();
        row.count(id, guarded(|| replay(golden, case, device)));
    }
    row
}

/// Parameters with the recorded gradients.
fn parameters(golden: &Golden, case: &Json, device: Device) -> Outcome<Vec<Tensor>> {
    let mut parameters = Vec::new();
    for grad in case["grads"].as_array().into_iter().flatten() {
        let grad = if grad.is_null() { None } else { Some(parse_expected(grad).map_err(failed)?) };
        let key = grad.and_then(|grad| grad.key);
        let grad = key.map(|key| golden.tensor(&key)).transpose().map_err(failed)?;
        let made = match grad {
            None => Tensor::zeros([1], device).and_then(Tensor::with_grad),
            Some(grad) => grad.copy().and_then(|grad| grad.to(device)).and_then(|grad| {
                let parameter = grad.zeros_like()?.with_grad()?;
                parameter.set_grad(grad)?;
                Ok(parameter)
            }),
        };
        parameters.push(made.map_err(|error| refused(&error))?);
    }
    Ok(parameters)
}

fn replay(golden: &Golden, case: &Json, device: Device) -> Outcome<f64> {
    let given = parameters(golden, case, device)?;
    let mut worst: f64 = 0.0;
    if case["clip_value"].is_null() {
        let max_norm = float(&case["max_norm"]).map_err(failed)?;
        let norm_type = float(&case["norm_type"]).map_err(failed)?;
        if !case["error_if_nonfinite"].is_null() {
            let how = TotalNorm { norm_type, error_if_nonfinite: true };
            if clip_grad_norm_with(&given, max_norm, how).is_ok() {
                return Err(failed("is clipped by a norm that is not finite, expected an error"));
            }
        }
        let how = TotalNorm { norm_type, error_if_nonfinite: false };
        let norm = clip_grad_norm_with(&given, max_norm, how).map_err(|error| refused(&error))?;
        let expected = parse_expected(&case["total_norm"]).map_err(failed)?;
        let told = |reason: String| failed(format!("the norm {reason}"));
        worst = worst.max(compare(golden, &norm, &expected).map_err(told)?);
    } else {
        let clip_value = float(&case["clip_value"]).map_err(failed)?;
        clip_grad_value(&given, clip_value).map_err(|error| refused(&error))?;
    }
    let clipped = case["clipped"].as_array().cloned().unwrap_or_default();
    if clipped.len() != given.len() {
        return Err(failed(format!("{} gradients are recorded for {}", clipped.len(), given.len())));
    }
    for (i, (parameter, expected)) in given.iter().zip(&clipped).enumerate() {
        let told = |reason: String| failed(format!("gradient {i} {reason}"));
        match (parameter.grad(), expected) {
            (None, Json::Null) => {}
            (Some(grad), expected) if !expected.is_null() => {
                let expected = parse_expected(expected).map_err(failed)?;
                worst = worst.max(compare(golden, &grad, &expected).map_err(told)?);
            }
            _ => return Err(told("is there or not, expected the opposite".to_owned())),
        }
    }
    Ok(worst)
}
