//! The register: how each recorded operator is called here, a file per family.

mod activation;
mod binary;
mod convolution;
mod factory;
mod index;
mod join;
mod loss;
mod matrix;
mod normalization;
mod reduction;
mod shape;
mod unary;

use crate::arguments::Arguments;
use cresset_tensor::{Result, Tensor};
use std::collections::HashMap;
use std::sync::LazyLock;

/// An operator of the register.
pub struct Entry {
    /// What torch calls it; with its form, where that is another function here.
    pub name: &'static str,
    call: Call,
    change: Option<Change>,
    chosen: Option<Chosen>,
}

/// What an operator that chooses finds at the places it gives.
type Chosen = fn(&Arguments<'_>, &[Tensor]) -> Result<Tensor>;

type Change = fn(&mut Tensor, &Arguments<'_>) -> Result<()>;

enum Call {
    One(fn(&Arguments<'_>) -> Result<Tensor>),
    Many(fn(&Arguments<'_>) -> Result<Vec<Tensor>>),
}

impl Entry {
    /// An operator that gives one tensor.
    const fn one(name: &'static str, call: fn(&Arguments<'_>) -> Result<Tensor>) -> Entry {
        Entry { name, call: Call::One(call), change: None, chosen: None }
    }

    /// An operator that gives several.
    const fn many(name: &'static str, call: fn(&Arguments<'_>) -> Result<Vec<Tensor>>) -> Entry {
        Entry { name, call: Call::Many(call), change: None, chosen: None }
    }

    /// With a form that changes its first argument.
    const fn in_place(self, change: Change) -> Entry {
        let Entry { name, call, chosen, .. } = self;
        Entry { name, call, change: Some(change), chosen }
    }

    /// Whose second output names one of several equal elements, and torch leaves open which: a device is
    /// asked what it finds there.
    const fn one_of_equals(self, chosen: Chosen) -> Entry {
        let Entry { name, call, change, .. } = self;
        Entry { name, call, change, chosen: Some(chosen) }
    }

    pub(crate) fn call(&self, arguments: &Arguments<'_>) -> Result<Vec<Tensor>> {
        match self.call {
            Call::One(call) => match arguments.out() {
                Some((out, inputs)) => {
                    let inputs: Vec<&Tensor> = inputs.iter().collect();
                    out.receive(self.name, &inputs, || call(arguments)).map(|()| vec![out])
                }
                None => call(arguments).map(|tensor| vec![tensor]),
            },
            Call::Many(call) => match arguments.outs() {
                Some((outs, inputs)) => {
                    for (i, result) in call(arguments)?.into_iter().enumerate().take(outs.len()) {
                        let others: Vec<&Tensor> = inputs.iter().chain(&outs[..i]).collect();
                        outs[i].receive(self.name, &others, || Ok(result))?;
                    }
                    Ok(outs)
                }
                None => call(arguments),
            },
        }
    }

    pub(crate) fn chosen(&self) -> Option<Chosen> {
        self.chosen
    }

    pub(crate) fn change(&self) -> Option<Change> {
        self.change
    }
}

const FAMILIES: [&[Entry]; 12] = [
    activation::OPS,
    binary::OPS,
    convolution::OPS,
    factory::OPS,
    index::OPS,
    join::OPS,
    loss::OPS,
    matrix::OPS,
    normalization::OPS,
    reduction::OPS,
    shape::OPS,
    unary::OPS,
];

static REGISTER: LazyLock<HashMap<&'static str, &'static Entry>> = LazyLock::new(|| {
    static ALL: [&[Entry]; 12] = FAMILIES;
    ALL.iter().flat_map(|family| family.iter()).map(|entry| (entry.name, entry)).collect()
});

/// The operator that torch calls `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTER.get(name).copied()
}
