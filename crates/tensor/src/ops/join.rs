//! Several tensors made one.

use crate::op::{Forward, kernel_table};
use crate::promote::promote;
use crate::{
    Backward, Cause, Device, Error, Grads, Kernel, NamedDim, Op, Result, Spec, Tensor, composite, cpu, shown,
};
use cresset_dispatch::observe::{self, Argument, TensorArgument};
use cresset_kernels::{Dims, elementwise};

/// Tensors one after the other along a dimension.
#[derive(Clone, Debug)]
pub struct Cat {
    /// The dimension along which they may differ in size.
    pub dim: NamedDim,
    /// The size of each along it.
    pub sizes: Dims,
}

/// A vector of nothing joins tensors of any shape, and adds nothing to them.
fn is_nothing(shape: &[usize]) -> bool {
    shape == [0]
}

impl Cat {
    fn new(tensors: &[&Tensor], dim: impl Into<NamedDim>) -> Cat {
        let dim = dim.into();
        let size = |tensor: &&Tensor| if is_nothing(tensor.shape()) { 0 } else { along(tensor, *dim) };
        Cat { dim, sizes: tensors.iter().map(size).collect() }
    }
}

impl Cat {
    /// What torch does on its way. It copies plain floats at once, tensors of one layout through the first
    /// piece of the output, and all others piece by piece, converted in memory of their own.
    fn show(&self, tensors: &[&Tensor], out: &Tensor) -> Result<()> {
        let same_type = tensors.iter().all(|tensor| tensor.dtype() == out.dtype());
        let filled = || tensors.iter().zip(&self.sizes).filter(|(tensor, _)| !is_nothing(tensor.shape()));
        let skips = filled().count() < tensors.len();
        let plain = !skips && filled().all(|(tensor, _)| tensor.is_contiguous());
        if out.numel() == 0 || (plain && same_type && out.dtype().is_float()) {
            return Ok(());
        }
        let first = tensors[0];
        let like_first =
            |tensor: &Tensor| (tensor.shape(), tensor.strides()) == (first.shape(), first.strides());
        let alike = same_type && !skips && filled().all(|(tensor, _)| like_first(tensor));
        let mut start = 0;
        for (tensor, &size) in filled().take(if alike { 1 } else { usize::MAX }) {
            let piece = out.narrow(*self.dim as isize, start, size)?;
            start += size as isize;
            if tensor.dtype() != out.dtype() {
                let _copy = shown::empty_like_as(&piece, tensor.dtype())?;
                piece.copy_(tensor)?;
            }
        }
        Ok(())
    }
}

fn along(tensor: &Tensor, dim: usize) -> usize {
    tensor.shape().get(dim).copied().unwrap_or(0)
}

impl Op for Cat {
    const NAME: &'static str = "aten::cat";
    const BACKWARD: &'static str = "CatBackward0";
    type Inputs<'a> = &'a [&'a Tensor];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let mut start = 0;
        let piece = |(i, &size): (usize, &usize)| {
            let from = start;
            start += size;
            match () {
                // Torch looks at all pieces, wanted or not.
                () if !ctx.needs(i) && !observe::is_watched() => Ok(None),
                () if !ctx.needs(i) => {
                    ctx.grad().narrow(*self.dim as isize, from as isize, size).map(|_| None)
                }
                () if is_nothing(ctx.shape(i)) => {
                    Tensor::zeros([0], (ctx.dtype(i), ctx.grad().device())).map(Some)
                }
                () => ctx.grad().narrow(*self.dim as isize, from as isize, size).map(Some),
            }
        };
        self.sizes.iter().enumerate().map(piece).collect()
    }

    fn arguments(&self, inputs: &[&Tensor], visit: &mut dyn FnMut(Argument<'_>)) {
        visit_list(inputs, visit);
        visit(self.dim.argument());
    }
}

/// Visits a list of tensors as one argument.
fn visit_list(tensors: &[&Tensor], visit: &mut dyn FnMut(Argument<'_>)) {
    let tensors: Vec<TensorArgument<'_>> = tensors.iter().map(|tensor| tensor.argument()).collect();
    visit(Argument::Tensors(&tensors));
}

impl Kernel for Cat {
    kernel_table!(Cat);

    fn infer(&self, tensors: &[&Tensor]) -> Result<Spec> {
        let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Shape, Self::NAME, text));
        let Some(first) = tensors.first() else {
            return refused(format_args!("expects at least one tensor"));
        };
        let dtype = tensors.iter().fold(first.dtype(), |dtype, tensor| promote(dtype, tensor.dtype()));
        if let Some(at) = tensors.iter().position(|tensor| tensor.dim() == 0) {
            return refused(format_args!("tensor {at} has no dimensions; use stack()"));
        }
        let mut filled = tensors.iter().filter(|tensor| !is_nothing(tensor.shape()));
        let Some(like) = filled.next() else { return Ok(Spec::new([0], dtype)) };
        let mut shape = Dims::from_slice(like.shape());
        let fits = |tensor: &&Tensor| {
            let same = |at: usize| at == *self.dim || tensor.shape()[at] == shape[at];
            tensor.dim() == shape.len() && (0..shape.len()).all(same)
        };
        if *self.dim >= shape.len() || !filled.all(fits) {
            let shapes: Vec<_> = tensors.iter().map(|tensor| tensor.shape()).collect();
            return refused(format_args!("shapes {shapes:?} differ not only in dimension {}", *self.dim));
        }
        if self.sizes != Cat::new(tensors, self.dim).sizes {
            return refused(format_args!("sizes along {} are not {:?}", *self.dim, &self.sizes[..]));
        }
        match self.sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)) {
            Some(sum) => shape[*self.dim] = sum,
            None => return refused(format_args!("sizes {:?} are too many to count", &self.sizes[..])),
        }
        Ok(Spec { shape, dtype })
    }

    fn shown(&self, tensors: &[&Tensor]) -> Result<Option<Tensor>> {
        let out = self.room(tensors)?;
        self.show(tensors, &out)?;
        self.fill(tensors, &out, Device::CPU)?;
        Ok(Some(out))
    }

    fn cpu(&self, tensors: &[&Tensor], out: &Tensor) -> Result<()> {
        let mut start = 0;
        for (tensor, &size) in tensors.iter().zip(&self.sizes).filter(|(_, size)| **size > 0) {
            let layout = out.layout().narrow(*self.dim, start, size);
            let piece = out.with_layout(layout);
            cpu::map(tensor, tensor.dtype(), &piece, elementwise::copy)?;
            start += size;
        }
        Ok(())
    }
}

/// Tensors of one shape along a new dimension.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The new dimension.
    pub dim: NamedDim,
}

impl Op for Stack {
    const NAME: &'static str = "aten::stack";
    const BACKWARD: &'static str = "StackBackward0";
    type Inputs<'a> = &'a [&'a Tensor];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let piece = |i: usize| match ctx.needs(i) || observe::is_watched() {
            true => ctx.grad().select(self.dim.named(), i as isize).map(|grad| ctx.needs(i).then_some(grad)),
            false => Ok(None),
        };
        (0..ctx.inputs()).map(piece).collect()
    }

    fn arguments(&self, inputs: &[&Tensor], visit: &mut dyn FnMut(Argument<'_>)) {
        visit_list(inputs, visit);
        visit(self.dim.argument());
    }
}

impl Forward for Stack {
    fn forward(&self, tensors: &[&Tensor]) -> Result<Tensor> {
        let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Shape, Self::NAME, text));
        let Some(first) = tensors.first() else {
            return refused(format_args!("expects at least one tensor"));
        };
        if let Some(other) = tensors.iter().find(|tensor| tensor.shape() != first.shape()) {
            let (one, other) = (first.shape(), other.shape());
            return refused(format_args!("expects tensors of one shape, not {one:?} and {other:?}"));
        }
        if *self.dim < first.dim() && first.shape() != [0] {
            // Rows of what was joined are split off again, which is cheaper than new dimensions.
            let mut shape = Dims::from_slice(first.shape());
            shape.insert(*self.dim, tensors.len());
            return Ok(Cat::new(tensors, *self.dim).call(tensors)?.view(shape)?.alias());
        }
        let rows =
            tensors.iter().map(|tensor| tensor.unsqueeze(self.dim.named())).collect::<Result<Vec<_>>>()?;
        let rows: Vec<&Tensor> = rows.iter().collect();
        Cat::new(&rows, self.dim).call(&rows)
    }
}

impl Tensor {
    /// Tensors one after the other along dimension `dim`; their other sizes are the same.
    pub fn cat(tensors: &[&Tensor], dim: isize) -> Result<Tensor> {
        let rank = tensors.iter().find(|tensor| !is_nothing(tensor.shape())).map_or(1, |tensor| tensor.dim());
        let at = super::dim_index(Cat::NAME, dim, rank)?;
        Cat::new(tensors, NamedDim::new(at, dim)).call(tensors)
    }

    /// Tensors of one shape along a new dimension `dim`.
    pub fn stack(tensors: &[&Tensor], dim: isize) -> Result<Tensor> {
        let rank = tensors.first().map_or(0, |tensor| tensor.dim()) + 1;
        let at = super::dim_index(Stack::NAME, dim, rank)?;
        Stack { dim: NamedDim::new(at, dim) }.call(tensors)
    }

    /// Tensors side by side: along the second dimension, or the only one of vectors.
    pub fn hstack(tensors: &[&Tensor]) -> Result<Tensor> {
        let dim = |rows: &[Tensor]| if rows.first().is_some_and(|row| row.dim() == 1) { 0 } else { 1 };
        join_raised("aten::hstack", tensors, Tensor::atleast_1d, dim)
    }

    /// Tensors on top of each other: along the first dimension, vectors as rows.
    pub fn vstack(tensors: &[&Tensor]) -> Result<Tensor> {
        join_raised("aten::vstack", tensors, Tensor::atleast_2d, |_| 0)
    }

    /// Tensors behind each other: along the third dimension.
    pub fn dstack(tensors: &[&Tensor]) -> Result<Tensor> {
        join_raised("aten::dstack", tensors, Tensor::atleast_3d, |_| 2)
    }

    /// Tensors side by side, vectors as columns.
    pub fn column_stack(tensors: &[&Tensor]) -> Result<Tensor> {
        let column = |x: &Tensor| if x.dim() <= 1 { x.reshape([x.numel(), 1]) } else { Ok(x.clone()) };
        let _span = composite("aten::column_stack", tensors, |_| {});
        join_raised("aten::hstack", tensors, column, |_| 1)
    }

    /// Matrices along the diagonal of one, with zeros elsewhere; vectors count as rows.
    pub fn block_diag(tensors: &[&Tensor]) -> Result<Tensor> {
        const NAME: &str = "aten::block_diag";
        let _span = composite(NAME, tensors, |_| {});
        if let Some(tensor) = tensors.iter().find(|tensor| tensor.dim() > 2) {
            let text = format_args!("expects at most two dimensions, not shape {:?}", tensor.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        let blocks = tensors.iter().map(|tensor| tensor.atleast_2d()).collect::<Result<Vec<_>>>()?;
        let width: usize = blocks.iter().map(|block| block.shape()[1]).sum();
        let mut start = 0;
        let mut rows = Vec::with_capacity(blocks.len());
        for block in &blocks {
            let end = start + block.shape()[1];
            rows.push(block.constant_pad_nd(&[start as isize, (width - end) as isize], 0)?);
            start = end;
        }
        match rows.iter().collect::<Vec<_>>().as_slice() {
            [] => Tensor::zeros([1, 0], ()),
            rows => Tensor::cat(rows, 0),
        }
    }

    /// All combinations of the elements of some vectors, one per row.
    pub fn cartesian_prod(tensors: &[&Tensor]) -> Result<Tensor> {
        const NAME: &str = "aten::cartesian_prod";
        let _span = composite(NAME, tensors, |_| {});
        if let Some(tensor) = tensors.iter().find(|tensor| tensor.dim() != 1) {
            let text = format_args!("expects vectors, not shape {:?}", tensor.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        if let [only] = tensors {
            return Ok((*only).clone());
        }
        let grids = Tensor::meshgrid(tensors, super::Indexing::Matrix)?;
        let columns = grids.iter().map(|grid| grid.flatten(0, -1)).collect::<Result<Vec<_>>>()?;
        Tensor::stack(&columns.iter().collect::<Vec<_>>(), 1)
    }
}

/// Joins tensors after each was given the dimensions that it lacks.
fn join_raised(
    op: &'static str,
    tensors: &[&Tensor],
    raise: impl Fn(&Tensor) -> Result<Tensor>,
    dim: impl FnOnce(&[Tensor]) -> isize,
) -> Result<Tensor> {
    let _span = composite(op, tensors, |_| {});
    if tensors.is_empty() {
        return Err(Error::new(Cause::Argument, op, "expects at least one tensor"));
    }
    let raised = tensors.iter().map(|tensor| raise(tensor)).collect::<Result<Vec<_>>>()?;
    Tensor::cat(&raised.iter().collect::<Vec<_>>(), dim(&raised))
}
