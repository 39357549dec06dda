//! Sums and means.

use super::super::dtype_argument;
use super::{
    check_reduced, check_sum_type, failed, fill, group_size, is_full, reduce_arguments, reduced, spread,
    sum_type,
};
use crate::autocast;
use crate::autograd::Saves;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, DType, Device, Error, Forward, Grads, Kernel, NamedDims, Op, Result, Spec, Tensor,
    composite, cpu, grads, shown,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::reduce;

/// The sum over some dimensions.
#[derive(Clone, Debug)]
pub struct Sum {
    /// Which dimensions.
    pub dims: NamedDims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// What is computed in and given; integers are summed as `i64` if nothing is said.
    pub dtype: Option<DType>,
}

/// The mean over some dimensions.
#[derive(Clone, Debug)]
pub struct Mean {
    /// Which dimensions.
    pub dims: NamedDims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// What is computed in and given; the type of the input if nothing is said.
    pub dtype: Option<DType>,
}

/// The sum over some dimensions of the elements that are not NaN.
#[derive(Clone, Debug)]
pub struct Nansum {
    /// Which dimensions.
    pub dims: NamedDims,
    /// Whether they stay, with size 1.
    pub keep: bool,
    /// What is computed in and given; integers are summed as `i64` if nothing is said.
    pub dtype: Option<DType>,
}

/// What `compute` gives, inside the call over named dimensions that torch's call without any makes.
fn second_call(
    op: &'static str,
    x: &Tensor,
    dims: &NamedDims,
    keep: bool,
    dtype: Option<DType>,
    compute: impl FnOnce() -> Result<Tensor>,
) -> Result<Tensor> {
    if !is_full(dims, keep) {
        return compute();
    }
    let named = [Argument::Ints(&[]), Argument::Bool(false), dtype_argument(dtype)];
    shown::within(op, [x], &named, compute)
}

/// What torch's sum does before it adds: it converts, and begins with zeros.
fn show_sum(x: &Tensor, dims: &NamedDims, keep: bool, out: &Tensor) -> Result<()> {
    let seen = shown::reduced(out, x.shape(), dims, keep)?;
    let _converted = shown::converted(x, out.dtype())?;
    if shown::show_single(x, (dims, &dims.told()), keep, out)? {
        return Ok(());
    }
    if x.numel() == 0 { out.zero_() } else { seen.fill_(0.0) }
}

impl Op for Sum {
    const NAME: &'static str = "aten::sum";
    const BACKWARD: &'static str = "SumBackward1";
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; spread(ctx.grad(), ctx.shape(0), &self.dims, self.keep)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        reduce_arguments(x, &self.dims, self.keep, self.dtype, visit);
    }

    fn backward_name(&self, _: [&Tensor; 1]) -> &'static str {
        if is_full(&self.dims, self.keep) { "SumBackward0" } else { Self::BACKWARD }
    }
}

impl Sum {
    /// The sum, as torch computes it into an output that has no elements yet.
    pub(super) fn grown(&self, x: &Tensor) -> Result<Tensor> {
        if !observe::is_watched() || !x.device().is_cpu() {
            return self.clone().call([x]);
        }
        let out = Tensor::uninit(&[0], x.dtype(), Device::CPU)?;
        let more = [
            Argument::Ints(&self.dims.told()),
            Argument::Bool(self.keep),
            dtype_argument(self.dtype),
            Argument::Tensor(out.argument()),
        ];
        shown::within(Self::NAME, [x], &more, || self.summed(x))
    }

    /// The sum, with the calls that torch's kernel makes.
    fn summed(&self, x: &Tensor) -> Result<Tensor> {
        let out = self.room([x])?;
        show_sum(x, &self.dims, self.keep, &out)?;
        self.fill([x], &out, Device::CPU)?;
        Ok(out)
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

    #[inline]
    fn quick(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        let all = is_full(&self.dims, self.keep) && self.dims.len() == x.dim();
        if !all || self.dtype.is_some_and(|dtype| dtype != x.dtype()) {
            return Ok(None);
        }
        cpu::folded(x, reduce::sum_bytes)
    }

    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        second_call(Self::NAME, x, &self.dims, self.keep, self.dtype, || self.summed(x)).map(Some)
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
        grads!(ctx; spread(ctx.grad(), ctx.shape(0), &self.dims, self.keep)?.div(count as i64)?)
    }

    fn arguments(&self, [x]: [&Tensor; 1], visit: &mut dyn FnMut(Argument<'_>)) {
        reduce_arguments(x, &self.dims, self.keep, self.dtype, visit);
    }

    fn backward_name(&self, _: [&Tensor; 1]) -> &'static str {
        if is_full(&self.dims, self.keep) { "MeanBackward0" } else { Self::BACKWARD }
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

    /// Torch sums, then divides; here both are one kernel.
    fn shown(&self, [x]: [&Tensor; 1]) -> Result<Option<Tensor>> {
        let divided = || {
            let out = self.room([x])?;
            let sums = shown::wide_sums(&out)?;
            let dtype = shown::dtype_code(sums.dtype());
            let more = [
                Argument::Ints(&self.dims.told()),
                Argument::Bool(self.keep),
                dtype,
                Argument::Tensor(sums.argument()),
            ];
            shown::within("aten::sum", [x], &more, || {
                show_sum(x, &self.dims, self.keep, &sums)?;
                self.fill([x], &out, Device::CPU)?;
                Ok(sums.clone())
            })?;
            shown::divide(&sums, group_size(x.shape(), &self.dims))?;
            shown::narrow_sums(&out, &sums)?;
            Ok(out)
        };
        second_call(Self::NAME, x, &self.dims, self.keep, self.dtype, divided).map(Some)
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
        grads!(ctx; spread(ctx.grad(), ctx.shape(0), &self.dims, self.keep)?.mul(&x.eq(x)?)?)
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
        let at =
            self.dims_or_all(Sum::NAME, dims).map_err(|error| failed(Sum::NAME, self, dims, keep, error))?;
        Sum { dims: at, keep, dtype: None }.call([self])
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
        let at = self
            .dims_or_all(Mean::NAME, dims)
            .map_err(|error| failed(Mean::NAME, self, dims, keep, error))?;
        Mean { dims: at, keep, dtype: None }.call([self])
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
        if let Some(cast) = autocast::casting(NAME, [self], |[x]| x.trace()) {
            return cast;
        }
        if self.dim() != 2 {
            let text = format_args!("expects a matrix, not shape {:?}", self.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        self.diagonal(0, 0, 1)?.sum()
    }
}
