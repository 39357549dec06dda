//! The view that all others are in the end, so that none needs a kernel on any device.

use super::{OwnView, sizes};
use crate::{Backward, Cause, Device, Error, Forward, Grads, Key, Layout, Op, Result, Tensor, grads};
use cresset_dispatch::KeySet;
use cresset_dispatch::observe::{self, Argument};

/// The elements that a layout picks from the storage.
#[derive(Clone, Debug)]
pub struct AsStrided {
    /// The layout of the view.
    pub layout: Layout,
    /// The layout of the tensor that the view is made of.
    pub from: Layout,
    /// Whether the call says where the view begins, or it begins where the tensor does.
    pub says_offset: bool,
}

impl Op for AsStrided {
    const NAME: &'static str = "aten::as_strided";
    const BACKWARD: &'static str = "AsStridedBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    /// Puts each gradient where its element lies in the storage, then looks at the storage
    /// as the input did.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let grad = ctx.grad();
        let end = self.layout.end().max(self.from.end());
        let zeros = Tensor::zeros([end], (grad.dtype(), grad.device()))?;
        let (seen, held) = (places(&self.layout, grad.device())?, places(&self.from, grad.device())?);
        let mut storage = zeros.index_add(0, &seen, &grad.reshape([grad.numel()])?)?;
        if self.from.may_overlap() {
            // Elements that the input held several times share what came back to them.
            let ones = Tensor::ones([held.numel()], (grad.dtype(), grad.device()))?;
            storage = storage.div(&zeros.index_add(0, &held, &ones)?)?;
        }
        grads!(ctx; storage.index_select(0, &held)?.reshape(self.from.shape())?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(self.layout.shape())));
        visit(Argument::Ints(&sizes(self.layout.strides())));
        visit(match self.says_offset {
            false => Argument::None,
            true => Argument::Int(self.layout.offset() as i64),
        });
    }
}

impl Forward for AsStrided {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        x.through(self.layout.clone())
    }
}

impl AsStrided {
    fn new(x: &Tensor, shape: &[usize], strides: &[usize], offset: usize) -> Result<AsStrided> {
        let layout = Layout::strided(shape, strides, offset).ok_or_else(|| {
            let text =
                format_args!("shape {shape:?} with strides {strides:?} and offset {offset} makes no layout");
            Error::new(Cause::Argument, AsStrided::NAME, text)
        })?;
        let says_offset = offset != x.layout().offset();
        Ok(AsStrided { layout, from: x.layout().clone(), says_offset })
    }
}

impl OwnView for AsStrided {
    const IN_PLACE: &'static str = "aten::as_strided_";
    const IN_PLACE_BACKWARD: &'static str = "AsStridedBackward1";

    fn layout(&self, _x: &Tensor) -> Result<Layout> {
        Ok(self.layout.clone())
    }

    fn turned(&self, x: &Tensor) -> Result<Tensor> {
        x.through(self.layout.clone())
    }
}

/// Where each element of a layout lies, in row-major order.
fn places(layout: &Layout, device: Device) -> Result<Tensor> {
    let mut places = vec![layout.offset() as i64];
    for (&size, &stride) in layout.shape().iter().zip(layout.strides()) {
        places = places.iter().flat_map(|at| (0..size).map(move |i| at + (i * stride) as i64)).collect();
    }
    Tensor::from_slice(&places, [places.len()])?.to(device)
}

impl Tensor {
    pub(super) fn as_layout(&self, layout: Layout) -> Result<Tensor> {
        if !observe::is_watched() && !self.keys().here().contains(Key::AUTOGRAD) {
            return self.through(layout);
        }
        AsStrided { layout, from: self.layout().clone(), says_offset: false }.call([self])
    }

    /// A view, unless it reaches beyond the storage.
    fn through(&self, layout: Layout) -> Result<Tensor> {
        let held = self.storage().len() / self.dtype().size();
        if layout.end() > held {
            let text = format_args!("{layout:?} reaches beyond a storage of {held} elements");
            return Err(Error::new(Cause::Index, AsStrided::NAME, text));
        }
        Ok(self.with_layout(layout))
    }

    /// As `as_layout`, for a layout that begins somewhere else.
    pub(crate) fn as_part(&self, layout: Layout) -> Result<Tensor> {
        AsStrided { layout, from: self.layout().clone(), says_offset: true }.call([self])
    }

    /// The elements that `shape`, `strides` and `offset`, counted in elements, pick from the
    /// storage.
    pub fn as_strided(&self, shape: &[usize], strides: &[usize], offset: usize) -> Result<Tensor> {
        AsStrided::new(self, shape, strides, offset)?.call([self])
    }

    /// Makes this handle what [`as_strided`](Tensor::as_strided) gives.
    pub fn as_strided_(&mut self, shape: &[usize], strides: &[usize], offset: usize) -> Result<()> {
        self.become_view(AsStrided::new(self, shape, strides, offset)?)
    }
}

pub(super) fn check_not_leaf(op: &'static str, x: &Tensor) -> Result<()> {
    let recording = KeySet::AUTOGRAD.here().contains(Key::AUTOGRAD);
    if recording && x.requires_grad() && x.is_leaf() {
        let text = "a leaf that requires grad cannot be changed in place; do it under no_grad()";
        return Err(Error::new(Cause::Graph, op, text));
    }
    Ok(())
}
