//! What a recorded call passes.

use crate::golden::{dtype, index, text};
use cresset_tensor::{DType, Scalar};
use serde_json::Value as Json;

/// One argument, or a part of one.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    None,
    Scalar(Scalar),
    Text(String),
    Tensor(Described),
    /// The very same tensor as an earlier input.
    Same(usize),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    DType(DType),
    Device(String),
    MemoryFormat(String),
    Slice([Option<i64>; 3]),
    Ellipsis,
}

/// A tensor that a file holds, and how it lies in memory.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) key: String,
    pub(crate) number: usize,
    pub(crate) requires_grad: bool,
    pub(crate) strides: Option<Vec<usize>>,
    pub(crate) offset: usize,
}

impl Value {
    pub(crate) fn parse(json: &Json) -> Result<Value, String> {
        if json.is_null() {
            return Ok(Value::None);
        }
        let object = json.as_object().ok_or_else(|| format!("unknown value {json}"))?;
        // Tensors have further members; everything else has one that names its kind.
        if object.contains_key("t") {
            return Ok(Value::Tensor(Described::parse(json)?));
        }
        let Some((kind, inner)) = object.iter().next() else { return Err(format!("unknown value {json}")) };
        let unknown = || format!("unknown value {json}");
        Ok(match kind.as_str() {
            "b" => Value::Scalar(Scalar::Bool(inner.as_bool().ok_or_else(unknown)?)),
            "i" => Value::Scalar(Scalar::Int(inner.as_i64().ok_or_else(unknown)?)),
            "f" => Value::Scalar(Scalar::Float(float(inner)?)),
            "s" => Value::Text(text(inner)?),
            "ref" => Value::Same(index(inner)?),
            "l" | "u" => {
                let list = inner.as_array().ok_or_else(unknown)?;
                let list = list.iter().map(Value::parse).collect::<Result<_, _>>()?;
                if kind == "u" { Value::Tuple(list) } else { Value::List(list) }
            }
            "dtype" => Value::DType(dtype(&text(inner)?)?),
            "device" => Value::Device(text(inner)?),
            "memory_format" => Value::MemoryFormat(text(inner)?),
            "slice" => {
                let part = |i: usize| match Value::parse(&inner[i]) {
                    Ok(Value::None) => Ok(None),
                    Ok(Value::Scalar(Scalar::Int(number))) => Ok(Some(number)),
                    _ => inner[i].as_i64().map(Some).ok_or_else(unknown),
                };
                Value::Slice([part(0)?, part(1)?, part(2)?])
            }
            "ellipsis" => Value::Ellipsis,
            _ => return Err(unknown()),
        })
    }

    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Scalar(Scalar::Bool(_)) => "a bool",
            Value::Scalar(Scalar::Int(_)) => "an int",
            Value::Scalar(Scalar::Float(_)) => "a float",
            Value::Text(_) => "a text",
            Value::Tensor(_) | Value::Same(_) => "a tensor",
            Value::List(_) => "a list",
            Value::Tuple(_) => "a tuple",
            Value::DType(_) => "a dtype",
            Value::Device(_) => "a device",
            Value::MemoryFormat(_) => "a memory format",
            Value::Slice(_) => "a slice",
            Value::Ellipsis => "an ellipsis",
        }
    }
}

impl Described {
    fn parse(json: &Json) -> Result<Described, String> {
        Ok(Described {
            key: text(&json["t"])?,
            number: index(&json["k"])?,
            requires_grad: json["rg"] == true,
            strides: json["stride"].as_array().map(|list| list.iter().map(index).collect()).transpose()?,
            offset: json["offset"].as_u64().unwrap_or(0) as usize,
        })
    }
}

pub(crate) fn float(json: &Json) -> Result<f64, String> {
    match json.as_str() {
        Some("nan") => Ok(f64::NAN),
        Some("inf") => Ok(f64::INFINITY),
        Some("-inf") => Ok(f64::NEG_INFINITY),
        _ => json.as_f64().ok_or_else(|| format!("expected a float, found {json}")),
    }
}
