//! Sequences read step by step: the steps of recurrent layers and cells, and a layer of long short-term memory as
//! one operator.

mod layer;
mod library;
mod pieces;
mod shown;
mod step;

pub use layer::*;
pub use step::*;

use crate::{Backward, Forward, Grads, Op, Result, Tensor, grads, shown as calls};
use cresset_dispatch::observe::Argument;

/// A sequence that nobody else holds, its first two dimensions exchanged: where torch turns the tensor itself.
#[derive(Clone, Debug)]
struct TurnedItself;

impl Op for TurnedItself {
    const NAME: &'static str = "aten::transpose_";
    const BACKWARD: &'static str = "TransposeBackward1";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().transpose(0, 1)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(0));
        visit(Argument::Int(1));
    }
}

impl Forward for TurnedItself {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let turned = x.layout().transpose(0, 1);
        let (shape, strides) = (calls::ints(turned.shape()), calls::ints(turned.strides()));
        let more = [Argument::Ints(&shape), Argument::Ints(&strides), Argument::None];
        drop(calls::call("aten::as_strided_", [x], &more));
        Ok(x.with_layout(turned))
    }
}

/// What a layer gave out, the batch first.
///
/// # Errors
/// If it has less than two dimensions.
pub fn batch_first(out: Tensor) -> Result<Tensor> {
    super::check_dims(TurnedItself::NAME, &[1], &out)?;
    TurnedItself.call([&out])
}
