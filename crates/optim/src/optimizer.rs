//! What every optimizer can do.

use cresset_dispatch::observe::{self, Call, Kind, Name, Role, Span, TensorArgument};
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

/// A range of an optimizer, and what it works on there.
struct Scope<F> {
    name: &'static str,
    tensors: F,
}

impl<F: Fn(&mut dyn FnMut(Role, &Tensor))> Call for Scope<F> {
    fn name(&self) -> Name<'_> {
        Name::Static(self.name)
    }

    fn kind(&self) -> Kind {
        Kind::Scope
    }

    fn owned(&self, visit: &mut dyn FnMut(Role, TensorArgument<'_>)) {
        (self.tensors)(&mut |role, tensor| {
            visit(role, tensor.argument());
            if let Some(grad) = tensor.grad().filter(|_| role == Role::Parameter) {
                visit(Role::Gradient, grad.argument());
            }
        });
    }
}

/// Names what happens until the guard drops. Who watches may ask for the parameters and for what
/// is kept from step to step: `tensors` visits both.
pub(crate) fn scope(name: &'static str, tensors: impl Fn(&mut dyn FnMut(Role, &Tensor))) -> Option<Span> {
    observe::span(&Scope { name, tensors })
}

pub(crate) fn forget(name: &'static str, parameters: &[Tensor]) {
    let _scope = scope(name, |visit| parameters.iter().for_each(|tensor| visit(Role::Parameter, tensor)));
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
