//! Rows of a table put into bags, and what becomes of each bag.

use super::check_float;
use super::places::{check_index, out_of_range};
use super::scatter_reduce::Combine;
use crate::autograd::Saves;
use crate::op::{self, Inputs as _, kernel_table};
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Op, Result, Spec, Tensor, composite};
use cresset_dispatch::observe::Argument;
use cresset_kernels::index::{self, Bags};

pub use cresset_kernels::index::Bagging;

/// What becomes of bags of rows, and how gradients come back.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingBagging {
    /// What becomes of the rows of a bag.
    pub mode: Bagging,
    /// A row that is in no bag.
    pub padding: Option<usize>,
    /// Whether a row's gradient is divided by how often it was picked.
    pub scale_by_frequency: bool,
}

/// What becomes of the rows in each bag; for maxima, also which rows they are of.
#[derive(Clone, Debug)]
pub struct EmbeddingBag(pub EmbeddingBagging);

/// The table, indices and where bags begin; a weight per index.
type Bagged<'a> = ([&'a Tensor; 3], Option<&'a Tensor>);

fn check_bags(op: &'static str, indices: &Tensor, offsets: &Tensor) -> Result<()> {
    check_index(op, indices)?;
    check_index(op, offsets)?;
    if indices.dim() == 1 && offsets.dim() == 1 {
        return Ok(());
    }
    let text = format_args!(
        "expects indices and offsets of one dimension, not shapes {:?} and {:?}",
        indices.shape(),
        offsets.shape()
    );
    Err(Error::new(Cause::Shape, op, text))
}

fn check_weights(op: &'static str, table: &Tensor, indices: &Tensor, weights: Option<&Tensor>) -> Result<()> {
    match weights {
        Some(weights) if weights.shape() != indices.shape() || weights.dtype() != table.dtype() => {
            let text = format_args!(
                "expects a weight of {} for each of {:?} indices, not {} {:?}",
                table.dtype(),
                indices.shape(),
                weights.dtype(),
                weights.shape()
            );
            Err(Error::new(Cause::Shape, op, text))
        }
        _ => Ok(()),
    }
}

impl EmbeddingBagging {
    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Bool(self.scale_by_frequency));
        visit(Argument::Int(match self.mode {
            Bagging::Sum => 0,
            Bagging::Mean => 1,
            Bagging::Max => 2,
        }));
        visit(Argument::Int(self.padding.map_or(-1, |row| row as i64)));
    }

    fn bags(&self, op: &'static str, indices: &Tensor, offsets: &Tensor, rows: usize) -> Result<Bags> {
        let (reading, starting) = (indices.read(), offsets.read());
        let (indices, offsets) = (indices.elements(&reading), offsets.elements(&starting));
        Bags::new(indices, offsets, rows, self.padding).map_err(out_of_range(op))
    }
}

impl EmbeddingBagging {
    /// The same made of other operators, where a device has no kernel for it.
    fn pieces(
        self,
        table: &Tensor,
        indices: &Tensor,
        offsets: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (count, shape) = (indices.numel(), [offsets.numel(), table.shape()[1]]);
        let out = Tensor::zeros(shape, (table.dtype(), table.device()))?;
        if count == 0 || shape[0] == 0 {
            return Ok(out);
        }
        // The bag of each index: the last one that begins at it or before.
        let places = Tensor::arange_with(count, (offsets.dtype(), table.device()))?;
        let bags = offsets.searchsorted(&places, true)?.sub(1)?;
        let indices = indices.to_dtype(DType::I64)?;
        let padding = self.padding.map(|row| row as isize);
        let mut rows = table.embedding_scaled(&indices, padding, self.scale_by_frequency)?;
        let mut counts = indices.ones_like()?;
        let padding = self.padding.map(|row| indices.eq(row as i64)).transpose()?;
        if let Some(padding) = &padding {
            counts = counts.masked_fill(padding, 0)?;
        }
        let column = |x: &Tensor| x.to_dtype(table.dtype())?.unsqueeze(1);
        if self.mode == Bagging::Max {
            // What is padding is as if it were not there.
            let (rows, bags) = match &padding {
                Some(padding) => {
                    let kept = padding.logical_not()?.nonzero()?.squeeze_dim(1)?;
                    (rows.index_select(0, &kept)?, bags.index_select(0, &kept)?)
                }
                None => (rows, bags),
            };
            return out.index_reduce(0, &bags, &rows, Combine::Largest, false);
        }
        if let Some(weights) = weights {
            rows = rows.mul(&column(weights)?)?;
        }
        let sums = out.index_add(0, &bags, &rows.mul(&column(&counts)?)?)?;
        if self.mode == Bagging::Sum {
            return Ok(sums);
        }
        let sizes = Tensor::zeros([shape[0]], (DType::I64, table.device()))?.index_add(0, &bags, &counts)?;
        sums.div(&column(&sizes.clamp_min(1)?)?)
    }
}

impl Op for EmbeddingBag {
    const NAME: &'static str = "aten::_embedding_bag";
    const BACKWARD: &'static str = "EmbeddingBagBackward0";
    const SAVES: Saves = Saves::Both;
    const DIFFERENTIABLE: usize = 1;
    type Inputs<'a> = Bagged<'a>;
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (table, indices, offsets, weights) = (ctx.saved(0), ctx.saved(1), ctx.saved(2), ctx.optional(3));
        let mut grads = Grads::from_elem(None, 4);
        if ctx.needs(0) {
            let gradient = EmbeddingBagDenseBackward { bagging: self.0, rows: table.shape()[0] };
            grads[0] = Some(gradient.call(([ctx.grad(), indices, offsets, ctx.saved(5)], weights))?);
        }
        if ctx.needs(3) {
            let gradient = EmbeddingBagWeightsBackward(self.0);
            grads[3] = Some(gradient.call([ctx.grad(), table, indices, offsets])?);
        }
        Ok(grads)
    }

    fn arguments(&self, inputs: Bagged<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|given| visit(given.into_argument()));
        self.0.arguments(visit);
    }
}

impl Kernel for EmbeddingBag {
    kernel_table!(EmbeddingBag);

    fn infer(&self, ([table, indices, offsets], weights): Bagged<'_>) -> Result<[Spec; 2]> {
        check_float(Self::NAME, table)?;
        check_bags(Self::NAME, indices, offsets)?;
        check_weights(Self::NAME, table, indices, weights)?;
        let &[_, width] = table.shape() else {
            let text = format_args!("expects a table of two dimensions, not shape {:?}", table.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        if weights.is_some() && self.0.mode != Bagging::Sum {
            let text = format_args!("only sums are weighted, not {:?}", self.0.mode);
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        let shape = [offsets.numel(), width];
        let largest: &[usize] = if self.0.mode == Bagging::Max { &shape } else { &[0] };
        Ok([Spec::new(shape, table.dtype()), Spec::new(largest, DType::I64)])
    }

    fn cpu(
        &self,
        ([table, indices, offsets], weights): Bagged<'_>,
        [out, largest]: &[Tensor; 2],
    ) -> Result<()> {
        let bags = self.0.bags(Self::NAME, indices, offsets, table.shape()[0])?;
        let (reading, weighing) = (table.read(), weights.map(Tensor::read));
        let weights = weights.zip(weighing.as_ref()).map(|(weights, reading)| weights.elements(reading));
        let (mut writing, mut placing) = (out.write(), largest.write());
        let (out, largest) = (out.elements_mut(&mut writing), largest.elements_mut(&mut placing));
        index::bag(table.elements(&reading), &bags, self.0.mode, weights, out, largest);
        Ok(())
    }
}

/// The gradient of [`EmbeddingBag`] for its table.
#[derive(Clone, Debug)]
pub struct EmbeddingBagDenseBackward {
    /// What was done.
    pub bagging: EmbeddingBagging,
    /// How many rows the table has.
    pub rows: usize,
}

impl Op for EmbeddingBagDenseBackward {
    const NAME: &'static str = "aten::_embedding_bag_dense_backward";
    const BACKWARD: &'static str = "NotImplemented";
    /// The gradient, indices, where bags begin, and the rows of maxima; a weight per index.
    type Inputs<'a> = ([&'a Tensor; 4], Option<&'a Tensor>);
    type Output = Tensor;

    fn arguments(&self, inputs: Self::Inputs<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.each(|given| visit(given.into_argument()));
        visit(Argument::Int(self.rows as i64));
        self.bagging.arguments(visit);
    }
}

/// Refuses a gradient that is none of a row per bag.
fn check_gradient(op: &'static str, grad: &Tensor, offsets: &Tensor) -> Result<usize> {
    match grad.shape() {
        &[bags, width] if bags == offsets.numel() && grad.dtype().is_float() => Ok(width),
        shape => {
            let text = format_args!("gradient of {} {shape:?} for {} bags", grad.dtype(), offsets.numel());
            Err(Error::new(Cause::Shape, op, text))
        }
    }
}

impl Kernel for EmbeddingBagDenseBackward {
    kernel_table!(EmbeddingBagDenseBackward);

    fn infer(&self, ([grad, indices, offsets, largest], weights): Self::Inputs<'_>) -> Result<Spec> {
        check_bags(Self::NAME, indices, offsets)?;
        let width = check_gradient(Self::NAME, grad, offsets)?;
        check_weights(Self::NAME, grad, indices, weights)?;
        if self.bagging.mode == Bagging::Max
            && (largest.shape() != grad.shape() || largest.dtype() != DType::I64)
        {
            let text = format_args!(
                "expects a row of i64 for each of {:?}, not {} {:?}",
                grad.shape(),
                largest.dtype(),
                largest.shape()
            );
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::new([self.rows, width], grad.dtype()))
    }

    fn cpu(
        &self,
        ([grad, indices, offsets, largest], weights): Self::Inputs<'_>,
        out: &Tensor,
    ) -> Result<()> {
        let bags = self.bagging.bags(Self::NAME, indices, offsets, self.rows)?;
        let (reading, placing, weighing) = (grad.read(), largest.read(), weights.map(Tensor::read));
        let weights = weights.zip(weighing.as_ref()).map(|(weights, reading)| weights.elements(reading));
        let mut writing = out.write();
        index::bag_backward(
            grad.elements(&reading),
            &bags,
            self.bagging.mode,
            weights,
            largest.elements(&placing),
            self.bagging.scale_by_frequency,
            out.elements_mut(&mut writing),
        )
        .map_err(out_of_range(Self::NAME))
    }
}

/// The gradient of [`EmbeddingBag`] for the weights of indices.
#[derive(Clone, Debug)]
pub struct EmbeddingBagWeightsBackward(pub EmbeddingBagging);

impl Op for EmbeddingBagWeightsBackward {
    const NAME: &'static str = "aten::_embedding_bag_per_sample_weights_backward";
    const BACKWARD: &'static str = "NotImplemented";
    /// The gradient, the table, indices and where bags begin.
    type Inputs<'a> = [&'a Tensor; 4];
    type Output = Tensor;

    fn arguments(&self, inputs: [&Tensor; 4], visit: &mut dyn FnMut(Argument<'_>)) {
        inputs.iter().for_each(|tensor| visit(Argument::Tensor(tensor.argument())));
        self.0.arguments(visit);
    }
}

impl Kernel for EmbeddingBagWeightsBackward {
    kernel_table!(EmbeddingBagWeightsBackward);

    fn infer(&self, [grad, table, indices, offsets]: [&Tensor; 4]) -> Result<Spec> {
        check_bags(Self::NAME, indices, offsets)?;
        let width = check_gradient(Self::NAME, grad, offsets)?;
        if table.dim() != 2 || table.shape()[1] != width || table.dtype() != grad.dtype() {
            let text = format_args!("gradient of {:?} for a table of {:?}", grad.shape(), table.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::new(indices.shape(), grad.dtype()))
    }

    fn cpu(&self, [grad, table, indices, offsets]: [&Tensor; 4], out: &Tensor) -> Result<()> {
        let bags = self.0.bags(Self::NAME, indices, offsets, table.shape()[0])?;
        let (reading, looking, mut writing) = (grad.read(), table.read(), out.write());
        let (grad, table) = (grad.elements(&reading), table.elements(&looking));
        index::bag_weights_backward(grad, table, &bags, out.elements_mut(&mut writing));
        Ok(())
    }
}

impl Tensor {
    /// What becomes of bags of rows of this table. Indices are a bag per row, or a line of them with
    /// `offsets` that say where each bag begins. Sums may have a weight per index.
    pub fn embedding_bag(
        &self,
        indices: &Tensor,
        offsets: Option<&Tensor>,
        weights: Option<&Tensor>,
        bagging: EmbeddingBagging,
    ) -> Result<Tensor> {
        const NAME: &str = "aten::embedding_bag";
        let tensors = [Some(self), Some(indices), offsets, weights];
        let _span = composite(NAME, tensors, |visit| bagging.arguments(visit));
        check_weights(NAME, self, indices, weights)?;
        if let (Some(offsets), false) = (offsets, op::is_served::<EmbeddingBag>(self.device())) {
            EmbeddingBag(bagging).infer(([self, indices, offsets], weights))?;
            return bagging.pieces(self, indices, offsets, weights);
        }
        let [out, _] = match (indices.shape(), offsets) {
            ([_], Some(offsets)) => EmbeddingBag(bagging).call(([self, indices, offsets], weights))?,
            (&[bags, size], None) => {
                let starts = Tensor::arange(bags)?.mul(size as i64)?.to(indices.device())?;
                let line = indices.reshape([bags * size])?;
                let weights = weights.map(|weights| weights.reshape([bags * size])).transpose()?;
                if !op::is_served::<EmbeddingBag>(self.device()) {
                    return self.embedding_bag(&line, Some(&starts), weights.as_ref(), bagging);
                }
                EmbeddingBag(bagging).call(([self, &line, &starts], weights.as_ref()))?
            }
            (shape, offsets) => {
                let text = format_args!(
                    "expects indices of two dimensions, or of one and offsets, not shape {shape:?} and {:?}",
                    offsets.map(Tensor::shape)
                );
                return Err(Error::new(Cause::Shape, NAME, text));
            }
        };
        Ok(out)
    }
}
