//! Views: other shapes and orders of the same elements.
//!
//! All views are [`AsStrided`] in the end, so none needs a kernel on any device.

use super::sizes;
use crate::{Backward, Cause, Device, Error, Forward, Grads, Layout, Op, Result, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// The elements that a layout picks from the storage.
#[derive(Clone, Debug)]
pub struct AsStrided {
    /// The layout of the view.
    pub layout: Layout,
    /// The layout of the tensor that the view is made of.
    pub from: Layout,
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
        visit(match self.layout.offset() {
            0 => Argument::None,
            offset => Argument::Int(offset as i64),
        });
    }
}

impl Forward for AsStrided {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let held = x.storage().len() / x.dtype().size();
        if self.layout.end() > held {
            let text = format_args!("{:?} reaches beyond a storage of {held} elements", self.layout);
            return Err(Error::new(Cause::Index, Self::NAME, text));
        }
        Ok(x.with_layout(self.layout.clone()))
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

/// Two dimensions exchanged.
#[derive(Clone, Debug)]
pub struct Transpose {
    /// One dimension.
    pub a: usize,
    /// The other.
    pub b: usize,
}

impl Op for Transpose {
    const NAME: &'static str = "aten::transpose";
    const BACKWARD: &'static str = "TransposeBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; self.clone().call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.a as i64));
        visit(Argument::Int(self.b as i64));
    }
}

impl Forward for Transpose {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        if x.dim() == 0 {
            return x.as_layout(x.layout().clone());
        }
        super::check_dims(Self::NAME, &[self.a], x)?;
        super::check_dims(Self::NAME, &[self.b], x)?;
        x.as_layout(x.layout().transpose(self.a, self.b))
    }
}

/// A matrix transposed.
#[derive(Clone, Debug)]
pub struct T;

impl Op for T {
    const NAME: &'static str = "aten::t";
    const BACKWARD: &'static str = "TBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().t()?)
    }
}

impl Forward for T {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        match x.dim() {
            0 | 1 => Transpose { a: 0, b: 0 }.call([x]),
            2 => Transpose { a: 0, b: 1 }.call([x]),
            rank => {
                let text = format_args!("expects at most 2 dimensions, not {rank}; use transpose()");
                Err(Error::new(Cause::Shape, Self::NAME, text))
            }
        }
    }
}

/// Another shape for the same elements in the same order.
#[derive(Clone, Debug)]
pub struct View {
    /// The new shape.
    pub shape: Dims,
    /// The old one.
    pub from: Dims,
}

impl Op for View {
    const NAME: &'static str = "aten::view";
    const BACKWARD: &'static str = "ViewBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().reshape(&self.from)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(&self.shape)));
    }
}

impl Forward for View {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let layout = x.layout().view(&self.shape).ok_or_else(|| {
            let wanted = Layout::contiguous(&self.shape).map(|layout| layout.len());
            let text = match wanted == Some(x.numel()) {
                true => "cannot be seen as",
                false => "has another number of elements than",
            };
            let hint = if x.is_contiguous() { "" } else { "; use reshape(), which copies where it must" };
            let text = format!("a tensor of shape {:?} {text} {:?}{hint}", x.shape(), &self.shape[..]);
            Error::new(Cause::Shape, Self::NAME, text)
        })?;
        Ok(x.with_layout(layout))
    }
}

/// The same elements repeated to fill a larger shape, without copying any.
#[derive(Clone, Debug)]
pub struct Expand {
    /// The shape to fill.
    pub shape: Dims,
}

impl Op for Expand {
    const NAME: &'static str = "aten::expand";
    const BACKWARD: &'static str = "ExpandBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    /// The engine sums a gradient to the shape of its receiver: all that is needed.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().clone())
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(&self.shape)));
        visit(Argument::Bool(false));
    }
}

impl Forward for Expand {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let layout = x.layout().broadcast_to(&self.shape).ok_or_else(|| {
            let text = format_args!("shape {:?} cannot be repeated to fill {:?}", x.shape(), &self.shape[..]);
            Error::new(Cause::Shape, Self::NAME, text)
        })?;
        x.as_layout(layout)
    }
}

impl Tensor {
    fn as_layout(&self, layout: Layout) -> Result<Tensor> {
        AsStrided { layout, from: self.layout().clone() }.call([self])
    }

    /// The elements that `shape`, `strides` and `offset`, counted in elements, pick from the
    /// storage.
    pub fn as_strided(&self, shape: &[usize], strides: &[usize], offset: usize) -> Result<Tensor> {
        let layout = Layout::strided(shape, strides, offset).ok_or_else(|| {
            let text =
                format_args!("shape {shape:?} with strides {strides:?} and offset {offset} makes no layout");
            Error::new(Cause::Argument, AsStrided::NAME, text)
        })?;
        self.as_layout(layout)
    }

    /// Dimensions `a` and `b` exchanged; negative ones count from the back.
    pub fn transpose(&self, a: isize, b: isize) -> Result<Tensor> {
        let (a, b) = (self.dim_index(Transpose::NAME, a)?, self.dim_index(Transpose::NAME, b)?);
        Transpose { a, b }.call([self])
    }

    /// A matrix transposed.
    pub fn t(&self) -> Result<Tensor> {
        T.call([self])
    }

    /// The same elements under another shape, without copying.
    ///
    /// # Errors
    /// If the number of elements differs, or strides cannot express it.
    pub fn view(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        View { shape: shape.as_ref().into(), from: self.shape().into() }.call([self])
    }

    /// The same elements under another shape; copied only where a view cannot express it.
    pub fn reshape(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let shape = shape.as_ref();
        if shape == self.shape() {
            return Ok(self.clone());
        }
        let _span = composite("aten::reshape", [self], |visit| visit(Argument::Ints(&sizes(shape))));
        if self.layout().view(shape).is_some() { self.view(shape) } else { self.contiguous()?.view(shape) }
    }

    /// The same elements repeated to fill `shape`, without copying.
    pub fn expand(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        Expand { shape: shape.as_ref().into() }.call([self])
    }

    /// A new dimension of size 1 before dimension `dim`; negative ones count from the back.
    pub fn unsqueeze(&self, dim: isize) -> Result<Tensor> {
        let at = super::dim_index("aten::unsqueeze", dim, self.dim() + 1)?;
        let mut shape = Dims::from_slice(self.shape());
        shape.insert(at, 1);
        let _span = composite("aten::unsqueeze", [self], |visit| visit(Argument::Int(dim as i64)));
        self.view(shape)
    }

    /// Sums away what broadcasting had repeated, down to `shape`.
    pub(crate) fn sum_to(&self, shape: &[usize]) -> Result<Tensor> {
        let added = self.dim() - shape.len();
        let repeated = |dim: &usize| *dim < added || (shape[*dim - added] == 1 && self.shape()[*dim] != 1);
        let dims: Vec<isize> = (0..self.dim()).filter(repeated).map(|dim| dim as isize).collect();
        let sum = if dims.is_empty() { self.clone() } else { self.sum_dims(&dims, true)? };
        if sum.shape() == shape { Ok(sum) } else { sum.view(shape) }
    }
}
