//! Operators made of other operators: a span around them, so that a trace nests.

use crate::op::{Inputs, schema, sequence_here};
use crate::{Device, Tensor};
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
    composite_counting(name, inputs, arguments, || 0)
}

/// As [`composite`], of an operator that says how many floating-point operations it takes.
#[inline]
#[must_use = "the operator ends when the guard drops"]
pub(crate) fn composite_counting<I: Inputs>(
    name: &'static str,
    inputs: I,
    arguments: impl Fn(&mut dyn FnMut(Argument<'_>)),
    flops: impl Fn() -> u64,
) -> Option<Span> {
    observe::span(&Composite { name, inputs, arguments, flops }).map(Span::failing_on_fault)
}

struct Composite<I, F, C> {
    name: &'static str,
    inputs: I,
    arguments: F,
    flops: C,
}

impl<I: Inputs, F, C> Composite<I, F, C> {
    fn each_tensor(&self, visit: &mut dyn FnMut(&Tensor)) {
        self.inputs.each(|given| {
            if let Some(tensor) = given.tensor() {
                visit(tensor);
            }
        });
    }
}

/// Visits tensors: all that counting needs to know of a call, so that it is compiled once.
type EachTensor<'e> = dyn Fn(&mut dyn FnMut(&Tensor)) + 'e;

/// Those of a product of matrices, which torch counts by sizes even if it cannot be made.
fn matrix_flops(each: &EachTensor<'_>) -> u64 {
    let mut sizes = Vec::new();
    each(&mut |tensor| sizes.push(tensor.shape().to_vec()));
    match &sizes[..] {
        [a, b] if a.len() == 2 && b.len() == 2 => {
            [2, a[0], b[0], b[1]].into_iter().fold(1u64, |all, size| all.saturating_mul(size as u64))
        }
        _ => 0,
    }
}

/// One for each element of the first tensor.
fn elementwise_flops(each: &EachTensor<'_>) -> u64 {
    let mut first = None;
    each(&mut |tensor| first = first.or(Some(tensor.numel() as u64)));
    first.unwrap_or(0)
}

/// Without a tensor among the arguments torch cannot say whose derivative it would be.
fn sequence_of(call: &dyn Call) -> Option<Sequence> {
    let mut has_tensors = false;
    call.arguments(&mut |argument| {
        has_tensors |= matches!(argument, Argument::Tensor(_) | Argument::Tensors(_));
    });
    if has_tensors { sequence_here() } else { None }
}

impl<I: Inputs, F: Fn(&mut dyn FnMut(Argument<'_>)), C: Fn() -> u64> Call for Composite<I, F, C> {
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

    /// A sum or product that an operator makes of tensors counts as one that a program makes.
    fn flops(&self) -> u64 {
        match self.name {
            "aten::mm" => matrix_flops(&|visit| self.each_tensor(visit)),
            "aten::add" | "aten::mul" => elementwise_flops(&|visit| self.each_tensor(visit)),
            _ => (self.flops)(),
        }
    }

    fn sequence(&self) -> Option<Sequence> {
        sequence_of(self)
    }
}
