//! Operators by their public names, and the arguments they are called with.

use super::cursor::{Cursor, Read};
use super::names::Names;
use crate::golden::Passed;
use crate::ops::{self, Entry};
use crate::value::Value;
use cresset_tensor::Scalar;
use serde_json::Value as Json;

/// An operator of the register, in one of its forms.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) entry: &'static Entry,
    /// Whether its first argument is changed.
    pub(super) in_place: bool,
}

/// Operators whose public function has another name.
const FUNCTIONS: [(&str, &str); 4] = [
    ("cross_entropy_loss", "nn.functional.cross_entropy"),
    ("nll_loss_nd", "nn.functional.nll_loss"),
    ("index", "__getitem__"),
    ("_softmax", "softmax"),
];

/// Operators that the register knows with their first two arguments the other way round.
const SWAPPED: [&str; 4] = ["where", "embedding", "embedding_bag", "einsum"];

impl Operation {
    /// The operator called `aten::add`, `add` or `nn.functional.relu`; one that ends in `_` changes its
    /// first argument.
    pub(super) fn find(at: &Cursor<'_>, passed: &mut Passed) -> Read<Operation> {
        let name = at.text()?;
        let plain = name.strip_prefix("aten::").unwrap_or(name);
        if SWAPPED.contains(&plain.trim_start_matches("nn.functional.")) && passed.args.len() > 1 {
            passed.args.swap(0, 1);
        }
        if let Some(entry) = find(plain, passed) {
            return Ok(Operation { entry, in_place: false });
        }
        let changed = plain.strip_suffix('_').and_then(|base| find(base, passed));
        match changed.filter(|entry| entry.change().is_some()) {
            Some(entry) => Ok(Operation { entry, in_place: true }),
            None => at.fault(format_args!("there is no operator {name:?} that programs can call")),
        }
    }
}

fn find(name: &str, passed: &Passed) -> Option<&'static Entry> {
    let function = FUNCTIONS.iter().find(|(operator, _)| *operator == name).map(|(_, function)| *function);
    let form = form(name, passed).and_then(|form| ops::find(&format!("{name}.{form}")));
    form.or_else(|| ops::find(function.unwrap_or(name)))
        .or_else(|| ops::find(&format!("nn.functional.{name}")))
}

/// Which of several functions of one name the arguments are for.
fn form(name: &str, passed: &Passed) -> Option<&'static str> {
    let given = |at: usize, name: &str| {
        let by_name = || passed.kwargs.iter().find(|(given, _)| given == name).map(|(_, value)| value);
        passed.args.get(at).or_else(by_name).filter(|value| !matches!(value, Value::None))
    };
    let is_list = |value: Option<&Value>| matches!(value, Some(Value::List(_) | Value::Tuple(_)));
    match name {
        "div" => given(usize::MAX, "rounding_mode").is_none().then_some("no_rounding_mode"),
        "max" | "min" => Some(match given(1, "dim").or_else(|| given(1, "other")) {
            None => "reduction_no_dim",
            Some(Value::Same(_)) => "binary",
            Some(_) => "reduction_with_dim",
        }),
        "split" => is_list(given(1, "split_size_or_sections")).then_some("list_args"),
        "squeeze" => is_list(given(1, "dim")).then_some("multiple"),
        _ => None,
    }
}

/// The members `args` and `kwargs` of a statement.
pub(super) fn passed(at: &Cursor<'_>, names: &Names) -> Read<Passed> {
    let mut passed = Passed::default();
    if let Some(args) = at.member("args") {
        passed.args = args.list()?.iter().map(|one| value(one, names)).collect::<Read<_>>()?;
    }
    if let Some(kwargs) = at.member("kwargs") {
        for (name, one) in kwargs.members()? {
            passed.kwargs.push((name.to_owned(), value(&one, names)?));
        }
    }
    Ok(passed)
}

/// A text is a tensor's name; numbers, truths and lists are themselves; all else has a member that
/// says what it is.
fn value(at: &Cursor<'_>, names: &Names) -> Read<Value> {
    let list = |list: Cursor<'_>| list.list()?.iter().map(|one| value(one, names)).collect::<Read<_>>();
    match at.json {
        Json::String(_) => Ok(Value::Same(names.known(at)?)),
        Json::Null => Ok(Value::None),
        Json::Bool(truth) => Ok(Value::Scalar(Scalar::Bool(*truth))),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Ok(Value::Scalar(Scalar::Int(int))),
            None => Ok(Value::Scalar(Scalar::Float(at.number()?))),
        },
        Json::Array(_) => list(at.clone()).map(Value::List),
        Json::Object(_) => {
            if let Some(inner) = at.member("l") {
                return list(inner).map(Value::List);
            }
            if let Some(inner) = at.member("u") {
                return list(inner).map(Value::Tuple);
            }
            match Value::parse(at.json) {
                Ok(Value::Tensor(_) | Value::Same(_)) => at.fault("tensors are given by their names"),
                Ok(value) => Ok(value),
                Err(reason) => at.fault(reason),
            }
        }
    }
}
