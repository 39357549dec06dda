//! What every optimizer can do.

use cresset_dispatch::observe::{self, Call, Kind, Name, Span};
use cresset_tensor::{Cause, Error, Result, Tensor};

/// Changes parameters by their gradients.
pub trait Optimizer {
    /// Takes one step. Parameters without a gradient are left alone.
    fn step(&mut self) -> Result<()>;

    /// Forgets the gradients of all parameters.
    fn zero_grad(&self);

    /// The learning rate.
    fn lr(&self) -> f64;

    /// Changes the learning rate.
    fn set_lr(&mut self, lr: f64);
}

struct Scope(&'static str);

impl Call for Scope {
    fn name(&self) -> Name<'_> {
        Name::Static(self.0)
    }

    fn kind(&self) -> Kind {
        Kind::Scope
    }
}

/// Names what happens until the guard drops.
pub(crate) fn scope(name: &'static str) -> Option<Span> {
    observe::span(&Scope(name))
}

pub(crate) fn forget(name: &'static str, parameters: &[Tensor]) {
    let _scope = scope(name);
    parameters.iter().for_each(|parameter| parameter.clear_grad());
}

/// Refuses a number that no optimizer can work with.
pub(crate) fn check(
    optimizer: &'static str,
    what: &str,
    value: f64,
    allowed: bool,
    expected: &str,
) -> Result<()> {
    if allowed {
        return Ok(());
    }
    Err(Error::new(Cause::Argument, optimizer, format_args!("{what} is {value}, expected {expected}")))
}
