//! Models made from their description: a chain of layers, or a transformer.

use super::case::Case;
use super::transformer::Transformer;
use super::words::Call;
use crate::arguments::{Arguments, Tensors};
use crate::golden::{Golden, Passed};
use crate::modules::{self, Made};
use crate::replay::{Outcome, Verdict, refused};
use crate::value::{Described, Value};
use cresset_nn::{Members, Module};
use cresset_tensor::{Device, Result, Scalar, Tensor};
use std::sync::Arc;

/// A model that is trained: from inputs to the scores of classes.
pub(super) trait Model: Module {
    fn scores(&self, x: &Tensor) -> Outcome<Tensor>;

    /// Whether the loss does not depend on a parameter: its gradient is rounding and nothing else.
    fn is_idle(&self, _parameter: &str) -> bool {
        false
    }
}

/// The model that a case describes, with weights of its own.
pub(super) fn make(golden: &Golden, case: &Case, device: Device) -> Outcome<Arc<dyn Model>> {
    if case.model.contains("transformer") {
        return Ok(Arc::new(Transformer::make(golden, case)?));
    }
    Ok(Arc::new(Chain::parse(&case.model, device)?))
}

/// Layers one after the other, those with a name under their name.
struct Chain {
    links: Vec<Link>,
    device: Device,
}

struct Link {
    name: String,
    class: String,
    made: Made,
    /// Whether it is a recurrent layer of which the last state counts.
    last_state: bool,
}

impl Chain {
    fn parse(text: &str, device: Device) -> Outcome<Chain> {
        let layers = text.split(';').next().unwrap_or_default().split("->");
        let links = layers.map(|layer| Link::parse(layer.trim(), device)).collect::<Outcome<_>>()?;
        Ok(Chain { links, device })
    }
}

impl Link {
    /// E.g. `fc1 Linear(16,32)`, `ReLU`, `lstm LSTM(5,12,batch_first) last hidden`.
    fn parse(text: &str, device: Device) -> Outcome<Link> {
        let unknown = || Verdict::Unsupported(format!("layer {text:?}"));
        let (first, rest) = Call::parse(text).ok_or_else(unknown)?;
        let (name, call, remark) = match modules::find(&first.name) {
            Some(_) => (String::new(), first, rest),
            None => {
                let (call, remark) = Call::parse(rest).ok_or_else(unknown)?;
                (first.name, call, remark)
            }
        };
        let (_, entry) = modules::find(&call.name).ok_or_else(unknown)?;
        let passed = call.passed(full_name, meaning).ok_or_else(unknown)?;
        let made = modules::make(entry, &Arguments::new(&passed, &Tensors::new(), device))?;
        let last_state = match remark {
            "" | "(train mode)" => false,
            "last hidden" => true,
            _ => return Err(unknown()),
        };
        Ok(Link { name, class: call.name, made, last_state })
    }

    fn call(&self, x: &Tensor, device: Device) -> Outcome<Tensor> {
        let told = |error| refused(&error);
        // Descriptions leave out that what is left of an image becomes a row.
        let x = if self.class == "Linear" && x.dim() > 2 && !self.last_state {
            x.flatten(1, -1).map_err(told)?
        } else {
            x.clone()
        };
        let described =
            Described { key: String::new(), number: 0, requires_grad: false, strides: None, offset: 0 };
        let passed = Passed { args: vec![Value::Tensor(described)], ..Passed::default() };
        let outputs = modules::call(&self.made, &Arguments::new(&passed, &Tensors::from([(0, x)]), device))?;
        if self.last_state {
            return last_state(&outputs).map_err(told);
        }
        match outputs.as_slice() {
            [output] => Ok(output.clone()),
            _ => Err(Verdict::Unsupported(format!("{} outputs of {}", outputs.len(), self.class))),
        }
    }
}

/// The state of the last layer after the last step; recurrent layers give it second.
fn last_state(outputs: &[Tensor]) -> Result<Tensor> {
    outputs.get(1).unwrap_or(&outputs[0]).select(0, -1)
}

/// What is written shorter than torch's name.
fn full_name(name: &str) -> &str {
    match name {
        "pad" => "padding",
        "layers" => "num_layers",
        name => name,
    }
}

/// What a word says that is no value.
fn meaning(word: &str) -> Option<(&'static str, Value)> {
    let yes = |yes| Value::Scalar(Scalar::Bool(yes));
    Some(match word {
        "batch_first" => ("batch_first", yes(true)),
        "bidirectional" => ("bidirectional", yes(true)),
        "no bias" => ("bias", yes(false)),
        "erf" => ("approximate", Value::Text("none".to_owned())),
        "tanh" => ("approximate", Value::Text("tanh".to_owned())),
        _ => return None,
    })
}

impl Module for Chain {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        for link in self.links.iter().filter(|link| !link.name.is_empty()) {
            members.module(&link.name, &link.made.module);
        }
    }
}

impl Model for Chain {
    fn scores(&self, x: &Tensor) -> Outcome<Tensor> {
        self.links.iter().try_fold(x.clone(), |x, link| link.call(&x, self.device))
    }

    /// A batch norm takes away what the bias before it adds.
    fn is_idle(&self, parameter: &str) -> bool {
        self.links.windows(2).any(|pair| {
            pair[1].class.starts_with("BatchNorm") && parameter == format!("{}.bias", pair[0].name)
        })
    }
}
