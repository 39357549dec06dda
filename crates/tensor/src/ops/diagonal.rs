//! Diagonals, and matrices made of them.

use super::part::{Embed, Part, Replace, view_of_part};
use crate::op::Forward;
use crate::{Backward, Cause, Error, Grads, Layout, Op, Result, Tensor, composite, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// The diagonal of two dimensions, as the last dimension.
#[derive(Clone, Debug)]
pub struct Diagonal {
    /// How far above the main diagonal; below if negative.
    pub offset: isize,
    /// The dimension of the rows.
    pub dim1: usize,
    /// The dimension of the columns.
    pub dim2: usize,
}

view_of_part!(Diagonal: "aten::diagonal", "DiagonalBackward0");

impl Part for Diagonal {
    const EMBED: [&'static str; 2] = ["aten::diagonal_backward", "DiagonalBackwardBackward0"];
    const SCATTER: [&'static str; 2] = ["aten::diagonal_scatter", "DiagonalScatterBackward0"];

    fn pick(&self, whole: &Layout) -> Result<Layout> {
        let (rank, dims) = (whole.rank(), [self.dim1, self.dim2]);
        if self.dim1 == self.dim2 || dims.iter().any(|&dim| dim >= rank) {
            let text = format_args!("shape {:?} has no diagonal of dimensions {dims:?}", whole.shape());
            return Err(Error::new(Cause::Index, Self::NAME, text));
        }
        Ok(whole.diagonal(self.dim1, self.dim2, self.offset))
    }

    fn attributes(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Int(self.offset as i64));
        visit(Argument::Int(self.dim1 as i64));
        visit(Argument::Int(self.dim2 as i64));
    }
}

/// Zeros but for a diagonal, along which the last dimension of the input lies.
#[derive(Clone, Debug)]
pub struct DiagEmbed {
    /// Where it lies.
    pub diagonal: Diagonal,
}

impl Op for DiagEmbed {
    const NAME: &'static str = "aten::diag_embed";
    const BACKWARD: &'static str = "DiagEmbedBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; self.diagonal.clone().call([ctx.grad()])?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        self.diagonal.attributes(visit);
    }
}

impl Forward for DiagEmbed {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let Diagonal { offset, dim1, dim2 } = self.diagonal;
        let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Shape, Self::NAME, text));
        let Some((&last, rest)) = x.shape().split_last() else {
            return refused(format_args!("expects at least one dimension"));
        };
        let Some(side) = last.checked_add(offset.unsigned_abs()) else {
            return refused(format_args!("a diagonal {offset} off makes a matrix too large to count"));
        };
        let mut shape = Dims::from_slice(rest);
        for dim in [dim1.min(dim2), dim1.max(dim2)] {
            if dim > shape.len() {
                return refused(format_args!("there is no dimension {dim} in shape {:?}", x.shape()));
            }
            shape.insert(dim, side);
        }
        let out = Tensor::zeros(shape, (x.dtype(), x.device()))?;
        self.diagonal.clone().call([&out])?.copy_(x)?;
        Ok(out)
    }
}

impl Tensor {
    /// The diagonal of dimensions `dim1` and `dim2` that lies `offset` above the main one, as the
    /// last dimension.
    pub fn diagonal(&self, offset: isize, dim1: isize, dim2: isize) -> Result<Tensor> {
        self.diagonal_of(Diagonal::NAME, self.dim(), offset, dim1, dim2)?.call([self])
    }

    fn diagonal_of(
        &self,
        op: &'static str,
        rank: usize,
        offset: isize,
        dim1: isize,
        dim2: isize,
    ) -> Result<Diagonal> {
        let (dim1, dim2) = (super::dim_index(op, dim1, rank)?, super::dim_index(op, dim2, rank)?);
        if dim1 == dim2 {
            let text = format_args!("a diagonal has two dimensions, not {dim1} twice");
            return Err(Error::new(Cause::Argument, op, text));
        }
        Ok(Diagonal { offset, dim1, dim2 })
    }

    /// This tensor with `source` in the place of [`diagonal`](Tensor::diagonal)'s result.
    pub fn diagonal_scatter(
        &self,
        source: &Tensor,
        offset: isize,
        dim1: isize,
        dim2: isize,
    ) -> Result<Tensor> {
        let part = self.diagonal_of(Diagonal::SCATTER[0], self.dim(), offset, dim1, dim2)?;
        Replace { part }.call([self, source])
    }

    /// Zeros but for the diagonal of new dimensions `dim1` and `dim2`, along which the last
    /// dimension of this tensor lies.
    pub fn diag_embed(&self, offset: isize, dim1: isize, dim2: isize) -> Result<Tensor> {
        let diagonal = self.diagonal_of(DiagEmbed::NAME, self.dim() + 1, offset, dim1, dim2)?;
        DiagEmbed { diagonal }.call([self])
    }

    /// A matrix with this vector on a diagonal, or a copy of this matrix's diagonal.
    pub fn diag(&self, offset: isize) -> Result<Tensor> {
        const NAME: &str = "aten::diag";
        let _span = composite(NAME, [self], |visit| visit(Argument::Int(offset as i64)));
        match self.dim() {
            1 => self.diag_embed(offset, 0, 1),
            2 => self.diagonal(offset, 0, 1)?.copy(),
            _ => {
                let text = format_args!("expects one or two dimensions, not shape {:?}", self.shape());
                Err(Error::new(Cause::Shape, NAME, text))
            }
        }
    }

    /// A matrix with all elements of this tensor on a diagonal.
    pub fn diagflat(&self, offset: isize) -> Result<Tensor> {
        let _span = composite("aten::diagflat", [self], |visit| visit(Argument::Int(offset as i64)));
        self.contiguous()?.view(-1)?.diag(offset)
    }
}
