//! The parts of a recorded path.

use crate::golden::{Expected, index, parse_expected, text};
use crate::value::Value;
use serde_json::Value as Json;

/// A path of an optimizer.
pub(super) struct Case {
    pub(super) id: String,
    pub(super) options: Vec<(String, Option<Value>)>,
    pub(super) path: Path,
}

/// What was recorded of it.
pub(super) enum Path {
    Given(Given),
    Closed(Closed),
}

/// Steps by given gradients.
pub(super) struct Given {
    pub(super) parameters: Vec<Expected>,
    /// All gradients of each parameter.
    pub(super) grads: Vec<Expected>,
    /// Each parameter before the first step and after each.
    pub(super) path: Vec<Expected>,
    /// What is kept for each parameter at the end.
    pub(super) state: Vec<Vec<(String, Expected)>>,
    /// A parameter that has no gradient at some steps.
    pub(super) missing: Option<(usize, Vec<usize>)>,
    /// Where the second group begins, and its share of the learning rate.
    pub(super) split: Option<(usize, f64)>,
}

/// Steps down a function.
pub(super) struct Closed {
    pub(super) problem: String,
    pub(super) matrix: Expected,
    pub(super) vector: Expected,
    pub(super) path: Expected,
    pub(super) losses: Vec<f64>,
    pub(super) counters: Vec<(String, u64)>,
}

/// A call that must be refused.
pub(super) struct ErrorCase {
    pub(super) id: String,
    pub(super) options: Vec<(String, Option<Value>)>,
    pub(super) pattern: String,
}

pub(super) fn parse_case(json: &Json) -> Result<Case, String> {
    let path = match json["kind"].as_str() {
        Some("given_grads") => Path::Given(parse_given(json)?),
        Some("closed_loop") => Path::Closed(parse_closed(json)?),
        _ => return Err(format!("kind is {}, expected \"given_grads\" or \"closed_loop\"", json["kind"])),
    };
    Ok(Case { id: text(&json["id"])?, options: parse_options(&json["kwargs"]), path })
}

pub(super) fn parse_error(json: &Json) -> Result<ErrorCase, String> {
    let pattern = json["error_regex"].as_str().unwrap_or_default().to_owned();
    Ok(ErrorCase { id: text(&json["id"])?, options: parse_options(&json["kwargs"]), pattern })
}

/// Options; `None` for those of a kind that has no form here, such as tensors.
fn parse_options(json: &Json) -> Vec<(String, Option<Value>)> {
    let pairs = json.as_object().into_iter().flatten();
    pairs.map(|(name, value)| (name.clone(), Value::parse(value).ok())).collect()
}

fn list<T>(json: &Json, parse: impl Fn(&Json) -> Result<T, String>) -> Result<Vec<T>, String> {
    json.as_array().into_iter().flatten().map(parse).collect()
}

fn parse_given(json: &Json) -> Result<Given, String> {
    let state = |json: &Json| {
        let pairs = json.as_object().into_iter().flatten().filter(|(_, value)| value["t"].is_string());
        pairs.map(|(name, value)| Ok((name.clone(), parse_expected(value)?))).collect()
    };
    let missing = match &json["missing"] {
        Json::Null => None,
        missing => Some((index(&missing["param"])?, list(&missing["steps"], index)?)),
    };
    let split = match &json["groups"] {
        Json::Null => None,
        groups => {
            let factor = groups["second_group_lr_factor"].as_f64();
            Some((index(&groups["split"])?, factor.ok_or("the second group has no factor")?))
        }
    };
    Ok(Given {
        parameters: list(&json["params"], parse_expected)?,
        grads: list(&json["grads"], parse_expected)?,
        path: list(&json["traj"], parse_expected)?,
        state: list(&json["state"], state)?,
        missing,
        split,
    })
}

fn parse_closed(json: &Json) -> Result<Closed, String> {
    let counters = json["counters"].as_object().into_iter().flatten();
    let counter = |(name, value): (&String, &Json)| {
        let count = value.as_u64().ok_or_else(|| format!("{name} is {value}, expected a count"))?;
        Ok((name.clone(), count))
    };
    Ok(Closed {
        problem: text(&json["problem"])?,
        matrix: parse_expected(&json["A"])?,
        vector: parse_expected(&json["b"])?,
        path: parse_expected(&json["x"])?,
        losses: list(&json["f"], crate::value::float)?,
        counters: counters.map(counter).collect::<Result<_, String>>()?,
    })
}
