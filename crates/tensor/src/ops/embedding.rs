//! Tables whose rows are picked by number.

use super::places::{check_index, out_of_range, pick};
use super::{check_float, select_rows};
use crate::autograd::Saves;
use crate::op::{InPlace, kernel_table};
use crate::{Backward, Cause, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads, no_grad};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, index};

/// The rows of a table that indices name.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// A row that gets no gradient.
    pub padding: Option<usize>,
    /// How many rows the table has.
    pub rows: usize,
    /// Whether a row's gradient is divided by how often it was picked.
    pub scale_by_frequency: bool,
}

impl Op for Embedding {
    const NAME: &'static str = "aten::embedding";
    const BACKWARD: &'static str = "EmbeddingBackward0";
    const SAVES: Saves = Saves::InputsFrom(1);
    /// The table, and the indices.
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let Embedding { padding, rows, scale_by_frequency } = *self;
        let gradient = EmbeddingDenseBackward { padding, rows, scale_by_frequency };
        let _span = composite("aten::embedding_backward", [ctx.grad(), ctx.saved(1)], |visit| {
            gradient.visit_attributes(visit);
            visit(Argument::Bool(false));
        });
        grads!(ctx; gradient.call([ctx.grad(), ctx.saved(1)])?)
    }

    fn arguments(&self, [weight, indices]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(weight.argument()));
        visit(Argument::Tensor(indices.argument()));
        visit(Argument::Int(self.padding.map_or(-1, |row| row as i64)));
        visit(Argument::Bool(self.scale_by_frequency));
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

    /// Torch selects rows by a line of indices.
    fn shown(&self, [weight, indices]: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let spec = self.infer([weight, indices])?;
        let _below = no_grad();
        if indices.dim() == 1 {
            return weight.index_select(0, indices).map(Some);
        }
        let rows = weight.index_select(0, &indices.reshape(-1)?)?;
        let seen = rows.view(&spec.shape[..])?;
        Ok(Some(Tensor::from_parts(rows.storage().clone(), seen.layout().clone(), spec.dtype)))
    }

    fn cpu(&self, [weight, indices]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        pick(weight, &select_rows::slices(Self::NAME, weight, 0, indices)?, out);
        Ok(())
    }
}

/// The gradient of [`Embedding`] for its table.
#[derive(Clone, Debug)]
pub struct EmbeddingDenseBackward {
    /// A row that gets no gradient.
    pub padding: Option<usize>,
    /// How many rows the table has.
    pub rows: usize,
    /// Whether a row's gradient is divided by how often it was picked.
    pub scale_by_frequency: bool,
}

impl Op for EmbeddingDenseBackward {
    const NAME: &'static str = "aten::embedding_dense_backward";
    const BACKWARD: &'static str = "EmbeddingDenseBackwardBackward0";
    const SAVES: Saves = Saves::InputsFrom(1);
    /// The gradient, and the indices.
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        if self.scale_by_frequency {
            let text = "has no second derivative where gradients are divided by frequency";
            return Err(Error::new(Cause::Graph, Self::NAME, text));
        }
        grads!(ctx; {
            let indices = ctx.saved(1);
            let flat = ctx.grad().index_select(0, &indices.reshape([-1])?)?;
            let shape: Vec<isize> = match indices.dim() {
                0 => vec![-1],
                _ => indices.shape().iter().chain(&ctx.grad().shape()[1..]).map(|&size| size as isize).collect(),
            };
            let rows = flat.view(&shape)?;
            match self.padding {
                // The padding row took no part, so nothing comes back from it.
                Some(row) => {
                    let padded = indices.eq(row as i64)?.unsqueeze(-1)?;
                    rows.zeros_like()?.where_(&padded, &rows)?
                }
                None => rows,
            }
        })
    }

    fn arguments(&self, [grad, indices]: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(grad.argument()));
        visit(Argument::Tensor(indices.argument()));
        self.visit_attributes(visit);
    }
}

impl EmbeddingDenseBackward {
    fn visit_attributes(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Int(self.rows as i64));
        visit(Argument::Int(self.padding.map_or(-1, |row| row as i64)));
        visit(Argument::Bool(self.scale_by_frequency));
    }
}

impl Kernel for EmbeddingDenseBackward {
    kernel_table!(EmbeddingDenseBackward);

    fn infer(&self, [grad, indices]: [&Tensor; 2]) -> Result<Spec> {
        check_index(Self::NAME, indices)?;
        check_float(Self::NAME, grad)?;
        let width = grad.shape().last().copied().unwrap_or(1);
        if indices.numel().checked_mul(width) != Some(grad.numel()) {
            let text = format_args!(
                "gradient of shape {:?} for indices of shape {:?}",
                grad.shape(),
                indices.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::new([self.rows, width], grad.dtype()))
    }

    fn shown(&self, [grad, indices]: [&Tensor; 2]) -> Result<Option<Tensor>> {
        let spec = self.infer([grad, indices])?;
        let out = Tensor::zeros(&spec.shape, spec.dtype)?;
        let grad = grad.contiguous()?;
        grad.view([indices.numel(), spec.shape[1]])?;
        self.fill([&grad, indices], &out, out.device())?;
        Ok(Some(out))
    }

    fn cpu(&self, [grad, indices]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        let (reading, picking, mut writing) = (grad.read(), indices.read(), out.write());
        let (grad, indices) = (grad.elements(&reading), indices.elements(&picking));
        let mut out = out.elements_mut(&mut writing);
        index::embedding_backward(grad, indices, self.padding, out.reborrow())
            .map_err(out_of_range(Self::NAME))?;
        if self.scale_by_frequency {
            index::divide_rows_by_count(indices, out);
        }
        Ok(())
    }
}

/// A table with the rows that indices name made no longer than a norm.
#[derive(Clone, Debug)]
pub struct EmbeddingRenorm {
    /// How long a row may be.
    pub max_norm: f64,
    /// Which norm: `(sum |x|^p)^(1/p)`.
    pub norm: f64,
}

impl Op for EmbeddingRenorm {
    const NAME: &'static str = "aten::embedding_renorm";
    /// The table, and the indices.
    type Inputs<'a> = [&'a Tensor; 2];
    type Output = Tensor;

    fn arguments(&self, inputs: [&Tensor; 2], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        visit(Argument::Float(self.max_norm));
        visit(Argument::Float(self.norm));
    }
}

impl Kernel for EmbeddingRenorm {
    kernel_table!(EmbeddingRenorm);

    fn infer(&self, [weight, indices]: [&Tensor; 2]) -> Result<Spec> {
        check_index(Self::NAME, indices)?;
        check_float(Self::NAME, weight)?;
        if weight.dim() == 2 {
            return Ok(Spec::like(weight));
        }
        let text = format_args!("expects a table of two dimensions, not shape {:?}", weight.shape());
        Err(Error::new(Cause::Shape, Self::NAME, text))
    }

    fn cpu(&self, [weight, indices]: [&Tensor; 2], out: &Tensor) -> Result<()> {
        super::places::start(weight, out)?;
        self.cpu_in_place([out, indices])
    }
}

impl InPlace for EmbeddingRenorm {
    const IN_PLACE: &'static str = "aten::embedding_renorm_";
    kernel_table!(in place EmbeddingRenorm);

    fn cpu_in_place(&self, [weight, indices]: [&Tensor; 2]) -> Result<()> {
        if indices.numel() == 0 {
            // An index of nothing may be a view of the table itself, which would be locked twice.
            return Ok(());
        }
        let ([mut writing], picking) = crate::cpu::lock_all([weight], indices);
        index::renormalize(
            weight.elements_mut(&mut writing),
            indices.elements(&picking),
            self.max_norm,
            self.norm,
        )
        .map_err(out_of_range(Self::NAME))
    }
}

impl Tensor {
    /// The rows of this table that `indices` name; row `padding`, counted from the back if negative, gets
    /// no gradient.
    pub fn embedding(&self, indices: &Tensor, padding: Option<isize>) -> Result<Tensor> {
        self.embedding_scaled(indices, padding, false)
    }

    /// As [`embedding`](Tensor::embedding); the gradient of each row is divided by how often it was picked
    /// if `scale_by_frequency` says so.
    pub fn embedding_scaled(
        &self,
        indices: &Tensor,
        padding: Option<isize>,
        scale_by_frequency: bool,
    ) -> Result<Tensor> {
        let rows = self.shape().first().copied().unwrap_or(0);
        let row = |padding: isize| {
            let row = if padding < 0 { padding.checked_add_unsigned(rows) } else { Some(padding) };
            let row = row.and_then(|row| usize::try_from(row).ok()).filter(|&row| row < rows);
            row.ok_or_else(|| {
                let text = format_args!("padding row {padding} is out of range for a table of {rows} rows");
                Error::new(Cause::Index, Embedding::NAME, text)
            })
        };
        let padding = padding.map(row).transpose()?;
        Embedding { padding, rows, scale_by_frequency }.call([self, indices])
    }

    /// Makes the rows of this table that `indices` name no longer than `max_norm` by the given norm, in
    /// place and without a trace in the graph.
    pub fn embedding_renorm_(&self, indices: &Tensor, max_norm: f64, norm: f64) -> Result<()> {
        let _unrecorded = no_grad();
        EmbeddingRenorm { max_norm, norm }.call_in_place([self, indices])
    }
}
