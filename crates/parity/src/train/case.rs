//! What is recorded of a training run.

use crate::golden::{dtype, index, text};
use cresset_tensor::DType;
use serde_json::Value as Json;

/// One model, trained by one optimizer.
pub(super) struct Case {
    pub(super) id: String,
    pub(super) dtype: DType,
    /// The model, the optimizer and the loss, in words.
    pub(super) model: String,
    pub(super) optimizer: String,
    pub(super) loss: String,
    /// Keys of tensors: of the state before, by name, and of the batches.
    pub(super) init: Vec<(String, String)>,
    pub(super) inputs: Vec<String>,
    pub(super) targets: Vec<String>,
    /// The gradients of the first step.
    pub(super) grads: Vec<(String, String)>,
    pub(super) losses: Vec<f64>,
    /// The state after the last step.
    pub(super) end: Vec<(String, String)>,
    /// How far rounding moved torch's losses and weights.
    pub(super) noise: Noise,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Noise {
    pub(super) loss: f64,
    pub(super) weights: f64,
}

pub(super) fn parse_case(json: &Json) -> Result<Case, String> {
    let losses = json["losses"].as_array().into_iter().flatten().map(crate::value::float);
    let case = Case {
        id: text(&json["id"])?,
        dtype: dtype(&text(&json["dtype"])?)?,
        model: text(&json["model"])?,
        optimizer: text(&json["optimizer"])?,
        loss: text(&json["loss"])?,
        init: by_name(&json["init"])?,
        inputs: keys(&json["x"])?,
        targets: keys(&json["y"])?,
        grads: by_name(&json["grads_step0"])?,
        losses: losses.collect::<Result<_, _>>()?,
        end: by_name(&json["final"])?,
        noise: Noise {
            loss: json["noise"]["loss"].as_f64().unwrap_or(0.0),
            weights: json["noise"]["params"].as_f64().unwrap_or(0.0),
        },
    };
    if case.inputs.is_empty() || case.inputs.len() != case.targets.len() {
        return Err(format!("there are {} inputs and {} targets", case.inputs.len(), case.targets.len()));
    }
    match index(&json["steps"])? {
        steps if steps == case.losses.len() && steps > 0 => Ok(case),
        steps => Err(format!("there are {} losses of {steps} steps", case.losses.len())),
    }
}

fn by_name(json: &Json) -> Result<Vec<(String, String)>, String> {
    let members = json.as_object().into_iter().flatten();
    members.map(|(name, key)| Ok((name.clone(), text(key)?))).collect()
}

fn keys(json: &Json) -> Result<Vec<String>, String> {
    json.as_array().into_iter().flatten().map(text).collect()
}
