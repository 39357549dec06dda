//! The register of modules: how each recorded one is made and called here, a file per family.

mod activation;
mod attention;
mod case;
mod convolution;
mod linear;
mod loss;
mod normalization;
mod pooling;
mod recurrent;
mod replay;
mod shape;

pub use replay::{MODULES, replay_folder};
pub(crate) use replay::{call, make};

use crate::arguments::Arguments;
use cresset_nn::{Forward, Module, Tensors};
use cresset_tensor::{Cause, Error, Result, Tensor};
use std::sync::Arc;

/// A module of the register.
pub struct Entry {
    /// What torch calls it.
    pub name: &'static str,
    pub(crate) make: fn(&Arguments<'_>) -> Result<Made>,
}

impl Entry {
    /// How the module `name` is made from the arguments of its constructor.
    const fn new(name: &'static str, make: fn(&Arguments<'_>) -> Result<Made>) -> Entry {
        Entry { name, make }
    }
}

type Call = dyn Fn(&Arguments<'_>) -> Result<Vec<Tensor>> + Send + Sync;

/// A module that was made, and how it is called with recorded arguments.
pub struct Made {
    pub(crate) module: Arc<dyn Module>,
    pub(crate) call: Box<Call>,
}

impl Made {
    /// A module of one tensor, called `input`, that gives one.
    fn layer(module: impl Forward<Output = Tensor>) -> Result<Made> {
        Made::with(module, |module, a| module.call(&a.get::<Tensor>(0, "input")?))
    }

    /// A module that is called in a way of its own.
    fn with<M: Module, O: Tensors>(
        module: M,
        call: impl Fn(&M, &Arguments<'_>) -> Result<O> + Send + Sync + 'static,
    ) -> Result<Made> {
        let module = Arc::new(module);
        let called = module.clone();
        Ok(Made { module, call: Box::new(move |arguments| call(&called, arguments).map(list)) })
    }
}

/// The tensors of an output, in order.
fn list(mut output: impl Tensors) -> Vec<Tensor> {
    let mut tensors = Vec::new();
    output.each(&mut |tensor| tensors.push(tensor.clone()));
    tensors
}

/// The families, each a table.
static FAMILIES: &[(&str, &[Entry])] = &[
    ("activation", activation::PLAIN),
    ("activation", activation::MODULES),
    ("attention", attention::MODULES),
    ("convolution", convolution::MODULES),
    ("linear", linear::MODULES),
    ("loss", loss::MODULES),
    ("normalization", normalization::MODULES),
    ("pooling", pooling::MODULES),
    ("recurrent", recurrent::MODULES),
    ("shape", shape::MODULES),
];

/// The module that torch calls `name`, and its family.
pub fn find(name: &str) -> Option<(&'static str, &'static Entry)> {
    let mut all =
        FAMILIES.iter().flat_map(|(family, entries)| entries.iter().map(move |entry| (*family, entry)));
    all.find(|(_, entry)| entry.name == name)
}

/// A number per dimension, or one for all.
fn dims<const D: usize>(a: &Arguments<'_>, position: usize, name: &'static str) -> Result<[usize; D]> {
    optional_dims(a, position, name)?.ok_or_else(|| unknown(name, "missing"))
}

fn dims_or<const D: usize>(
    a: &Arguments<'_>,
    position: usize,
    name: &'static str,
    default: usize,
) -> Result<[usize; D]> {
    Ok(optional_dims(a, position, name)?.unwrap_or([default; D]))
}

fn optional_dims<const D: usize>(
    a: &Arguments<'_>,
    position: usize,
    name: &'static str,
) -> Result<Option<[usize; D]>> {
    let Some(given) = a.get::<Option<Vec<i64>>>(position, name)? else { return Ok(None) };
    let sizes = given.iter().map(|&number| whole(name, number)).collect::<Result<Vec<_>>>()?;
    match sizes[..] {
        [one] => Ok(Some([one; D])),
        ref all => all.try_into().map(Some).map_err(|_| unknown(name, &format!("{all:?}"))),
    }
}

/// A number that must not be negative: a negative one is refused, as its type would here.
fn whole(name: &str, number: i64) -> Result<usize> {
    usize::try_from(number).map_err(|_| unknown(name, &number.to_string()))
}

fn unknown(name: &str, value: &str) -> Error {
    Error::new(Cause::Argument, "", format_args!("{name} cannot be {value}"))
}
