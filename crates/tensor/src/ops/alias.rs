//! The view of everything.

use crate::{Backward, Forward, Grads, Op, Result, Tensor, grads};

/// The same elements in the same order, as a view.
#[derive(Clone, Debug)]
pub struct Alias;

impl Op for Alias {
    const NAME: &'static str = "aten::alias";
    const BACKWARD: &'static str = "AliasBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().clone())
    }
}

impl Forward for Alias {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(x.with_layout(x.layout().clone()))
    }
}
