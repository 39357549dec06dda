//! The plain numbers of a [`TrainingState`] as JSON, for people to read. Floats are texts, so that every bit of them
//! comes back.

use crate::TrainingState;
use cresset_optim::GradScalerState;
use cresset_tensor::RandomState;
use serde_json::{Map, Value, json};

/// The version of what is written.
const FORMAT: u64 = 1;

/// What was read, or what is wrong and where.
pub(crate) type Parsed<T> = Result<T, String>;

/// All but tensors.
pub(crate) fn write(state: &TrainingState) -> Value {
    let TrainingState { step, epoch, batch, random, device_random, scaler, notes, .. } = state;
    let device_random: Map<String, Value> =
        device_random.iter().map(|(device, state)| (device.clone(), generator(state))).collect();
    let scaler = scaler.map(|scaler| {
        json!({
            "scale": float(scaler.scale),
            "growth_factor": float(scaler.growth_factor),
            "backoff_factor": float(scaler.backoff_factor),
            "growth_interval": scaler.growth_interval,
            "growth_tracker": scaler.growth_tracker,
        })
    });
    json!({
        "format": FORMAT,
        "step": step,
        "epoch": epoch,
        "batch": batch,
        "random": generator(random),
        "device_random": device_random,
        "scaler": scaler,
        "notes": notes,
    })
}

fn generator(state: &RandomState) -> Value {
    json!({"seed": state.seed, "offset": state.offset})
}

fn float(value: f64) -> Value {
    Value::String(format!("{value:?}"))
}

/// The state in `value`, without an optimizer and a schedule.
pub(crate) fn read(value: &Value) -> Parsed<TrainingState> {
    let format = count(value, "format")?;
    if format != FORMAT {
        return Err(format!("format {format} is not known, only {FORMAT}"));
    }
    // Older ones have none of devices.
    let devices = value.get("device_random").and_then(Value::as_object).into_iter().flatten();
    let device_random = devices.map(|(device, state)| Ok((device.clone(), read_generator(state)?)));
    let scaler = member(value, "scaler")?;
    let notes = member(value, "notes")?.as_object().ok_or("notes: expected an object")?;
    let note = |(name, text): (&String, &Value)| match text {
        Value::String(text) => Ok((name.clone(), text.clone())),
        _ => Err(format!("notes.{name}: expected a text")),
    };
    Ok(TrainingState {
        step: count(value, "step")?,
        epoch: count(value, "epoch")?,
        batch: count(value, "batch")?,
        random: read_generator(member(value, "random")?)?,
        device_random: device_random.collect::<Parsed<_>>()?,
        scaler: if scaler.is_null() { None } else { Some(read_scaler(scaler)?) },
        notes: notes.iter().map(note).collect::<Parsed<_>>()?,
        ..TrainingState::default()
    })
}

fn read_generator(value: &Value) -> Parsed<RandomState> {
    Ok(RandomState { seed: count(value, "seed")?, offset: count(value, "offset")? })
}

fn read_scaler(value: &Value) -> Parsed<GradScalerState> {
    let float = |name: &str| {
        let text = member(value, name)?.as_str().and_then(|text| text.parse().ok());
        text.ok_or_else(|| format!("scaler.{name}: expected a float as text"))
    };
    Ok(GradScalerState {
        scale: float("scale")?,
        growth_factor: float("growth_factor")?,
        backoff_factor: float("backoff_factor")?,
        growth_interval: count(value, "growth_interval")?,
        growth_tracker: count(value, "growth_tracker")?,
    })
}

fn member<'a>(value: &'a Value, name: &str) -> Parsed<&'a Value> {
    value.get(name).ok_or_else(|| format!("{name} is missing"))
}

fn count(value: &Value, name: &str) -> Parsed<u64> {
    member(value, name)?.as_u64().ok_or_else(|| format!("{name}: expected a count"))
}
