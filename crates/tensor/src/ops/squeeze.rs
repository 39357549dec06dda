//! Dimensions of size 1, added and taken away.

use super::own_view::{Own, OwnView};
use super::{check_dims, dim_index};
use crate::{
    Backward, Forward, Grads, Layout, NamedDim, NamedDims, Op, Result, Tensor, composite, grads, shown,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// A new dimension of size 1.
#[derive(Clone, Debug)]
pub struct Unsqueeze {
    /// The dimension that the new one comes before.
    pub dim: NamedDim,
}

impl Op for Unsqueeze {
    const NAME: &'static str = "aten::unsqueeze";
    const BACKWARD: &'static str = "UnsqueezeBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; SqueezeDim { dims: NamedDims::new(Dims::from_slice(&[*self.dim]), &[self.dim.named()]) }.call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(self.dim.argument());
    }
}

impl Forward for Unsqueeze {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        dim_index(Self::NAME, *self.dim as isize, x.dim() + 1)?;
        x.as_layout(x.layout().unsqueeze(*self.dim))
    }
}

macro_rules! squeezes {
    ($($(#[$doc:meta])* $op:ident { $dims:ty } $backward:literal / $in_place_backward:literal, |$given:ident, $visit:ident| $arguments:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op {
            /// The dimensions that may go.
            pub dims: $dims,
        }

        impl Op for $op {
            const NAME: &'static str = "aten::squeeze";
            const BACKWARD: &'static str = $backward;
            const VIEW: bool = true;
            type Inputs<'a> = [&'a Tensor; 1];
            type Output = Tensor;

            fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
                grads!(ctx; put_back(ctx.grad(), ctx.shape(0), &self.dims)?)
            }

            fn arguments(&self, [x]: [&Tensor; 1], $visit: &mut dyn FnMut(Argument<'_>)) {
                $visit(Argument::Tensor(x.argument()));
                let $given = &self.dims;
                $arguments;
            }
        }

        impl Forward for $op {
            fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
                check_dims(Self::NAME, &self.dims, x)?;
                x.as_layout(x.layout().squeeze(&self.dims))
            }
        }

        impl OwnView for $op {
            const IN_PLACE: &'static str = "aten::squeeze_";
            const IN_PLACE_BACKWARD: &'static str = $in_place_backward;

            fn layout(&self, x: &Tensor) -> Result<Layout> {
                check_dims(Self::IN_PLACE, &self.dims, x)?;
                Ok(x.layout().squeeze(&self.dims))
            }
        }
    )*};
}

squeezes! {
    /// All dimensions of size 1 taken away. Its `dims` are all that there are.
    Squeeze { Dims } "SqueezeBackward0" / "SqueezeBackward3", |_dims, visit| {};
    /// One dimension taken away, if its size is 1.
    SqueezeDim { NamedDims } "SqueezeBackward1" / "SqueezeBackward4", |dims, visit| visit(Argument::Int(dims.told()[0]));
    /// Those of some dimensions taken away whose size is 1.
    SqueezeDims { NamedDims } "SqueezeBackward2" / "SqueezeBackward5", |dims, visit| visit(Argument::Ints(&dims.told()));
}

impl OwnView for Unsqueeze {
    const IN_PLACE: &'static str = "aten::unsqueeze_";
    const IN_PLACE_BACKWARD: &'static str = "UnsqueezeBackward1";

    fn layout(&self, x: &Tensor) -> Result<Layout> {
        dim_index(Self::IN_PLACE, *self.dim as isize, x.dim() + 1)?;
        Ok(x.layout().unsqueeze(*self.dim))
    }
}

/// The dimensions of size 1 among `dims` again where they were in `shape`.
fn put_back(grad: &Tensor, shape: &[usize], dims: &[usize]) -> Result<Tensor> {
    let mut grad = grad.clone();
    for dim in (0..shape.len()).filter(|dim| shape[*dim] == 1 && dims.contains(dim)) {
        grad = Unsqueeze { dim: dim.into() }.call([&grad])?;
    }
    Ok(grad)
}

impl Tensor {
    /// A new dimension of size 1 before dimension `dim`; negative ones count from the back.
    pub fn unsqueeze(&self, dim: isize) -> Result<Tensor> {
        let at = dim_index(Unsqueeze::NAME, dim, self.dim() + 1)?;
        Unsqueeze { dim: NamedDim::new(at, dim) }.call([self])
    }

    /// Makes this handle what [`unsqueeze`](Tensor::unsqueeze) gives.
    pub fn unsqueeze_(&mut self, dim: isize) -> Result<()> {
        let at = dim_index(Unsqueeze::IN_PLACE, dim, self.dim() + 1)?;
        self.become_view(Unsqueeze { dim: NamedDim::new(at, dim) })
    }

    /// Without dimensions of size 1.
    pub fn squeeze(&self) -> Result<Tensor> {
        Squeeze { dims: (0..self.dim()).collect() }.call([self])
    }

    /// Makes this handle what [`squeeze`](Tensor::squeeze) gives.
    pub fn squeeze_(&mut self) -> Result<()> {
        self.become_view(Squeeze { dims: (0..self.dim()).collect() })
    }

    /// Without dimension `dim`, if its size is 1; negative ones count from the back.
    pub fn squeeze_dim(&self, dim: isize) -> Result<Tensor> {
        let index = self
            .dim_index(SqueezeDim::NAME, dim)
            .map_err(|error| shown::failed(SqueezeDim::NAME, [self], &[Argument::Int(dim as i64)], error))?;
        let at = Dims::from_slice(&[index]);
        SqueezeDim { dims: NamedDims::new(at, &[dim]) }.call([self])
    }

    /// A result that nobody else has yet, without dimension `dim`, which has size 1.
    pub(super) fn squeeze_own(&self, dim: isize) -> Result<Tensor> {
        let at = Dims::from_slice(&[self.dim_index(SqueezeDim::IN_PLACE, dim)?]);
        Own(SqueezeDim { dims: NamedDims::new(at, &[dim]) }).call([self])
    }

    /// Makes this handle what [`squeeze_dim`](Tensor::squeeze_dim) gives.
    pub fn squeeze_dim_(&mut self, dim: isize) -> Result<()> {
        let at = Dims::from_slice(&[self.dim_index(SqueezeDim::IN_PLACE, dim)?]);
        self.become_view(SqueezeDim { dims: NamedDims::new(at, &[dim]) })
    }

    /// Without those of `dims` whose size is 1; negative ones count from the back.
    pub fn squeeze_dims(&self, dims: &[isize]) -> Result<Tensor> {
        let at = dims.iter().map(|&dim| self.dim_index(SqueezeDims::NAME, dim)).collect::<Result<_>>()?;
        SqueezeDims { dims: NamedDims::new(at, dims) }.call([self])
    }

    /// Makes this handle what [`squeeze_dims`](Tensor::squeeze_dims) gives.
    pub fn squeeze_dims_(&mut self, dims: &[isize]) -> Result<()> {
        let at = dims.iter().map(|&dim| self.dim_index(SqueezeDims::IN_PLACE, dim)).collect::<Result<_>>()?;
        self.become_view(SqueezeDims { dims: NamedDims::new(at, dims) })
    }

    /// This tensor, with a dimension if it had none.
    pub fn atleast_1d(&self) -> Result<Tensor> {
        let _span = composite("aten::atleast_1d", [self], |_| {});
        if self.dim() == 0 { self.reshape(1) } else { Ok(self.clone()) }
    }

    /// This tensor, as the last of two dimensions if it had fewer.
    pub fn atleast_2d(&self) -> Result<Tensor> {
        let _span = composite("aten::atleast_2d", [self], |_| {});
        match self.dim() {
            0 => self.reshape([1, 1]),
            1 => self.unsqueeze(0),
            _ => Ok(self.clone()),
        }
    }

    /// This tensor, with dimensions of size 1 added around it until there are three.
    pub fn atleast_3d(&self) -> Result<Tensor> {
        let _span = composite("aten::atleast_3d", [self], |_| {});
        match self.dim() {
            0 => self.reshape([1, 1, 1]),
            1 => self.unsqueeze(0)?.unsqueeze(-1),
            2 => self.unsqueeze(-1),
            _ => Ok(self.clone()),
        }
    }
}
