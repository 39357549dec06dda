//! The register of modules: how each recorded one is made and called here, a file per family.

mod activation;
mod case;
mod linear;
mod replay;

pub use replay::{MODULES, replay_folder};

use crate::arguments::Arguments;
use cresset_nn::{Forward, Module, Tensors};
use cresset_tensor::{Result, Tensor};
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

type Call = dyn Fn(&Arguments<'_>) -> Result<Vec<Tensor>>;

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
        call: impl Fn(&M, &Arguments<'_>) -> Result<O> + 'static,
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
static FAMILIES: &[(&str, &[Entry])] = &[("activation", activation::MODULES), ("linear", linear::MODULES)];

/// The module that torch calls `name`, and its family.
pub fn find(name: &str) -> Option<(&'static str, &'static Entry)> {
    let mut all =
        FAMILIES.iter().flat_map(|(family, entries)| entries.iter().map(move |entry| (*family, entry)));
    all.find(|(_, entry)| entry.name == name)
}
