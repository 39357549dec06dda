//! Copies of a tensor side by side.

use super::sizes;
use crate::sizes::Sizes;
use crate::{Backward, Cause, DType, Error, Forward, Grads, Op, Result, Tensor, composite, grads, shown};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::Dims;

/// The tensor so many times along each dimension.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// How often, per dimension; more of them than the tensor has come first.
    pub times: Dims,
}

impl Op for Repeat {
    const NAME: &'static str = "aten::repeat";
    const BACKWARD: &'static str = "RepeatBackward0";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; {
            if self.times.contains(&0) {
                Tensor::zeros(ctx.shape(0), (ctx.grad().dtype(), ctx.grad().device()))?
            } else {
                let mut grad = ctx.grad().clone();
                for _ in ctx.shape(0).len()..self.times.len() {
                    grad = grad.sum_dims(&[0], false)?;
                }
                let (blocks, copies) = self.repeated(ctx.shape(0));
                if copies.is_empty() { grad } else { grad.reshape(blocks)?.sum_dims(&copies, false)? }
            }
        })
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Ints(&sizes(&self.times)));
    }
}

impl Repeat {
    /// The sizes of `shape`, with 1 for the dimensions that it lacks.
    fn raised<'a>(&self, shape: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        let missing = self.times.len().saturating_sub(shape.len());
        std::iter::repeat_n(1, missing).chain(shape.iter().copied())
    }

    /// The shape of a gradient in which the copies along dimensions that are repeated are dimensions of
    /// their own, and which ones.
    fn repeated(&self, shape: &[usize]) -> (Dims, Vec<isize>) {
        let (mut blocks, mut copies) = (Dims::new(), Vec::new());
        for (&times, &size) in self.times[self.times.len() - shape.len()..].iter().zip(shape) {
            if times != 1 {
                copies.push(blocks.len() as isize);
                blocks.push(times);
            }
            blocks.push(size);
        }
        (blocks, copies)
    }

    /// The result by the calls that torch makes: windows over it are filled with what is repeated, and the
    /// order in which they come is found with tensors.
    fn shown(&self, x: &Tensor, shape: &[usize]) -> Result<Tensor> {
        let x = x.expand(self.raised(x.shape()).collect::<Dims>())?;
        let out = Tensor::empty(shape, (x.dtype(), x.device()))?;
        if self.times.contains(&0) {
            return Ok(out);
        }
        let mut windows = out.alias();
        for (dim, &size) in x.shape().iter().enumerate() {
            windows = windows.unfold(dim as isize, size, size.max(1))?;
        }
        windows.copy_(&x.expand_as(&windows)?)?;
        let rank = x.dim();
        let first = shown::arange(rank, false)?;
        let second = first.add(rank as i64)?;
        let columns = [first.unsqueeze(1)?, second.unsqueeze(1)?];
        let order = Tensor::cat(&[&columns[0], &columns[1]], 1)?.flatten(0, -1)?;
        let order: Vec<isize> = order.to_vec::<i64>()?.into_iter().map(|dim| dim as isize).collect();
        windows.permute(&order)?.reshape(shape)?;
        Ok(out)
    }

    /// The result's shape with copies and what is copied as dimensions of their own.
    fn blocks(&self, shape: &[usize]) -> Dims {
        self.times.iter().copied().zip(self.raised(shape)).flat_map(|(times, size)| [times, size]).collect()
    }
}

impl Forward for Repeat {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        if self.times.len() < x.dim() {
            let text = format_args!(
                "expects a number for each dimension of shape {:?}, not {:?}",
                x.shape(),
                &self.times[..]
            );
            return Err(Error::new(Cause::Argument, Self::NAME, text));
        }
        let total = self.times.iter().copied().zip(self.raised(x.shape()));
        let shape = total.map(|(times, size)| times.checked_mul(size)).collect::<Option<Dims>>();
        let Some(shape) = shape else {
            let text = format_args!("shape {:?} times {:?} is too large", x.shape(), &self.times[..]);
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        };
        if x.device().is_cpu() && observe::is_watched() {
            return self.shown(x, &shape);
        }
        let out = Tensor::empty(&shape, (x.dtype(), x.device()))?;
        let single: Dims = self.raised(x.shape()).flat_map(|size| [1, size]).collect();
        out.view(self.blocks(x.shape()))?.copy_(&x.reshape(single)?)?;
        Ok(out)
    }
}

impl Tensor {
    /// This tensor so many times along each dimension, in memory of its own.
    pub fn repeat(&self, times: impl Sizes) -> Result<Tensor> {
        let written = times.written();
        let times: Option<Dims> = written.iter().map(|&times| usize::try_from(times).ok()).collect();
        let times = times.ok_or_else(|| {
            let text = format_args!("{written:?} are not numbers of times");
            Error::new(Cause::Argument, Repeat::NAME, text)
        })?;
        Repeat { times }.call([self])
    }

    /// This tensor so many times along each dimension; the last ones, if there are fewer numbers.
    pub fn tile(&self, times: impl Sizes) -> Result<Tensor> {
        let written = times.written();
        let _span = composite("aten::tile", [self], |visit| visit(Argument::Ints(&written)));
        let missing = self.dim().saturating_sub(written.len());
        self.repeat(std::iter::repeat_n(1, missing).chain(written).collect::<Vec<i64>>())
    }

    /// Each index of dimension `dim` so many times in a row; without a dimension, each element.
    pub fn repeat_interleave(&self, times: usize, dim: Option<isize>) -> Result<Tensor> {
        const NAME: &str = "aten::repeat_interleave";
        let _span = composite(NAME, [self], |visit| {
            visit(Argument::Int(times as i64));
            visit(dim.map_or(Argument::None, |dim| Argument::Int(dim as i64)));
            visit(Argument::None);
        });
        let x = self.line_or_self(dim)?;
        let dim = x.dim_index(NAME, dim.unwrap_or(0))?;
        let rows = x.unsqueeze(dim as isize + 1)?;
        let mut shape = Dims::from_slice(rows.shape());
        shape[dim + 1] = times;
        rows.expand(shape)?.copy()?.flatten(dim as isize, dim as isize + 1)
    }

    /// Each index of dimension `dim` as often in a row as `times` says, one number for all or one
    /// each; without a dimension, each element.
    pub fn repeat_interleave_each(&self, times: &Tensor, dim: Option<isize>) -> Result<Tensor> {
        const NAME: &str = "aten::repeat_interleave";
        let _span = composite(NAME, [self, times], |_| {});
        let x = self.line_or_self(dim)?;
        let dim = x.dim_index(NAME, dim.unwrap_or(0))?;
        let size = x.shape().get(dim).copied().unwrap_or(1);
        let refused = |text: std::fmt::Arguments<'_>| Err(Error::new(Cause::Argument, NAME, text));
        if !matches!(times.dtype(), DType::I64 | DType::I32) || times.dim() > 1 {
            return refused(format_args!(
                "times are shape {:?} of {}, expected i64 or i32 of at most one dimension",
                times.shape(),
                times.dtype()
            ));
        }
        let mut each = times.to_dtype(DType::I64)?.to_vec::<i64>()?;
        if each.len() == 1 {
            each = vec![each[0]; size];
        }
        if each.len() != size || each.iter().any(|&times| times < 0) {
            return refused(format_args!("{each:?} are not numbers of times for {size} indices"));
        }
        let indices = each.iter().zip(0i64..).flat_map(|(&times, at)| (0..times).map(move |_| at));
        let indices: Vec<i64> = indices.collect();
        let indices = Tensor::from_slice(&indices, [indices.len()])?.to(x.device())?;
        x.index_select(dim as isize, &indices)
    }

    fn line_or_self(&self, dim: Option<isize>) -> Result<Tensor> {
        if dim.is_none() { self.flatten(0, -1) } else { Ok(self.clone()) }
    }
}
