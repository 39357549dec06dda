//! The register of optimizers: each by torch's name, made from recorded options.

use crate::replay::{Outcome, Verdict, failed};
use crate::value::Value;
use cresset_optim::{
    AdadeltaOptions, AdafactorOptions, AdagradOptions, AdamOptions, AdamWOptions, AdamaxOptions, Algorithm,
    AsgdOptions, Descent, Group, Implementation, Lbfgs, LbfgsOptions, MuonOptions, NadamOptions, Optimizer,
    Options, RadamOptions, RmspropOptions, RpropOptions, SgdOptions,
};
use cresset_tensor::{Error, Scalar, Tensor};

/// What is to be made.
pub(crate) struct Wanted<'a> {
    pub(crate) options: &'a [(String, Option<Value>)],
    pub(crate) implementation: Implementation,
    /// The parameters of each group, and its share of the learning rate.
    pub(crate) groups: Vec<(Vec<Tensor>, f64)>,
}

/// Why an optimizer was not made.
pub(crate) enum Refusal {
    /// An option that is not known, or of a kind that cannot be written here.
    Unknown(String),
    /// What the optimizer itself said.
    Error(Error),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Unknown(reason) => f.write_str(reason),
            Refusal::Error(error) => error.fmt(f),
        }
    }
}

impl Refusal {
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Refusal::Unknown(reason) => Verdict::Unsupported(reason),
            Refusal::Error(error) => failed(error.to_string()),
        }
    }
}

type Made = Result<Box<dyn Optimizer>, Refusal>;

/// An optimizer of the register.
pub(crate) struct Entry {
    name: &'static str,
    pub(crate) implementations: &'static [Implementation],
    pub(crate) make: fn(&Wanted<'_>) -> Made,
}

const ALL: &[Implementation] = &[Implementation::Fused, Implementation::Foreach, Implementation::Single];

static OPTIMIZERS: &[Entry] = &[
    Entry { name: "SGD", implementations: ALL, make: descent::<SgdOptions> },
    Entry { name: "Adam", implementations: ALL, make: descent::<AdamOptions> },
    Entry { name: "AdamW", implementations: ALL, make: descent::<AdamWOptions> },
    Entry { name: "NAdam", implementations: ALL, make: descent::<NadamOptions> },
    Entry { name: "RAdam", implementations: ALL, make: descent::<RadamOptions> },
    Entry { name: "Adamax", implementations: ALL, make: descent::<AdamaxOptions> },
    Entry { name: "Adagrad", implementations: ALL, make: descent::<AdagradOptions> },
    Entry { name: "Adadelta", implementations: ALL, make: descent::<AdadeltaOptions> },
    Entry { name: "RMSprop", implementations: ALL, make: descent::<RmspropOptions> },
    Entry { name: "Rprop", implementations: ALL, make: descent::<RpropOptions> },
    Entry { name: "ASGD", implementations: ALL, make: descent::<AsgdOptions> },
    Entry {
        name: "Adafactor",
        implementations: &[Implementation::Foreach, Implementation::Single],
        make: descent::<AdafactorOptions>,
    },
    Entry { name: "Muon", implementations: &[Implementation::Single], make: descent::<MuonOptions> },
    Entry { name: "LBFGS", implementations: &[Implementation::Single], make: lbfgs },
];

/// The optimizer that torch calls `name`.
pub(crate) fn find(name: &str) -> Outcome<&'static Entry> {
    let found = OPTIMIZERS.iter().find(|entry| entry.name == name);
    found.ok_or_else(|| Verdict::Unsupported("optimizer".to_owned()))
}

fn descent<A: Algorithm + Default>(wanted: &Wanted<'_>) -> Made {
    let mut options: A = read(wanted.options)?;
    let name = match wanted.implementation {
        Implementation::Fused => "fused",
        Implementation::Foreach => "foreach",
        Implementation::Single => "single",
    };
    if options.entries().iter().any(|(known, _)| *known == "implementation") {
        let value = cresset_optim::Value::Text(name.to_owned());
        options.set("implementation", &value).map_err(Refusal::Error)?;
    }
    let group = |(parameters, factor): &(Vec<Tensor>, f64)| {
        let mut options = options.clone();
        options.set_lr(options.lr() * factor);
        Group { parameters: parameters.clone(), options }
    };
    let groups = wanted.groups.iter().map(group).collect();
    Ok(Box::new(Descent::with_groups(groups).map_err(Refusal::Error)?))
}

fn lbfgs(wanted: &Wanted<'_>) -> Made {
    let options: LbfgsOptions = read(wanted.options)?;
    let parameters = wanted.groups.iter().flat_map(|(parameters, _)| parameters).cloned().collect();
    Ok(Box::new(Lbfgs::new(parameters, options).map_err(Refusal::Error)?))
}

fn read<O: Options + Default>(recorded: &[(String, Option<Value>)]) -> Result<O, Refusal> {
    let mut options = O::default();
    for (name, value) in recorded {
        if !options.entries().iter().any(|(known, _)| known == name) {
            return Err(Refusal::Unknown(format!("option {name}")));
        }
        // What has no value here is refused by the compiler.
        let refused = || Refusal::Error(unreadable::<O>(name));
        let value = value.as_ref().and_then(option).ok_or_else(refused)?;
        options.set(name, &value).map_err(Refusal::Error)?;
    }
    Ok(options)
}

fn unreadable<O: Options>(name: &str) -> Error {
    let text = format_args!("{name} is of another kind, expected a number, a bool, a text or a list");
    Error::new(cresset_tensor::Cause::Argument, O::NAME, text)
}

fn option(value: &Value) -> Option<cresset_optim::Value> {
    use cresset_optim::Value as Option;
    Some(match value {
        Value::None => Option::None,
        Value::Scalar(Scalar::Bool(value)) => Option::Bool(*value),
        Value::Scalar(Scalar::Int(value)) => Option::Int(*value),
        Value::Scalar(Scalar::Float(value)) => Option::Float(*value),
        Value::Text(text) => Option::Text(text.clone()),
        Value::List(list) | Value::Tuple(list) => {
            Option::List(list.iter().map(option).collect::<std::option::Option<_>>()?)
        }
        _ => return None,
    })
}
