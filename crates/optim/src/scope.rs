//! Ranges in a profile: steps, and operators over lists of tensors.

use cresset_dispatch::observe::{self, Argument, Call, Kind, Name, Role, Span, TensorArgument};
use cresset_tensor::{Scalar, Tensor};

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

/// What an operator over a list is told beside it.
#[derive(Clone, Copy)]
pub(crate) enum More<'a> {
    List(&'a [Tensor]),
    Tensor(Option<&'a Tensor>),
    Bool(bool),
    Int(i64),
    Float(f64),
    Floats(&'a [f64]),
    Scalar(Scalar),
}

impl More<'_> {
    fn visit(self, visit: &mut dyn FnMut(Argument<'_>)) {
        match self {
            More::List(list) => {
                let list: Vec<_> = list.iter().map(Tensor::argument).collect();
                visit(Argument::Tensors(&list));
            }
            More::Tensor(tensor) => {
                visit(tensor.map_or(Argument::None, |one| Argument::Tensor(one.argument())))
            }
            More::Bool(truth) => visit(Argument::Bool(truth)),
            More::Int(number) => visit(Argument::Int(number)),
            More::Float(number) => visit(Argument::Float(number)),
            More::Scalar(Scalar::Int(number)) => visit(Argument::Int(number)),
            More::Scalar(number) => visit(Argument::Float(number.as_f64())),
            More::Floats(numbers) => visit(Argument::Floats(numbers)),
        }
    }
}

/// An operator over a list, made of calls for each tensor.
struct Listed<'a> {
    name: &'static str,
    tensors: &'a [Tensor],
    more: &'a [More<'a>],
}

impl Call for Listed<'_> {
    fn name(&self) -> Name<'_> {
        Name::Static(self.name)
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        let list: Vec<_> = self.tensors.iter().map(Tensor::argument).collect();
        visit(Argument::Tensors(&list));
        self.more.iter().for_each(|more| more.visit(visit));
    }
}

/// Names the calls for each of `tensors` until the guard drops. `more` are the other arguments.
pub(crate) fn listed(name: &'static str, tensors: &[Tensor], more: &[More<'_>]) -> Option<Span> {
    observe::span(&Listed { name, tensors, more })
}
