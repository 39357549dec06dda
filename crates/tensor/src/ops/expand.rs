//! Elements repeated to fill a larger shape, without copying any.

use super::{broadcast, sizes};
use crate::sizes::{Sizes, Written};
use crate::{Backward, Cause, Error, Forward, Grads, Op, Result, Tensor, composite, grads, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// The same elements repeated to fill a larger shape, without copying any.
#[derive(Clone, Debug)]
pub struct Expand {
    /// The shape to fill.
    pub shape: Dims,
    /// The shape as it was written, where -1 leaves a size as it is.
    pub written: Written,
}

impl From<&[usize]> for Expand {
    fn from(shape: &[usize]) -> Expand {
        Expand { shape: Dims::from_slice(shape), written: sizes(shape) }
    }
}

impl Op for Expand {
    const NAME: &'static str = "aten::expand";
    const BACKWARD: &'static str = "ExpandBackward0";
    const VIEW: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; match ctx.shape(0).is_empty() {
            true => ctx.grad().sum()?,
            false => ctx.grad().sum_to(ctx.shape(0))?,
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&self.written));
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

/// How the first of [`Tensor::meshgrid`]'s dimensions are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// As matrices are: the first tensor runs along the first dimension.
    Matrix,
    /// As points in the plane are: the first tensor runs along the second dimension.
    Cartesian,
}

impl Tensor {
    /// The same elements repeated to fill `shape`, without copying; -1 leaves a size as it is.
    pub fn expand(&self, shape: impl Sizes) -> Result<Tensor> {
        let written = shape.written();
        let added = written.len().checked_sub(self.dim());
        let size = |(at, &size): (usize, &i64)| match added.and_then(|added| at.checked_sub(added)) {
            Some(at) if size == -1 => Some(self.shape()[at]),
            _ => usize::try_from(size).ok(),
        };
        let shape = written.iter().enumerate().map(size).collect::<Option<Dims>>().ok_or_else(|| {
            let text = format_args!("shape {:?} cannot be repeated to fill {written:?}", self.shape());
            Error::new(Cause::Shape, Expand::NAME, text)
        })?;
        Expand { shape, written }.call([self])
    }

    /// The same elements repeated to fill the shape of `other`, without copying.
    pub fn expand_as(&self, other: &Tensor) -> Result<Tensor> {
        let _span = composite("aten::expand_as", [self, other], |_| {});
        self.expand(other.shape())
    }

    /// The same elements repeated to fill `shape`, without copying.
    pub fn broadcast_to(&self, shape: impl Sizes) -> Result<Tensor> {
        let written = shape.written();
        let _span = composite("aten::broadcast_to", [self], |visit| visit(Argument::Ints(&written)));
        self.expand(written)
    }

    /// All tensors repeated to fill the one shape that they broadcast to.
    pub fn broadcast_tensors(tensors: &[&Tensor]) -> Result<Vec<Tensor>> {
        const NAME: &str = "aten::broadcast_tensors";
        let _span = composite(NAME, shown::NOTHING, |visit| {
            let given: Vec<_> = tensors.iter().map(|tensor| tensor.argument()).collect();
            visit(Argument::Tensors(&given));
        });
        let mut shape = Dims::new();
        for tensor in tensors {
            shape = broadcast(NAME, &shape, tensor.shape())?;
        }
        let fill = |tensor: &&Tensor| {
            if tensor.shape() == &shape[..] { Ok((*tensor).clone()) } else { tensor.expand(&shape) }
        };
        tensors.iter().map(fill).collect()
    }

    /// A grid from the coordinates along each of its sides: one tensor per side.
    pub fn meshgrid(tensors: &[&Tensor], indexing: Indexing) -> Result<Vec<Tensor>> {
        const NAME: &str = "aten::meshgrid";
        let _span = composite(NAME, tensors, |_| {});
        let Some(first) = tensors.first() else {
            return Err(Error::new(Cause::Argument, NAME, "expects at least one tensor"));
        };
        for tensor in tensors {
            let same = (tensor.dtype(), tensor.device()) == (first.dtype(), first.device());
            if tensor.dim() > 1 || !same {
                let text = format_args!(
                    "expects tensors of at most one dimension and of {} on {}, not shape {:?} of {} on {}",
                    first.dtype(),
                    first.device(),
                    tensor.shape(),
                    tensor.dtype(),
                    tensor.device(),
                );
                return Err(Error::new(Cause::Argument, NAME, text));
            }
        }
        // The dimension that each tensor runs along.
        let mut along: Vec<usize> = (0..tensors.len()).collect();
        if indexing == Indexing::Cartesian && tensors.len() > 1 {
            along.swap(0, 1);
        }
        let shape: Dims = along.iter().map(|&i| tensors[i].numel()).collect();
        let grid = |(tensor, &dim): (&&Tensor, &usize)| {
            let mut line = Dims::from_elem(1, tensors.len());
            line[dim] = tensor.numel();
            tensor.view(line)?.expand(&shape)
        };
        tensors.iter().zip(&along).map(grid).collect()
    }

    /// Sums away what broadcasting had repeated, down to `shape`.
    pub(crate) fn sum_to(&self, shape: &[usize]) -> Result<Tensor> {
        if shape.is_empty() {
            return if self.dim() == 0 { Ok(self.clone()) } else { self.sum() };
        }
        let added = self.dim() - shape.len();
        let repeated = |dim: &usize| *dim < added || (shape[*dim - added] == 1 && self.shape()[*dim] != 1);
        let dims: Vec<isize> = (0..self.dim()).filter(repeated).map(|dim| dim as isize).collect();
        let sum = if dims.is_empty() { self.clone() } else { self.sum_dims(&dims, true)? };
        if sum.shape() == shape { Ok(sum) } else { sum.view(shape) }
    }
}
