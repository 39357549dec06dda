//! The view of everything, and the tensor itself.

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

/// The tensor itself, which is never conjugated. Torch asks for it before it reads memory as it lies.
#[derive(Clone, Debug)]
pub struct ResolveConj;

impl Op for ResolveConj {
    const NAME: &'static str = "aten::resolve_conj";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;
}

impl Forward for ResolveConj {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(x.clone())
    }
}
