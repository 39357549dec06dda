//! Views of a part of a tensor, and two ways back: zeros but for that part, and a copy with
//! that part replaced.

use super::sizes;
use crate::op::Forward;
use crate::{Backward, Cause, Error, Grads, Layout, Op, Result, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// A view of a part: no two of its indices lead to the same element.
pub trait Part: Forward + for<'a> Op<Inputs<'a> = [&'a Tensor; 1], Output = Tensor> {
    /// The names of the operator that puts a gradient back, and of its node.
    const EMBED: [&'static str; 2];
    /// The names of the operator that replaces the part, and of its node.
    const SCATTER: [&'static str; 2];

    /// The elements of the part.
    fn pick(&self, whole: &Layout) -> Result<Layout>;

    /// Visits what tells the part from others.
    fn attributes(&self, visit: &mut dyn FnMut(Argument<'_>));
}

/// Makes an operator of a [`Part`].
macro_rules! view_of_part {
    ($op:ident: $name:literal, $backward:literal) => {
        impl Op for $op {
            const NAME: &'static str = $name;
            const BACKWARD: &'static str = $backward;
            const VIEW: bool = true;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; Embed { part: self.clone(), shape: ctx.shape(0).into() }.call([ctx.grad()])?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
                visit(Argument::Tensor(x.argument()));
                self.attributes(visit);
            }
        }

        impl Forward for $op {
            fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
                x.as_part(self.pick(x.layout())?)
            }
        }
    };
}

pub(super) use view_of_part;

/// Zeros but for a part.
#[derive(Clone, Debug)]
pub struct Embed<P> {
    /// The part.
    pub part: P,
    /// The shape of the whole.
    pub shape: Dims,
}

impl<P: Part> Op for Embed<P> {
    const NAME: &'static str = P::EMBED[0];
    const BACKWARD: &'static str = P::EMBED[1];
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; self.part.clone().call([ctx.grad()])?)
    }

    fn arguments(&self, [grad]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(grad.argument()));
        visit(Argument::Ints(&sizes(&self.shape)));
        self.part.attributes(visit);
    }
}

impl<P: Part> Forward for Embed<P> {
    fn forward(&self, [grad]: [&Tensor; 1]) -> Result<Tensor> {
        let whole = Tensor::zeros(&self.shape, (grad.dtype(), grad.device()))?;
        self.part.clone().call([&whole])?.copy_(grad)?;
        Ok(whole)
    }
}

/// The first tensor with a part of it replaced by the second.
#[derive(Clone, Debug)]
pub struct Replace<P> {
    /// The part.
    pub part: P,
}

impl<P: Part> Op for Replace<P> {
    const NAME: &'static str = P::SCATTER[0];
    const BACKWARD: &'static str = P::SCATTER[1];
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let part = || self.part.clone().call([ctx.grad()]);
        grads!(ctx; self.clone().call([ctx.grad(), &part()?.zeros_like()?])?, part()?)
    }

    fn arguments(&self, [x, source]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Tensor(source.argument()));
        self.part.attributes(visit);
    }
}

impl<P: Part> Forward for Replace<P> {
    fn forward(&self, [x, source]: [&Tensor; 2]) -> Result<Tensor> {
        let part = self.part.pick(x.layout())?;
        if part.shape() != source.shape() {
            let text = format_args!("shape {:?} does not replace {:?}", source.shape(), part.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        let out = x.copy()?;
        self.part.clone().call([&out])?.copy_(source)?;
        Ok(out)
    }
}
