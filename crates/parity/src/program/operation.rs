//! Operators by their public names, and the arguments they are called with.

use super::cursor::{Cursor, Read};
use super::names::Names;
use super::signature;
use crate::arguments::Tensors;
use crate::golden::Passed;
use crate::ops::{self, Entry};
use crate::value::Value;
use cresset_tensor::Scalar;
use serde_json::Value as Json;
use std::borrow::Cow;

/// An operator of the register, in one of its forms.
#[derive(Clone, Copy)]
pub(super) struct Operation {
    pub(super) entry: &'static Entry,
    /// Whether its first argument is changed.
    pub(super) in_place: bool,
}

/// Operators whose public function has another name.
const FUNCTIONS: [(&str, &str); 11] = [
    ("cross_entropy_loss", "nn.functional.cross_entropy"),
    ("nll_loss_nd", "nn.functional.nll_loss"),
    ("nll_loss2d", "nn.functional.nll_loss"),
    ("log_sigmoid", "nn.functional.logsigmoid"),
    ("im2col", "nn.functional.unfold"),
    ("col2im", "nn.functional.fold"),
    ("index", "__getitem__"),
    ("_softmax", "softmax"),
    ("_log_softmax", "log_softmax"),
    ("linalg_vector_norm", "linalg.vector_norm"),
    ("linalg_multi_dot", "linalg.multi_dot"),
];

/// Operators that the register knows with their first two arguments the other way round.
const SWAPPED: [&str; 2] = ["where", "einsum"];

/// Operators that take a table and numbers of its rows; the function takes the numbers first.
const TABLES: [&str; 2] = ["nn.functional.embedding", "nn.functional.embedding_bag"];

impl Operation {
    /// The operator called `aten::add`, `aten::add.Tensor`, `add` or `nn.functional.relu`; one that ends
    /// in `_` changes its first argument.
    pub(super) fn find(at: &Cursor<'_>, passed: &mut Passed) -> Read<Operation> {
        let name = at.text()?;
        let plain = name.strip_prefix("aten::").unwrap_or(name);
        let without_overload = plain.rsplit_once('.').map(|(operator, _)| operator);
        for name in [Some(plain), without_overload].into_iter().flatten() {
            if let Some(operation) = Operation::called(name, passed) {
                return Ok(operation);
            }
        }
        at.fault(format_args!("there is no operator {name:?} that programs can call"))
    }

    fn called(name: &str, passed: &mut Passed) -> Option<Operation> {
        if let Some(entry) = find(name, passed) {
            return Some(Operation { entry, in_place: false });
        }
        let entry = name.strip_suffix('_').and_then(|base| find(base, passed))?;
        entry.change().is_some().then_some(Operation { entry, in_place: true })
    }

    /// The arguments in the order that the register has them.
    pub(super) fn ordered<'a>(&self, passed: &'a Passed, tensors: &Tensors) -> Cow<'a, Passed> {
        let is_int = |value: &Value| match value {
            Value::Same(number) => tensors.get(number).is_some_and(|tensor| !tensor.dtype().is_float()),
            _ => false,
        };
        match &passed.args[..] {
            [first, second, ..] if TABLES.contains(&self.entry.name) && is_int(first) && !is_int(second) => {
                let mut ordered = passed.clone();
                ordered.args.swap(0, 1);
                Cow::Owned(ordered)
            }
            _ => Cow::Borrowed(passed),
        }
    }
}

fn find(name: &str, passed: &mut Passed) -> Option<&'static Entry> {
    let function = FUNCTIONS.iter().find(|(operator, _)| *operator == name).map(|(_, function)| *function);
    let public = function.unwrap_or(name);
    let form = form(public, passed).and_then(|form| ops::find(&format!("{public}.{form}")));
    let entry =
        form.or_else(|| ops::find(public)).or_else(|| ops::find(&format!("nn.functional.{public}")))?;
    if SWAPPED.contains(&public) && passed.args.len() > 1 {
        passed.args.swap(0, 1);
    }
    // Whether halves are computed in floats, which only the operators below the functions take.
    if name.starts_with('_') && public.ends_with("softmax") {
        passed.args.truncate(2);
    }
    signature::of_function(public, passed);
    Some(entry)
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
