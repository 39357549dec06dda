//! Operators made of other operators: a span around them, so that a trace nests.

use crate::Device;
use crate::op::{Inputs, schema, sequence_here};
use cresset_dispatch::observe::{self, Argument, Call, Name, Sequence, Span};

/// Tells observers that the operator `name` is at work until the guard drops.
///
/// `arguments` is asked only if someone watches and wants to know. An [`Error`](crate::Error) that is
/// made meanwhile is taken for the operator's own.
#[inline]
#[must_use = "the operator ends when the guard drops"]
pub fn composite<I: Inputs>(
    name: &'static str,
    inputs: I,
    arguments: impl Fn(&mut dyn FnMut(Argument<'_>)),
) -> Option<Span> {
    observe::span(&Composite { name, inputs, arguments }).map(Span::failing_on_fault)
}

struct Composite<I, F> {
    name: &'static str,
    inputs: I,
    arguments: F,
}

impl<I: Inputs, F: Fn(&mut dyn FnMut(Argument<'_>))> Call for Composite<I, F> {
    fn name(&self) -> Name<'_> {
        Name::Static(self.name)
    }

    fn schema(&self) -> &'static str {
        schema::of(self)
    }

    fn device(&self) -> Option<Device> {
        self.inputs.device()
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        self.inputs.each(|tensor| visit(tensor.into_argument()));
        (self.arguments)(visit);
    }

    fn sequence(&self) -> Option<Sequence> {
        sequence_here()
    }
}
