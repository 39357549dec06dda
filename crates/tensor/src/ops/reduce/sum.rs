//! Sums and means.

use super::{
    check_reduced, check_sum_type, fill, group_size, is_full, reduce_arguments, reduced, spread, sum_type,
};
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, DType, Error, Forward, Grads, Kernel, Op, Result, Spec, Tensor, composite, grads,
};
use cresset_dispatch::observe::Argument;
use cresset_kernels::{Dims, reduce};

/// The sum over some dimensions.
#[derive(Clone, Debug)]
pub struct Sum {
    /// Which dimensions.
    pub dims: Dims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// What is computed in and given; integers are summed as `i64` if nothing is said.
    pub dtype: Option<DType>,
}

/// The mean over some dimensions.
#[derive(Clone, Debug)]
pub struct Mean {
    /// Which dimensions.
    pub dims: Dims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// What is computed in and given; the type of the input if nothing is said.
    pub dtype: Option<DType>,
}

/// The sum over some dimensions of the elements that are not NaN.
#[derive(Clone, Debug)]
pub struct Nansum {
    /// Which dimensions.
    pub dims: Dims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// What is computed in and given; integers are summed as `i64` if nothing is said.
    pub dtype: Option<DType>,
}

impl Op for Sum {
    const NAME: &'static str = "aten::sum";
    const BACKWARD: &'static str = "SumBackward1";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; spread(ctx.grad(), ctx.shape(0), &self.dims)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        reduce_arguments(x, &self.dims, self.keep, self.dtype, visit);
    }

    fn backward_name(&self, [x]: [&Tensor; 1]) -> &'static str {
        if is_full(x, &self.dims, self.keep) { "SumBackward0" } else { Self::BACKWARD }
    }
}

impl Kernel for Sum {
    kernel_table!(Sum);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_reduced(Self::NAME, &self.dims, x)?;
        let dtype = self.dtype.unwrap_or(sum_type(x.dtype()));
        check_sum_type(Self::NAME, dtype)?;
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
        let count = group_size(ctx.shape(0), &self.dims);
        grads!(ctx; spread(ctx.grad(), ctx.shape(0), &self.dims)?.div(count as f64)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        reduce_arguments(x, &self.dims, self.keep, self.dtype, visit);
    }

    fn backward_name(&self, [x]: [&Tensor; 1]) -> &'static str {
        if is_full(x, &self.dims, self.keep) { "MeanBackward0" } else { Self::BACKWARD }
    }
}

impl Kernel for Mean {
    kernel_table!(Mean);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        check_reduced(Self::NAME, &self.dims, x)?;
        let dtype = self.dtype.unwrap_or(x.dtype());
        if !dtype.is_float() {
            let text =
                format_args!("gives floats, not {dtype}; convert with to_dtype() or ask for a float type");
            return Err(Error::new(Cause::DType, Self::NAME, text));
        }
        Ok(Spec { shape: reduced(x.shape(), &self.dims, self.keep), dtype })
    }

    fn cpu(&self, [x]: [&Tensor; 1], out: &Tensor) -> Result<()> {
        fill(x, &self.dims, out, |x, out| reduce::mean(x, &self.dims, out))
    }
}

impl Op for Nansum {
    const NAME: &'static str = "aten::nansum";
    const BACKWARD: &'static str = "NansumBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let x = ctx.saved(0);
        grads!(ctx; spread(ctx.grad(), ctx.shape(0), &self.dims)?.mul(&x.eq(x)?)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        reduce_arguments(x, &self.dims, self.keep, self.dtype, visit);
    }
}

impl Forward for Nansum {
    fn forward(&self, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let numbers = x.where_(&x.eq(x)?, &x.zeros_like()?)?;
        Sum { dims: self.dims.clone(), keep: self.keep, dtype: self.dtype }.call([&numbers])
    }
}

impl Tensor {
    /// The sum of all elements. Integers are summed as `i64`.
    pub fn sum(&self) -> Result<Tensor> {
        self.sum_dims(&[], false)
    }

    /// The sum over `dims`, or all if none are named; with `keep` they stay, with size 1.
    pub fn sum_dims(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
        Sum { dims: self.dims_or_all(Sum::NAME, dims)?, keep, dtype: None }.call([self])
    }

    /// As [`sum_dims`](Tensor::sum_dims), computed in and given as `dtype`.
    pub fn sum_as(&self, dims: &[isize], keep: bool, dtype: DType) -> Result<Tensor> {
        Sum { dims: self.dims_or_all(Sum::NAME, dims)?, keep, dtype: Some(dtype) }.call([self])
    }

    /// The mean of all elements.
    pub fn mean(&self) -> Result<Tensor> {
        self.mean_dims(&[], false)
    }

    /// The mean over `dims`, or all if none are named; with `keep` they stay, with size 1.
    pub fn mean_dims(&self, dims: &[isize], keep: bool) -> Result<Tensor> {
        Mean { dims: self.dims_or_all(Mean::NAME, dims)?, keep, dtype: None }.call([self])
    }

    /// As [`mean_dims`](Tensor::mean_dims), computed in and given as `dtype`.
    pub fn mean_as(&self, dims: &[isize], keep: bool, dtype: DType) -> Result<Tensor> {
        Mean { dims: self.dims_or_all(Mean::NAME, dims)?, keep, dtype: Some(dtype) }.call([self])
    }

    /// The sum over `dims`, or all if none are named, of the elements that are not NaN; with
    /// `keep` they stay, with size 1.
    pub fn nansum(&self, dims: &[isize], keep: bool, dtype: Option<DType>) -> Result<Tensor> {
        Nansum { dims: self.dims_or_all(Nansum::NAME, dims)?, keep, dtype }.call([self])
    }

    /// The mean over `dims`, or all if none are named, of the elements that are not NaN; with
    /// `keep` they stay, with size 1.
    pub fn nanmean(&self, dims: &[isize], keep: bool, dtype: Option<DType>) -> Result<Tensor> {
        const NAME: &str = "aten::nanmean";
        super::super::check_float(NAME, self)?;
        let _span = composite(NAME, [self], |_| {});
        let count = self.eq(self)?.sum_dims(dims, keep)?;
        self.nansum(dims, keep, dtype)?.div(&count)
    }

    /// The sum of a matrix's diagonal.
    pub fn trace(&self) -> Result<Tensor> {
        const NAME: &str = "aten::trace";
        let _span = composite(NAME, [self], |_| {});
        if self.dim() != 2 {
            let text = format_args!("expects a matrix, not shape {:?}", self.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        self.diagonal(0, 0, 1)?.sum()
    }
}
