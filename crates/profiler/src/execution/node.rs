//! One node of an execution trace, as JSON.

use crate::export::quoted;
use crate::names;
use cresset_dispatch::observe::{Argument, TensorArgument};
use std::collections::HashMap;
use std::fmt::Write;

/// Numbers for nodes, tensors and storages, all from one count.
#[derive(Default)]
pub(super) struct Numbers {
    last: u64,
    tensors: HashMap<usize, u64>,
    storages: HashMap<usize, u64>,
}

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The numbers of a tensor and its storage; 0 for what has no memory.
    fn of(&mut self, tensor: &TensorArgument<'_>) -> (u64, u64, usize, String) {
        let Some(identity) = tensor.source.and_then(|source| source.identity()) else {
            return (0, 0, 0, "cpu".to_owned());
        };
        let mut number = |known: fn(&mut Numbers) -> &mut HashMap<usize, u64>, address| {
            if let Some(&number) = known(self).get(&address) {
                return number;
            }
            let number = self.next();
            known(self).insert(address, number);
            number
        };
        let one = number(|numbers| &mut numbers.tensors, identity.tensor);
        let two = number(|numbers| &mut numbers.storages, identity.storage);
        (one, two, identity.offset, identity.device.to_string())
    }
}

/// Arguments or results, as four lists of JSON that grow together.
#[derive(Clone, Default)]
pub(super) struct Values {
    values: String,
    shapes: String,
    types: String,
    strides: String,
}

impl Values {
    pub(super) fn of(results: &[TensorArgument<'_>], numbers: &mut Numbers) -> Values {
        let mut values = Values::default();
        results.iter().for_each(|result| values.push(Argument::Tensor(*result), numbers));
        values
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn push(&mut self, argument: Argument<'_>, numbers: &mut Numbers) {
        let Part { value, shape, kind, stride } = part(argument, numbers);
        for (list, text) in [
            (&mut self.values, value),
            (&mut self.shapes, shape),
            (&mut self.types, quoted(&kind)),
            (&mut self.strides, stride),
        ] {
            if !list.is_empty() {
                list.push(',');
            }
            list.push_str(&text);
        }
    }

    fn write(&self, json: &mut String) {
        let Values { values, shapes, types, strides } = self;
        let _ = write!(
            json,
            "{{\"values\":[{values}],\"shapes\":[{shapes}],\"types\":[{types}],\"strides\":[{strides}]}}"
        );
    }
}

/// One argument; all but the kind are JSON.
struct Part {
    value: String,
    shape: String,
    kind: String,
    stride: String,
}

impl Part {
    fn scalar(value: String, kind: &str) -> Part {
        Part { value, shape: "[]".to_owned(), kind: kind.to_owned(), stride: "[]".to_owned() }
    }

    /// A list of parts is a part.
    fn list(parts: impl Iterator<Item = Part>) -> Part {
        let parts: Vec<Part> = parts.collect();
        let join = |get: fn(&Part) -> &str| parts.iter().map(get).collect::<Vec<_>>().join(",");
        Part {
            value: format!("[{}]", join(|part| &part.value)),
            shape: format!("[{}]", join(|part| &part.shape)),
            kind: format!("GenericList[{}]", join(|part| &part.kind)),
            stride: format!("[{}]", join(|part| &part.stride)),
        }
    }
}

fn part(argument: Argument<'_>, numbers: &mut Numbers) -> Part {
    let truth = |value: bool| Part::scalar(value.to_string(), "Bool");
    match argument {
        Argument::Tensor(tensor) => part_of(&tensor, numbers),
        Argument::Tensors(list) => Part::list(list.iter().map(|tensor| part_of(tensor, numbers))),
        Argument::Int(value) => Part::scalar(value.to_string(), "Int"),
        Argument::Float(value) => Part::scalar(float(value), "Double"),
        Argument::Bool(value) => truth(value),
        Argument::Ints(list) => Part::list(list.iter().map(|value| Part::scalar(value.to_string(), "Int"))),
        Argument::Floats(list) => Part::list(list.iter().map(|&value| Part::scalar(float(value), "Double"))),
        Argument::Bools(list) => Part::list(list.iter().map(|&value| truth(value))),
        Argument::Text(text) => Part::scalar(quoted(text), "String"),
        Argument::Device(device) => Part::scalar(quoted(&device.to_string()), "Device"),
        Argument::None => Part::scalar("\"<None>\"".to_owned(), "None"),
    }
}

fn part_of(tensor: &TensorArgument<'_>, numbers: &mut Numbers) -> Part {
    let (number, storage, offset, device) = numbers.of(tensor);
    let elements: usize = tensor.shape.iter().product();
    let bytes = crate::pack::element_bytes(tensor.dtype);
    let list = |numbers: &[usize]| format!("{numbers:?}").replace(' ', "");
    Part {
        value: format!("[{number},{storage},{offset},{elements},{bytes},{}]", quoted(&device)),
        shape: list(tensor.shape),
        kind: format!("Tensor({})", names::dtype(tensor.dtype)),
        stride: list(tensor.strides),
    }
}

/// A float that reads back as one; JSON has no word for those that are not finite.
fn float(value: f64) -> String {
    if value.is_finite() { format!("{value:?}") } else { quoted(&value.to_string()) }
}

/// A call, from its start to its end.
#[derive(Clone, Default)]
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) name: String,
    /// The operator's signature; empty if it has none.
    pub(super) schema: &'static str,
    pub(super) parent: u64,
    pub(super) inputs: Values,
    pub(super) outputs: Values,
    /// Counts the calls from 1; 0 for the process and its threads.
    pub(super) call: u64,
    pub(super) forward_parent: u64,
    /// −1 if there is none.
    pub(super) sequence: i64,
    pub(super) scope: Scope,
    pub(super) thread: u32,
    pub(super) forward_thread: u32,
}

/// torch's kinds of calls.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Scope {
    Function = 0,
    Backward = 1,
    #[default]
    User = 7,
}

impl Node {
    /// The process itself, or one of its threads.
    pub(super) fn root(id: u64, name: &str, thread: u32) -> Node {
        Node { id, name: name.to_owned(), parent: 1, sequence: -1, thread, ..Node::default() }
    }

    pub(super) fn write(&self, json: &mut String) {
        let (id, name, parent) = (self.id, quoted(&self.name), self.parent);
        let _ = write!(json, "{{\"id\":{id},\"name\":{name},\"ctrl_deps\":{parent},\"inputs\":");
        self.inputs.write(json);
        json.push_str(",\"outputs\":");
        self.outputs.write(json);
        let attributes = [
            ("rf_id", "uint64", self.call.to_string()),
            ("fw_parent", "uint64", self.forward_parent.to_string()),
            ("seq_id", "int64", self.sequence.to_string()),
            ("scope", "uint64", (self.scope as u8).to_string()),
            ("tid", "uint64", self.thread.to_string()),
            ("fw_tid", "uint64", self.forward_thread.to_string()),
            ("op_schema", "string", quoted(self.schema)),
            ("kernel_backend", "string", "\"\"".to_owned()),
            ("kernel_file", "string", "\"\"".to_owned()),
            ("tensor_range", "string", "\"\"".to_owned()),
        ];
        json.push_str(",\"attrs\":[");
        for (i, (name, kind, value)) in attributes.into_iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let _ = write!(json, "{comma}{{\"name\":\"{name}\",\"type\":\"{kind}\",\"value\":{value}}}");
        }
        json.push_str("]}");
    }
}
