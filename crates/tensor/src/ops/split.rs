//! Tensors cut into several along a dimension.

use super::sizes;
use crate::sizes::Sizes;
use crate::{Backward, Cause, Error, Forward, Grads, Layout, NamedDim, Op, Result, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// Pieces of one size, the last one smaller if it must be.
#[derive(Clone, Debug)]
pub struct Split {
    /// The size of a piece.
    pub size: usize,
    /// The dimension to cut.
    pub dim: NamedDim,
}

impl Op for Split {
    const NAME: &'static str = "aten::split";
    const BACKWARD: &'static str = "SplitBackward0";
    const VIEW: bool = true;
    const TAKES_MISSING: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Vec<Tensor>;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let total = ctx.shape(0)[*self.dim];
            let size = |i| if self.size == 0 { 0 } else { self.size.min(total - i * self.size) };
            join(ctx, (0..pieces(total, self.size)).map(size), *self.dim)?
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.size as i64));
        visit(self.dim.argument());
    }
}

impl Forward for Split {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Vec<Tensor>> {
        let total = cut_size(Self::NAME, x, *self.dim)?;
        if self.size == 0 && total > 0 {
            let text = format_args!("pieces of size 0 never make up {total}");
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        let piece = |i: usize| {
            let start = i * self.size;
            x.narrow(self.dim.named(), start as isize, self.size.min(total - start))
        };
        (0..pieces(total, self.size)).map(piece).collect()
    }
}

/// How many pieces there are; one of nothing if there is nothing to cut.
fn pieces(total: usize, size: usize) -> usize {
    if size == 0 { 1 } else { total.div_ceil(size).max(1) }
}

/// Pieces of given sizes.
#[derive(Clone, Debug)]
pub struct SplitWithSizes {
    /// The size of each piece.
    pub sizes: Dims,
    /// The dimension to cut.
    pub dim: NamedDim,
}

impl Op for SplitWithSizes {
    const NAME: &'static str = "aten::split_with_sizes";
    const BACKWARD: &'static str = "SplitWithSizesBackward0";
    const VIEW: bool = true;
    const TAKES_MISSING: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Vec<Tensor>;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; join(ctx, self.sizes.iter().copied(), *self.dim)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(&self.sizes)));
        visit(self.dim.argument());
    }
}

impl Forward for SplitWithSizes {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Vec<Tensor>> {
        let total = cut_size(Self::NAME, x, *self.dim)?;
        let sum = self.sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        if sum != Some(total) {
            let text = format_args!("pieces of sizes {:?} do not make up {total}", &self.sizes[..]);
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        let mut start = 0;
        let piece = |&size: &usize| -> Result<Tensor> {
            let piece: Layout = x.layout().narrow(*self.dim, start, size);
            start += size;
            x.as_part(piece)
        };
        self.sizes.iter().map(piece).collect()
    }
}

/// The gradients of pieces of the given sizes put together again, zeros where none came.
pub(super) fn join(ctx: &Backward<'_>, sizes: impl Iterator<Item = usize>, dim: usize) -> Result<Tensor> {
    let zeros = |size: usize| {
        let mut shape = Dims::from_slice(ctx.shape(0));
        shape[dim] = size;
        Tensor::zeros(shape, (ctx.dtype(0), ctx.device(0)))
    };
    let piece = |(i, size)| ctx.grad_if_any(i).map_or_else(|| zeros(size), |grad| Ok(grad.clone()));
    let grads = sizes.enumerate().map(piece).collect::<Result<Vec<_>>>()?;
    if grads.is_empty() {
        return Tensor::zeros(ctx.shape(0), ctx.dtype(0));
    }
    Tensor::cat(&grads.iter().collect::<Vec<_>>(), dim as isize)
}

/// One tensor per index of a dimension, without that dimension.
#[derive(Clone, Debug)]
pub struct Unbind {
    /// The dimension.
    pub dim: NamedDim,
}

impl Op for Unbind {
    const NAME: &'static str = "aten::unbind";
    const BACKWARD: &'static str = "UnbindBackward0";
    const VIEW: bool = true;
    const TAKES_MISSING: bool = true;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Vec<Tensor>;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            let mut shape = Dims::from_slice(ctx.shape(0));
            let count = shape.remove(*self.dim);
            let zeros = || Tensor::zeros([], (ctx.dtype(0), ctx.device(0)))?.expand(&shape);
            let grad = |i| ctx.grad_if_any(i).map_or_else(zeros, |grad| Ok(grad.clone()));
            let grads = (0..count).map(grad).collect::<Result<Vec<_>>>()?;
            Tensor::stack(&grads.iter().collect::<Vec<_>>(), self.dim.named())?
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(self.dim.argument());
    }
}

impl Forward for Unbind {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Vec<Tensor>> {
        let size = cut_size(Self::NAME, x, *self.dim)?;
        (0..size).map(|index| x.select(*self.dim as isize, index as isize)).collect()
    }
}

/// The size of the dimension to cut.
fn cut_size(op: &'static str, x: &Tensor, dim: usize) -> Result<usize> {
    x.shape().get(dim).copied().ok_or_else(|| {
        let text = format_args!("a tensor of shape {:?} has no dimension {dim} to cut", x.shape());
        Error::new(Cause::Shape, op, text)
    })
}

/// Refuses more pieces than there is memory to hold.
fn check_count(op: &'static str, count: usize) -> Result<()> {
    Vec::<Tensor>::new()
        .try_reserve_exact(count)
        .map_err(|_| Error::new(Cause::Memory, op, format_args!("there is no memory for {count} tensors")))
}

/// Where [`Tensor::tensor_split`] cuts.
#[derive(Clone, Debug)]
pub enum Cuts {
    /// Into so many pieces, the first ones larger by one if it does not come out even.
    Sections(usize),
    /// Before each of these indices; negative ones count from the back.
    Indices(Vec<isize>),
}

impl From<usize> for Cuts {
    fn from(sections: usize) -> Cuts {
        Cuts::Sections(sections)
    }
}

impl From<&[isize]> for Cuts {
    fn from(indices: &[isize]) -> Cuts {
        Cuts::Indices(indices.to_vec())
    }
}

impl<const N: usize> From<[isize; N]> for Cuts {
    fn from(indices: [isize; N]) -> Cuts {
        Cuts::Indices(indices.to_vec())
    }
}

impl Tensor {
    /// Pieces of `size` along dimension `dim`, the last one smaller if it must be.
    pub fn split(&self, size: usize, dim: isize) -> Result<Vec<Tensor>> {
        Split { size, dim: self.named_dim(Split::NAME, dim)? }.call([self])
    }

    /// Pieces of the given sizes along dimension `dim`.
    pub fn split_with_sizes(&self, sizes: impl Sizes, dim: isize) -> Result<Vec<Tensor>> {
        let (written, dim) = (sizes.written(), self.named_dim(SplitWithSizes::NAME, dim)?);
        let sizes: Option<Dims> = written.iter().map(|&size| usize::try_from(size).ok()).collect();
        let sizes = sizes.ok_or_else(|| {
            let text = format_args!("pieces cannot have sizes {written:?}");
            Error::new(Cause::Argument, SplitWithSizes::NAME, text)
        })?;
        SplitWithSizes { sizes, dim }.call([self])
    }

    /// At most `chunks` pieces of one size along dimension `dim`, the last one smaller if it must be.
    pub fn chunk(&self, chunks: usize, dim: isize) -> Result<Vec<Tensor>> {
        const NAME: &str = "aten::chunk";
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::Int(chunks as i64));
            visit(Argument::Int(dim as i64));
        });
        let dim = self.named_dim(NAME, dim)?;
        let total = cut_size(NAME, self, *dim)?;
        if chunks == 0 {
            return Err(Error::new(Cause::Argument, NAME, "no chunks at all; expected 1 or more"));
        }
        let size = total.div_ceil(chunks);
        if total == 0 {
            // Nothing can be cut into any number of pieces.
            check_count(NAME, chunks)?;
            return SplitWithSizes { sizes: Dims::from_elem(0, chunks), dim }.call([self]);
        }
        Split { size, dim }.call([self])
    }

    /// One tensor per index of dimension `dim`, without that dimension.
    pub fn unbind(&self, dim: isize) -> Result<Vec<Tensor>> {
        Unbind { dim: self.named_dim(Unbind::NAME, dim)? }.call([self])
    }

    /// Pieces along dimension `dim`: so many as even as can be, or cut before given indices.
    pub fn tensor_split(&self, cuts: impl Into<Cuts>, dim: isize) -> Result<Vec<Tensor>> {
        const NAME: &str = "aten::tensor_split";
        let _span = composite(NAME, [self], |_| {});
        let dim = self.dim_index(NAME, dim)?;
        let total = cut_size(NAME, self, dim)?;
        let ends: Vec<isize> = match cuts.into() {
            Cuts::Sections(0) => {
                return Err(Error::new(Cause::Argument, NAME, "no pieces at all; expected 1 or more"));
            }
            Cuts::Sections(sections) => {
                check_count(NAME, sections)?;
                let (even, larger) = (total / sections, total % sections);
                (1..sections).map(|i| (i * even + i.min(larger)) as isize).collect()
            }
            Cuts::Indices(indices) => indices,
        };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let ends = ends.iter().copied().chain([isize::MAX]);
        starts.zip(ends).map(|(start, end)| self.slice(dim as isize, start..end, 1)).collect()
    }

    /// [`tensor_split`](Tensor::tensor_split) where a tensor of integers says: their number if
    /// it has no dimensions, else the indices.
    pub fn tensor_split_at(&self, cuts: &Tensor, dim: isize) -> Result<Vec<Tensor>> {
        let refused = || {
            let text = format_args!(
                "cuts are shape {:?} of {}, expected i64 of at most one dimension, 1 or more if of none",
                cuts.shape(),
                cuts.dtype()
            );
            Error::new(Cause::Argument, "aten::tensor_split", text)
        };
        if cuts.dtype() != crate::DType::I64 || cuts.dim() > 1 {
            return Err(refused());
        }
        let numbers = cuts.to_vec::<i64>()?;
        let indices = numbers.iter().map(|&index| isize::try_from(index).map_err(|_| refused()));
        let indices = indices.collect::<Result<Vec<_>>>()?;
        match indices.as_slice() {
            [sections] if cuts.dim() == 0 => {
                self.tensor_split(usize::try_from(*sections).map_err(|_| refused())?, dim)
            }
            indices => self.tensor_split(indices, dim),
        }
    }

    /// Even pieces, or pieces cut before given indices, along the second dimension; along the
    /// only one of a vector.
    pub fn hsplit(&self, cuts: impl Into<Cuts>) -> Result<Vec<Tensor>> {
        self.split_evenly("aten::hsplit", cuts.into(), 1, if self.dim() == 1 { 0 } else { 1 })
    }

    /// Even pieces, or pieces cut before given indices, along the first dimension.
    pub fn vsplit(&self, cuts: impl Into<Cuts>) -> Result<Vec<Tensor>> {
        self.split_evenly("aten::vsplit", cuts.into(), 2, 0)
    }

    /// Even pieces, or pieces cut before given indices, along the third dimension.
    pub fn dsplit(&self, cuts: impl Into<Cuts>) -> Result<Vec<Tensor>> {
        self.split_evenly("aten::dsplit", cuts.into(), 3, 2)
    }

    fn split_evenly(&self, op: &'static str, cuts: Cuts, rank: usize, dim: usize) -> Result<Vec<Tensor>> {
        let _span = composite(op, [self], |_| {});
        if self.dim() < rank {
            let text = format_args!("expects {rank} dimensions or more, not shape {:?}", self.shape());
            return Err(Error::new(Cause::Shape, op, text));
        }
        if let Cuts::Sections(sections) = cuts
            && (sections == 0 || !self.shape()[dim].is_multiple_of(sections))
        {
            let text = format_args!("{} does not split into {sections} even pieces", self.shape()[dim]);
            return Err(Error::new(Cause::Argument, op, text));
        }
        self.tensor_split(cuts, dim as isize)
    }
}
