//! Ranges in a profile: steps, and operators over lists of tensors.

use cresset_dispatch::observe::{self, Argument, Call, Kind, Name, Role, Span, TensorArgument};
use cresset_tensor::Tensor;

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

/// An operator over a list, made of calls for each tensor.
struct Listed<'a> {
    name: &'static str,
    tensors: &'a [Tensor],
}

impl Call for Listed<'_> {
    fn name(&self) -> Name<'_> {
        Name::Static(self.name)
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        let list: Vec<_> = self.tensors.iter().map(Tensor::argument).collect();
        visit(Argument::Tensors(&list));
    }
}

/// Names the calls for each of `tensors` until the guard drops.
pub(crate) fn listed(name: &'static str, tensors: &[Tensor]) -> Option<Span> {
    observe::span(&Listed { name, tensors })
}
