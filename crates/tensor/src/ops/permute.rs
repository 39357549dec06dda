//! Dimensions in another order.

use super::own_view::{Own, OwnView, seen_as};
use super::{Alias, check_dims};
use crate::sizes::Sizes as _;
use crate::{
    Backward, Cause, Error, Forward, Grads, Layout, NamedDim, NamedDims, Op, Result, Tensor, composite, grads,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// Two dimensions exchanged.
#[derive(Clone, Debug)]
pub struct Transpose {
    /// One dimension.
    pub a: NamedDim,
    /// The other.
    pub b: NamedDim,
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
        visit(self.a.argument());
        visit(self.b.argument());
    }
}

impl Forward for Transpose {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        if x.dim() == 0 {
            return Alias.call([x]);
        }
        check_dims(Self::NAME, &[*self.a], x)?;
        check_dims(Self::NAME, &[*self.b], x)?;
        if *self.a == *self.b {
            return Alias.call([x]);
        }
        x.as_layout(x.layout().transpose(*self.a, *self.b))
    }
}

impl OwnView for Transpose {
    const IN_PLACE: &'static str = "aten::transpose_";
    const IN_PLACE_BACKWARD: &'static str = "TransposeBackward1";

    fn layout(&self, x: &Tensor) -> Result<Layout> {
        check_dims(Self::IN_PLACE, &[*self.a, *self.b], x)?;
        Ok(x.layout().transpose(*self.a, *self.b))
    }

    fn turned(&self, x: &Tensor) -> Result<Tensor> {
        if x.dim() == 0 || *self.a == *self.b { Ok(x.alias()) } else { seen_as(x, self.layout(x)?) }
    }
}

/// A matrix transposed.
#[derive(Clone, Debug)]
pub struct T;

impl OwnView for T {
    const IN_PLACE: &'static str = "aten::t_";
    const IN_PLACE_BACKWARD: &'static str = "TBackward1";

    fn layout(&self, x: &Tensor) -> Result<Layout> {
        self.transposed(Self::IN_PLACE, x)?.layout(x)
    }

    fn turned(&self, x: &Tensor) -> Result<Tensor> {
        Own(self.transposed(Self::IN_PLACE, x)?).call([x])
    }
}

impl T {
    /// The dimensions that are exchanged.
    fn transposed(&self, op: &'static str, x: &Tensor) -> Result<Transpose> {
        match x.dim() {
            0 | 1 => Ok(Transpose { a: 0.into(), b: 0.into() }),
            2 => Ok(Transpose { a: 0.into(), b: 1.into() }),
            rank => {
                let text = format_args!("expects at most 2 dimensions, not {rank}; use transpose()");
                Err(Error::new(Cause::Shape, op, text))
            }
        }
    }
}

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
        self.transposed(Self::NAME, x)?.call([x])
    }
}

/// All dimensions in another order.
#[derive(Clone, Debug)]
pub struct Permute {
    /// Where each dimension of the result comes from.
    pub dims: NamedDims,
}

impl Op for Permute {
    const NAME: &'static str = "aten::permute";
    const BACKWARD: &'static str = "PermuteBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let mut dims = Dims::from_slice(&self.dims);
        self.dims.iter().enumerate().for_each(|(to, &from)| dims[from] = to);
        grads!(ctx; Permute { dims: dims.into() }.call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&self.dims.told()));
    }
}

impl Forward for Permute {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        if self.dims.len() != x.dim() {
            let text = format_args!("shape {:?} has not {} dimensions", x.shape(), self.dims.len());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        check_dims(Self::NAME, &self.dims, x)?;
        x.as_layout(x.layout().permute(&self.dims))
    }
}

impl Tensor {
    /// Dimensions `a` and `b` exchanged; negative ones count from the back.
    pub fn transpose(&self, a: isize, b: isize) -> Result<Tensor> {
        let (a, b) = (self.named_dim(Transpose::NAME, a)?, self.named_dim(Transpose::NAME, b)?);
        Transpose { a, b }.call([self])
    }

    /// Makes this handle what [`transpose`](Tensor::transpose) gives.
    pub fn transpose_(&mut self, a: isize, b: isize) -> Result<()> {
        let (a, b) = (self.named_dim(Transpose::NAME, a)?, self.named_dim(Transpose::NAME, b)?);
        self.become_view(Transpose { a, b })
    }

    /// [`transpose`](Tensor::transpose) under the name that NumPy has for it.
    pub fn swapaxes(&self, a: isize, b: isize) -> Result<Tensor> {
        let _span = composite("aten::swapaxes", [self], |visit| {
            [a, b].iter().for_each(|&dim| visit(Argument::Int(dim as i64)));
        });
        self.transpose(a, b)
    }

    /// A matrix transposed.
    pub fn t(&self) -> Result<Tensor> {
        T.call([self])
    }

    /// Makes this handle what [`t`](Tensor::t) gives.
    pub fn t_(&mut self) -> Result<()> {
        self.become_view(T)
    }

    /// The last two dimensions exchanged: torch's `mT`.
    pub fn mt(&self) -> Result<Tensor> {
        const NAME: &str = "aten::mT";
        let _span = composite(NAME, [self], |_| {});
        if self.dim() < 2 {
            let text = format_args!("expects matrices, not shape {:?}", self.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        self.transpose(-2, -1)
    }

    /// All dimensions in the opposite order: torch's `T`.
    pub fn numpy_t(&self) -> Result<Tensor> {
        let _span = composite("aten::numpy_T", [self], |_| {});
        Permute { dims: (0..self.dim()).rev().collect::<Dims>().into() }.call([self])
    }

    /// The dimensions in the order of `dims`; negative ones count from the back.
    pub fn permute(&self, dims: &[isize]) -> Result<Tensor> {
        let at = dims.iter().map(|&dim| self.dim_index(Permute::NAME, dim)).collect::<Result<_>>()?;
        Permute { dims: NamedDims::new(at, dims) }.call([self])
    }

    /// Moves each dimension of `source` to the place in `destination`; the others keep their order.
    pub fn movedim(&self, source: &[isize], destination: &[isize]) -> Result<Tensor> {
        const NAME: &str = "aten::movedim";
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::Ints(&source.written()));
            visit(Argument::Ints(&destination.written()));
        });
        if source.len() != destination.len() {
            let text = format_args!("{source:?} are not as many dimensions as {destination:?}");
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        let indices =
            |dims: &[isize]| dims.iter().map(|&dim| self.dim_index(NAME, dim)).collect::<Result<Dims>>();
        let (source, destination) = (indices(source)?, indices(destination)?);
        check_dims(NAME, &source, self)?;
        check_dims(NAME, &destination, self)?;
        if self.dim() == 0 {
            return Alias.call([self]);
        }
        let mut others = (0..self.dim()).filter(|dim| !source.contains(dim));
        let dims = (0..self.dim()).map(|to| match destination.iter().position(|&dim| dim == to) {
            Some(at) => source[at],
            None => others.next().expect("as many dimensions are left as places"),
        });
        Permute { dims: dims.collect::<Dims>().into() }.call([self])
    }

    /// [`movedim`](Tensor::movedim) under the name that NumPy has for it.
    pub fn moveaxis(&self, source: &[isize], destination: &[isize]) -> Result<Tensor> {
        let _span = composite("aten::moveaxis", [self], |visit| {
            visit(Argument::Ints(&source.written()));
            visit(Argument::Ints(&destination.written()));
        });
        self.movedim(source, destination)
    }
}
