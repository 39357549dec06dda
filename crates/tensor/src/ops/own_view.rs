//! Views that change what their own handle sees: `t_`, `squeeze_` and their kin.

use super::sizes;
use super::strided::check_not_leaf;
use crate::autograd::Saves;
use crate::{Backward, Forward, Grads, Layout, Op, Result, Tensor, shown};
use cresset_dispatch::observe::Argument;

/// A view that has such a form.
pub trait OwnView: for<'a> Op<Inputs<'a> = [&'a Tensor; 1], Output = Tensor> {
    /// The name of this form, e.g. `aten::t_`.
    const IN_PLACE: &'static str;
    /// The name of its node.
    const IN_PLACE_BACKWARD: &'static str;

    /// Where the elements of `x` are seen from then on.
    fn layout(&self, x: &Tensor) -> Result<Layout>;

    /// The elements as they are seen from then on, by the calls that torch makes.
    fn turned(&self, x: &Tensor) -> Result<Tensor> {
        seen_as(x, self.layout(x)?)
    }
}

/// What torch makes a handle see in the end.
pub(super) fn seen_as(x: &Tensor, layout: Layout) -> Result<Tensor> {
    let (shape, strides) = (sizes(layout.shape()), sizes(layout.strides()));
    let more = [Argument::Ints(&shape), Argument::Ints(&strides), Argument::None];
    shown::within("aten::as_strided_", [x], &more, || Ok(x.with_layout(layout)))
}

/// A view in the form that changes its handle.
#[derive(Clone, Debug)]
pub(super) struct Own<V>(pub(super) V);

impl<V: OwnView> Op for Own<V> {
    const NAME: &'static str = V::IN_PLACE;
    const BACKWARD: &'static str = V::IN_PLACE_BACKWARD;
    const SAVES: Saves = V::SAVES;
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        self.0.backward(ctx)
    }

    fn arguments(&self, inputs: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        self.0.arguments(inputs, visit);
    }
}

impl<V: OwnView> Forward for Own<V> {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        self.0.turned(x)
    }
}

impl Tensor {
    /// Makes this handle a view of what it was. Other handles stay as they are, but all of them count a change.
    pub(super) fn become_view<V: OwnView>(&mut self, view: V) -> Result<()> {
        check_not_leaf(V::IN_PLACE, self)?;
        *self = Own(view).call([&*self])?;
        self.storage().changed(V::IN_PLACE);
        Ok(())
    }
}
