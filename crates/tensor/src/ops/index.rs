//! Rows picked and added to by index.

use super::{check_dims, check_float};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, cpu, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, OutOfRange, elementwise, index};

fn out_of_range(op: &'static str, error: OutOfRange) -> Error {
    Error::new(Cause::Index, op, error)
}

fn check_index(op: &'static str, index: &Tensor) -> Result<()> {
    if matches!(index.dtype(), DType::I64 | DType::I32) {
        return Ok(());
    }
    Err(Error::new(Cause::DType, op, format_args!("expects indices of i64 or i32, not {}", index.dtype())))
}

/// The slices of a tensor along one dimension, in the order that an index names them.
#[derive(Clone, Debug)]
pub struct IndexSelect {
    /// Which dimension.
    pub dim: usize,
    /// The shape of the input.
    pub from: Dims,
}

impl Op for IndexSelect {
    const NAME: &'static str = "aten::index_select";
    const BACKWARD: &'static str = "IndexSelectBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let zeros = Tensor::zeros(&self.from, (ctx.grad().dtype(), ctx.grad().device()))?;
        grads!(ctx; zeros.index_add(self.dim as isize, ctx.saved(1), ctx.grad())?)
    }

    fn arguments(&self, [x, index]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.dim as i64));
        visit(Argument::Tensor(index.argument()));
    }
}

impl Kernel for IndexSelect {
    kernel_table!(IndexSelect);

    fn infer(&self, [x, index]: [&Tensor; 2]) -> Result<Spec> {
        check_index(Self::NAME, index)?;
        let &[count] = index.shape() else {
            let text = format_args!("expects an index of one dimension, not shape {:?}", index.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        check_dims(Self::NAME, &[self.dim], x)?;
        let mut shape = Dims::from_slice(x.shape());
        match shape.get_mut(self.dim) {
            Some(size) => *size = count,
            None if count == 1 => {}
            None => {
                let text = format_args!("a tensor without dimensions has one element, not {count}");
                return Err(Error::new(Cause::Index, Self::NAME, text));
            }
        }
        Ok(Spec { shape, dtype: x.dtype() })
    }

    fn cpu(&self, [x, index]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (reading, indices, mut writing) = (x.read(), index.read(), out.write());
        index::index_select(
            x.elements(&reading),
            self.dim,
            index.elements(&indices),
            out.elements_mut(&mut writing),
        )
        .map_err(|error| out_of_range(Self::NAME, error))
    }
}

/// A tensor with slices of another added where an index says.
#[derive(Clone, Debug)]
pub struct IndexAdd {
    /// Which dimension.
    pub dim: usize,
}

impl Op for IndexAdd {
    const NAME: &'static str = "aten::index_add";
    const BACKWARD: &'static str = "IndexAddBackward0";
    const SAVES: Saves = Saves::Inputs;
    /// The tensor, what is added, and the index.
    type Inputs<'a> = [&'a Tensor; 3];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().clone(), ctx.grad().index_select(self.dim as isize, ctx.saved(2))?)
    }

    fn arguments(&self, [x, source, index]: [&Tensor; 3], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.dim as i64));
        visit(Argument::Tensor(index.argument()));
        visit(Argument::Tensor(source.argument()));
        visit(Argument::Int(1));
    }
}

impl Kernel for IndexAdd {
    kernel_table!(IndexAdd);

    fn infer(&self, [x, source, index]: [&Tensor; 3]) -> Result<Spec> {
        check_index(Self::NAME, index)?;
        check_dims(Self::NAME, &[self.dim], x)?;
        if index.dim() > 1 || x.dim() == 0 || x.dtype() == DType::Bool {
            let text = format_args!(
                "expects numbers with dimensions and an index of one, not {} {:?} and an index of shape {:?}",
                x.dtype(),
                x.shape(),
                index.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        let mut expected = Dims::from_slice(x.shape());
        if let Some(size) = expected.get_mut(self.dim) {
            *size = index.numel();
        }
        if source.shape() != &expected[..] || source.dtype() != x.dtype() {
            let text = format_args!(
                "expects a source of {} and shape {:?}, not {} and {:?}",
                x.dtype(),
                &expected[..],
                source.dtype(),
                source.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::like(x))
    }

    fn cpu(&self, [x, source, index]: [&Tensor; 3], out: &Tensor) -> Result<()> {
        cpu::map(x, x.dtype(), out, elementwise::copy)?;
        let (indices, sources, mut writing) = (index.read(), source.read(), out.write());
        let (index, source) = (index.elements(&indices), source.elements(&sources));
        index::index_add(out.elements_mut(&mut writing), self.dim, index, source)
            .map_err(|error| out_of_range(Self::NAME, error))
    }
}

/// The rows of a table that indices name.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// A row that gets no gradient.
    pub padding: Option<usize>,
    /// How many rows the table has.
    pub rows: usize,
}

impl Op for Embedding {
    const NAME: &'static str = "aten::embedding";
    const BACKWARD: &'static str = "EmbeddingBackward0";
    const SAVES: Saves = Saves::Inputs;
    /// The table, and the indices.
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let gradient = EmbeddingDenseBackward { padding: self.padding, rows: self.rows };
        grads!(ctx; gradient.call([ctx.grad(), ctx.saved(1)])?)
    }

    fn arguments(&self, [weight, indices]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(weight.argument()));
        visit(Argument::Tensor(indices.argument()));
        visit(Argument::Int(self.padding.map_or(-1, |row| row as i64)));
        visit(Argument::Bool(false));
        visit(Argument::Bool(false));
    }
}

impl Kernel for Embedding {
    kernel_table!(Embedding);

    fn infer(&self, [weight, indices]: [&Tensor; 2]) -> Result<Spec> {
        check_index(Self::NAME, indices)?;
        let &[_, width] = weight.shape() else {
            let text = format_args!("expects a table of two dimensions, not shape {:?}", weight.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        let mut shape = Dims::from_slice(indices.shape());
        shape.push(width);
        Ok(Spec { shape, dtype: weight.dtype() })
    }

    fn cpu(&self, [weight, indices]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (reading, picking, mut writing) = (weight.read(), indices.read(), out.write());
        index::embedding(
            weight.elements(&reading),
            indices.elements(&picking),
            out.elements_mut(&mut writing),
        )
        .map_err(|error| out_of_range(Self::NAME, error))
    }
}

/// The gradient of [`Embedding`] for its table.
#[derive(Clone, Debug)]
pub struct EmbeddingDenseBackward {
    /// A row that gets no gradient.
    pub padding: Option<usize>,
    /// How many rows the table has.
    pub rows: usize,
}

impl Op for EmbeddingDenseBackward {
    const NAME: &'static str = "aten::embedding_dense_backward";
    const BACKWARD: &'static str = "EmbeddingDenseBackwardBackward0";
    const SAVES: Saves = Saves::Inputs;
    /// The gradient, and the indices.
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let indices = ctx.saved(1);
        let rows = Embedding { padding: self.padding, rows: self.rows }.call([ctx.grad(), indices])?;
        grads!(ctx; match self.padding {
            // The padding row took no part, so nothing comes back from it.
            Some(row) => {
                let padded = indices.eq(row as i64)?.unsqueeze(-1)?;
                rows.zeros_like()?.where_(&padded, &rows)?
            }
            None => rows,
        })
    }
}

impl Kernel for EmbeddingDenseBackward {
    kernel_table!(EmbeddingDenseBackward);

    fn infer(&self, [grad, indices]: [&Tensor; 2]) -> Result<Spec> {
        check_index(Self::NAME, indices)?;
        check_float(Self::NAME, grad)?;
        let width = grad.shape().last().copied().unwrap_or(1);
        if grad.numel() != indices.numel() * width {
            let text = format_args!(
                "gradient of shape {:?} for indices of shape {:?}",
                grad.shape(),
                indices.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::new([self.rows, width], grad.dtype()))
    }

    fn cpu(&self, [grad, indices]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (reading, picking, mut writing) = (grad.read(), indices.read(), out.write());
        let (grad, indices) = (grad.elements(&reading), indices.elements(&picking));
        index::embedding_backward(grad, indices, self.padding, out.elements_mut(&mut writing))
            .map_err(|error| out_of_range(Self::NAME, error))
    }
}

impl Tensor {
    /// The slices along `dim` that `index` names, in its order.
    pub fn index_select(&self, dim: isize, index: &Tensor) -> Result<Tensor> {
        let dim = self.dim_index(IndexSelect::NAME, dim)?;
        IndexSelect { dim, from: self.shape().into() }.call([self, index])
    }

    /// This tensor with the slices of `source` added along `dim` where `index` says.
    pub fn index_add(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let dim = self.dim_index(IndexAdd::NAME, dim)?;
        IndexAdd { dim }.call([self, source, index])
    }

    /// The rows of this table that `indices` name; row `padding` gets no gradient.
    pub fn embedding(&self, indices: &Tensor, padding: Option<usize>) -> Result<Tensor> {
        let rows = self.shape().first().copied().unwrap_or(0);
        Embedding { padding, rows }.call([self, indices])
    }
}
