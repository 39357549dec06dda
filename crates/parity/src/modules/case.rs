//! What is recorded of a module.

use crate::golden::{
    BadFile, Expected, Golden, Leaf, Passed, collect_leaves, dtype, numbered, parse_expected, text, told_all,
};
use crate::value::Value;
use cresset_tensor::DType;
use serde_json::Value as Json;
use std::path::Path;

/// Inputs that were not numbered are numbered from here on.
const NOT_NUMBERED: usize = 1 << 16;

/// One file of cases for one module.
pub(super) struct Recorded {
    pub(super) name: String,
    pub(super) golden: Golden,
    pub(super) cases: Vec<Case>,
    pub(super) errors: Vec<ErrorCase>,
}

/// One module, one call of it, and what it gave.
pub(super) struct Case {
    pub(super) id: String,
    pub(super) dtype: DType,
    pub(super) training: bool,
    pub(super) constructor: Passed,
    pub(super) passed: Passed,
    /// Keys of tensors by name: what is loaded before.
    pub(super) state: Vec<(String, String)>,
    /// The names of the parameters, in order.
    pub(super) parameters: Vec<String>,
    pub(super) outputs: Vec<Leaf>,
    pub(super) grads: Vec<(usize, Expected)>,
    pub(super) parameter_grads: Vec<(String, Expected)>,
    /// Buffers after the call.
    pub(super) state_after: Vec<(String, Expected)>,
}

/// A module that cannot be made, or not be called.
pub(super) struct ErrorCase {
    pub(super) id: String,
    pub(super) constructor: Passed,
    pub(super) passed: Passed,
    /// Whether making it is refused already.
    pub(super) on_construction: bool,
    /// Whether torch refused the types of the arguments.
    pub(super) of_types: bool,
}

impl Recorded {
    /// Reads `path`, and the tensors beside it. `None` if it is of another suite.
    pub(super) fn read(path: &Path) -> Result<Option<Recorded>, BadFile> {
        let Some((json, golden)) = Golden::open(path, "module")? else { return Ok(None) };
        let parse = || {
            Ok(Recorded {
                name: text(&json["module"])?,
                golden,
                cases: told_all(&json["cases"], parse_case)?,
                errors: told_all(&json["errors"], parse_error)?,
            })
        };
        parse().map(Some).map_err(|reason| BadFile::new(path, reason))
    }
}

fn parse_case(json: &Json) -> Result<Case, String> {
    let mut outputs = Vec::new();
    collect_leaves(&json["out"], &mut outputs)?;
    let names = |list: &Json| list.as_array().into_iter().flatten().map(text).collect::<Result<_, _>>();
    let key = |(name, key): (&String, &Json)| Ok::<_, String>((name.clone(), text(key)?));
    Ok(Case {
        id: text(&json["id"])?,
        dtype: dtype(&text(&json["dtype"])?)?,
        training: json["training"] == true,
        constructor: parse_passed(json, "ctor_args", "ctor_kwargs")?,
        passed: parse_passed(json, "args", "kwargs")?,
        state: members(&json["state"]).map(key).collect::<Result<_, _>>()?,
        parameters: names(&json["params"])?,
        outputs,
        grads: numbered(&json["grads"], "k")?,
        parameter_grads: expected_by_name(&json["param_grads"])?,
        state_after: expected_by_name(&json["state_after"])?,
    })
}

fn parse_error(json: &Json) -> Result<ErrorCase, String> {
    let on = text(&json["on"])?;
    Ok(ErrorCase {
        id: text(&json["id"])?,
        constructor: parse_passed(json, "ctor_args", "ctor_kwargs")?,
        passed: parse_passed(json, "args", "kwargs")?,
        on_construction: on == "CONSTRUCTION_ERROR",
        of_types: json["error_type"] == "TypeError",
    })
}

fn members(json: &Json) -> impl Iterator<Item = (&String, &Json)> {
    json.as_object().into_iter().flatten()
}

/// Tensors to compare with, given by their key alone or with what is known of their errors.
fn expected_by_name(json: &Json) -> Result<Vec<(String, Expected)>, String> {
    let each = |(name, json): (&String, &Json)| {
        let expected = match json.as_str() {
            Some(key) => Expected { key: Some(key.to_owned()), noise: 0.0, ill: false },
            None => parse_expected(json)?,
        };
        Ok((name.clone(), expected))
    };
    members(json).map(each).collect()
}

fn parse_passed(json: &Json, args: &str, kwargs: &str) -> Result<Passed, String> {
    let mut next = NOT_NUMBERED;
    let mut parse = |json: &Json| {
        let mut json = json.clone();
        number(&mut json, &mut next);
        Value::parse(&json)
    };
    let by_position =
        json[args].as_array().into_iter().flatten().map(&mut parse).collect::<Result<_, _>>()?;
    let by_name = members(&json[kwargs]).map(|(name, json)| Ok((name.clone(), parse(json)?)));
    let by_name = by_name.collect::<Result<_, String>>()?;
    Ok(Passed { args: by_position, kwargs: by_name, shared: false })
}

/// Numbers the tensors that have no number: those of constructors and of calls that fail.
fn number(json: &mut Json, next: &mut usize) {
    match json {
        Json::Object(object) if object.contains_key("t") => {
            object.entry("k").or_insert_with(|| {
                *next += 1;
                (*next).into()
            });
        }
        Json::Object(object) => object.values_mut().for_each(|inner| number(inner, next)),
        Json::Array(list) => list.iter_mut().for_each(|inner| number(inner, next)),
        _ => {}
    }
}
