//! Reductions: sums, means, maxima and where they are.

use super::{check_dims, check_float, sizes};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::promote::float_type;
use crate::{Backward, Cause, DType, Error, Grads, Kernel, Layout, Op, Result, Spec, Tensor, grads};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, View, ViewMut, reduce};

/// The sum over some dimensions.
#[derive(Clone, Debug)]
pub struct Sum {
    /// Which dimensions.
    pub dims: Dims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// The shape of the input.
    pub from: Dims,
}

/// The mean over some dimensions.
#[derive(Clone, Debug)]
pub struct Mean {
    /// Which dimensions.
    pub dims: Dims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// The shape of the input.
    pub from: Dims,
}

/// The shape of `from` with `dims` reduced to size 1.
fn kept(from: &[usize], dims: &[usize]) -> Dims {
    from.iter().enumerate().map(|(dim, &size)| if dims.contains(&dim) { 1 } else { size }).collect()
}

/// The shape of `from` reduced over `dims`.
fn reduced(from: &[usize], dims: &[usize], keep: bool) -> Dims {
    if keep {
        return kept(from, dims);
    }
    from.iter().enumerate().filter(|(dim, _)| !dims.contains(dim)).map(|(_, &size)| size).collect()
}

/// Fills `out`, seen as if the reduced dimensions had stayed.
fn fill(x: &Tensor, dims: &[usize], out: &Tensor, run: impl FnOnce(View<'_>, ViewMut<'_>)) -> Result<()> {
    let layout = kept_layout(out, x.shape(), dims);
    let reading = x.read();
    let mut writing = out.write();
    run(x.elements(&reading), ViewMut::new(writing.bytes(), out.dtype(), &layout));
    Ok(())
}

fn kept_layout(out: &Tensor, from: &[usize], dims: &[usize]) -> Layout {
    out.layout().view(&kept(from, dims)).expect("a fresh output can be seen with dimensions of size 1")
}

/// A gradient spread over the elements that were reduced.
fn spread(grad: &Tensor, from: &[usize], dims: &[usize]) -> Result<Tensor> {
    grad.reshape(kept(from, dims))?.expand(from)
}

fn reduce_arguments(x: &Tensor, dims: &[usize], keep: bool, visit: &mut dyn FnMut(Argument<'_>)) {
    visit(Argument::Tensor(x.argument()));
    if !keep && dims.len() == x.dim() {
        visit(Argument::None);
        return;
    }
    visit(Argument::Ints(&sizes(dims)));
    visit(Argument::Bool(keep));
    visit(Argument::None);
}

impl Op for Sum {
    const NAME: &'static str = "aten::sum";
    const BACKWARD: &'static str = "SumBackward1";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; spread(ctx.grad(), &self.from, &self.dims)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        reduce_arguments(x, &self.dims, self.keep, visit);
    }
}

impl Kernel for Sum {
    kernel_table!(Sum);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_dims(Self::NAME, &self.dims, x)?;
        let dtype = if x.dtype().is_float() { x.dtype() } else { DType::I64 };
        Ok(Spec { shape: reduced(x.shape(), &self.dims, self.keep), dtype })
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        fill(x, &self.dims, out, |x, out| reduce::sum(x, &self.dims, out))
    }
}

impl Op for Mean {
    const NAME: &'static str = "aten::mean";
    const BACKWARD: &'static str = "MeanBackward1";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let count: usize = self.dims.iter().map(|&dim| self.from[dim]).product();
        grads!(ctx; spread(ctx.grad(), &self.from, &self.dims)?.div(count as f64)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        reduce_arguments(x, &self.dims, self.keep, visit);
    }
}

impl Kernel for Mean {
    kernel_table!(Mean);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_dims(Self::NAME, &self.dims, x)?;
        check_float(Self::NAME, x)?;
        Ok(Spec { shape: reduced(x.shape(), &self.dims, self.keep), dtype: float_type(x.dtype()) })
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        fill(x, &self.dims, out, |x, out| reduce::mean(x, &self.dims, out))
    }
}

/// The largest element of all.
#[derive(Clone, Debug)]
pub struct Max;

impl Op for Max {
    const NAME: &'static str = "aten::max";
    const BACKWARD: &'static str = "MaxBackward1";
    const SAVES: Saves = Saves::Both;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    /// Elements that are all largest share the gradient.
    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (x, max) = (ctx.saved(0), ctx.saved(1));
        let mask = x.eq(max)?.to_dtype(x.dtype())?;
        grads!(ctx; mask.mul(&ctx.grad().div(&mask.sum()?)?)?)
    }
}

impl Kernel for Max {
    kernel_table!(Max);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        if x.numel() == 0 {
            let text = format_args!("a tensor of shape {:?} has no elements to choose from", x.shape());
            return Err(Error::new(Cause::Shape, Self::NAME, text));
        }
        Ok(Spec::new([], x.dtype()))
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        let dims: Dims = (0..x.dim()).collect();
        fill(x, &dims, out, |x, out| reduce::amax(x, &dims, out))
    }
}

/// The largest element along a dimension, and its index.
#[derive(Clone, Debug)]
pub struct MaxDim {
    /// Which dimension.
    pub dim: usize,
    /// Whether it stays, with size 1.
    pub keep: bool,
    /// The shape of the input.
    pub from: Dims,
}

impl Op for MaxDim {
    const NAME: &'static str = "aten::max";
    const BACKWARD: &'static str = "MaxBackward0";
    const SAVES: Saves = Saves::Outputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = [Tensor; 2];

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let (grad, indices) = (ctx.grad(), ctx.saved(1));
        let shape = kept(&self.from, &[self.dim]);
        let mut along: Dims = self.from.iter().map(|_| 1).collect();
        let size = self.from.get(self.dim).copied().unwrap_or(1);
        if let Some(place) = along.get_mut(self.dim) {
            *place = size;
        }
        let places = Tensor::arange(size)?.to(grad.device())?.reshape(along)?;
        let mask = places.eq(&indices.reshape(&shape)?)?.to_dtype(grad.dtype())?;
        grads!(ctx; mask.mul(&grad.reshape(&shape)?)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.dim as i64));
        visit(Argument::Bool(self.keep));
    }
}

impl Kernel for MaxDim {
    kernel_table!(MaxDim);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<[Spec; 2]> {
        let shape = choose(Self::NAME, x, self.dim, self.keep)?;
        Ok([Spec { shape: shape.clone(), dtype: x.dtype() }, Spec { shape, dtype: DType::I64 }])
    }

    fn cpu(&self, [x]: [&Tensor; 1], [values, indices]: &[Tensor; 2]) -> Result<()> {
        let x = as_vector(x)?;
        let (of_values, of_indices) =
            (kept_layout(values, x.shape(), &[self.dim]), kept_layout(indices, x.shape(), &[self.dim]));
        let (reading, mut writing, mut indexing) = (x.read(), values.write(), indices.write());
        reduce::max(
            x.elements(&reading),
            self.dim,
            ViewMut::new(writing.bytes(), values.dtype(), &of_values),
            ViewMut::new(indexing.bytes(), DType::I64, &of_indices),
        );
        Ok(())
    }
}

/// The index of the largest element along a dimension.
#[derive(Clone, Debug)]
pub struct Argmax {
    /// Which dimension.
    pub dim: usize,
    /// Whether it stays, with size 1.
    pub keep: bool,
}

impl Op for Argmax {
    const NAME: &'static str = "aten::argmax";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Int(self.dim as i64));
        visit(Argument::Bool(self.keep));
    }
}

impl Kernel for Argmax {
    kernel_table!(Argmax);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        Ok(Spec { shape: choose(Self::NAME, x, self.dim, self.keep)?, dtype: DType::I64 })
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        fill(&as_vector(x)?, &[self.dim], out, |x, out| reduce::argmax(x, self.dim, out))
    }
}

/// The shape of a choice along `dim`, which must offer one.
fn choose(op: &'static str, x: &Tensor, dim: usize, keep: bool) -> Result<Dims> {
    check_dims(op, &[dim], x)?;
    if x.shape().get(dim) == Some(&0) {
        let text = format_args!("dimension {dim} of shape {:?} has no elements to choose from", x.shape());
        return Err(Error::new(Cause::Index, op, text));
    }
    Ok(reduced(x.shape(), &[dim], keep))
}

/// A tensor without dimensions as if it had one.
fn as_vector(x: &Tensor) -> Result<Tensor> {
    if x.dim() == 0 { x.view([1]) } else { Ok(x.alias()) }
}

impl Tensor {
    /// The sum of all elements. Integers are summed as `i64`.
    pub fn sum(&self) -> Result<Tensor> {
        Sum { dims: (0..self.dim()).collect(), keep: false, from: self.shape().into() }.call([self])
    }

    /// The sum over `dims`; with `keep` they stay, with size 1.
    pub fn sum_dims(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
        let dims = self.dim_indices(Sum::NAME, dims)?;
        Sum { dims, keep, from: self.shape().into() }.call([self])
    }

    /// The mean of all elements.
    pub fn mean(&self) -> Result<Tensor> {
        Mean { dims: (0..self.dim()).collect(), keep: false, from: self.shape().into() }.call([self])
    }

    /// The mean over `dims`; with `keep` they stay, with size 1.
    pub fn mean_dims(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
        let dims = self.dim_indices(Mean::NAME, dims)?;
        Mean { dims, keep, from: self.shape().into() }.call([self])
    }

    /// The largest element.
    pub fn max(&self) -> Result<Tensor> {
        Max.call([self])
    }

    /// The largest elements along `dim` and their indices; with `keep` it stays, with size 1.
    pub fn max_dim(&self, dim: isize, keep: bool) -> Result<[Tensor; 2]> {
        let dim = self.dim_index(MaxDim::NAME, dim)?;
        MaxDim { dim, keep, from: self.shape().into() }.call([self])
    }

    /// The index of the largest element along `dim`; with `keep` it stays, with size 1.
    pub fn argmax(&self, dim: isize, keep: bool) -> Result<Tensor> {
        let dim = self.dim_index(Argmax::NAME, dim)?;
        Argmax { dim, keep }.call([self])
    }

    fn dim_indices(&self, op: &'static str, dims: &[isize]) -> Result<Dims> {
        let mut indices = Dims::new();
        for &dim in dims {
            let index = self.dim_index(op, dim)?;
            if indices.contains(&index) {
                return Err(Error::new(
                    Cause::Argument,
                    op,
                    format_args!("dimension {dim} is named twice in {dims:?}"),
                ));
            }
            if self.dim() > 0 {
                indices.push(index);
            }
        }
        Ok(indices)
    }
}
