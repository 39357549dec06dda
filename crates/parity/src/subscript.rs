//! What stands between brackets in Python, as an index here.

use crate::arguments::{FromValue, Tensors};
use crate::value::Value;
use cresset_tensor::indexing::{Indexer, Slice};
use cresset_tensor::{Scalar, Tensor};
use std::borrow::Cow;

/// A whole index: the parts of a tuple, or what stands alone.
pub(crate) struct Subscript(pub(crate) Vec<Indexer<'static>>);

impl FromValue for Subscript {
    const EXPECTED: &'static str = "an index";

    fn from_value(value: &Value, tensors: &Tensors) -> Option<Subscript> {
        let parts = match value {
            Value::Tuple(parts) => parts.iter().map(|part| indexer(part, tensors)).collect(),
            alone => indexer(alone, tensors).map(|part| vec![part]),
        };
        parts.map(Subscript)
    }
}

fn indexer(part: &Value, tensors: &Tensors) -> Option<Indexer<'static>> {
    Some(match part {
        Value::None => Indexer::NewAxis,
        Value::Ellipsis => Indexer::Ellipsis,
        Value::Scalar(Scalar::Int(number)) => Indexer::At(*number),
        Value::Scalar(Scalar::Bool(truth)) => Indexer::Truth(*truth),
        Value::Slice([start, stop, step]) => {
            Indexer::Slice(Slice { start: *start, stop: *stop, step: step.unwrap_or(1) })
        }
        Value::List(_) | Value::Tuple(_) => Indexer::Tensor(Cow::Owned(literal(part)?)),
        other => Indexer::Tensor(Cow::Owned(Tensor::from_value(other, tensors)?)),
    })
}

/// Nested lists of ints or of bools as a tensor.
fn literal(list: &Value) -> Option<Tensor> {
    let (mut shape, mut inner) = (Vec::new(), list);
    while let Value::List(list) | Value::Tuple(list) = inner {
        shape.push(list.len());
        let Some(first) = list.first() else { break };
        inner = first;
    }
    let mut elements = Vec::new();
    flatten(list, &mut elements)?;
    if !elements.is_empty() && elements.iter().all(|element| matches!(element, Scalar::Bool(_))) {
        let truths: Vec<bool> = elements.iter().map(|element| element.as_i64() != 0).collect();
        return Tensor::from_slice(&truths, shape).ok();
    }
    let numbers: Vec<i64> = elements.iter().map(|element| element.as_i64()).collect();
    Tensor::from_slice(&numbers, shape).ok()
}

fn flatten(value: &Value, to: &mut Vec<Scalar>) -> Option<()> {
    match value {
        Value::List(list) | Value::Tuple(list) => list.iter().try_for_each(|value| flatten(value, to)),
        Value::Scalar(scalar @ (Scalar::Int(_) | Scalar::Bool(_))) => {
            to.push(*scalar);
            Some(())
        }
        _ => None,
    }
}
