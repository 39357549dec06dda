//! Sums, means and quotients that torch's kernels have other operators put into memory of theirs.

use super::{converted, into_out, meet, plain, reduced, within};
use crate::op::Operand;
use crate::ops::{Mean, Sum, sizes};
use crate::{DType, Device, Kernel as _, Result, Scalar, Tensor};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// Sums `x` over `dims`, all if none are named, into `out`, which has the size of the sum.
pub(crate) fn sum_into(x: &Tensor, dims: &[usize], out: &Tensor) -> Result<()> {
    let over = all_or(x, dims);
    summed(x, dims, &over, None, out, || {
        Sum { dims: over.clone().into(), keep: false, dtype: None }.fill([x], out, Device::CPU)
    })
}

/// Sums `x` over `dims` into memory that grows from `from`, which is empty.
pub(crate) fn sum_from(x: &Tensor, dims: &[usize], from: &Tensor) -> Result<Tensor> {
    let sum = Sum { dims: Dims::from_slice(dims).into(), keep: false, dtype: None };
    let named = sizes(dims);
    let more =
        [Argument::Ints(&named), Argument::Bool(false), Argument::None, Argument::Tensor(from.argument())];
    within("aten::sum", [x], &more, || {
        let out = sum.room([x])?;
        let seen = reduced(&out, x.shape(), dims, false)?;
        if !show_single(x, (dims, &named), false, &out)? {
            seen.fill_(Scalar::Float(0.0))?;
        }
        sum.fill([x], &out, Device::CPU)?;
        Ok(out)
    })
}

/// Shows how torch sums half precision over dimensions that do not lie together: in single precision, beside
/// the output. Says whether it does. `named` are the dimensions as they were written.
pub(crate) fn show_single(
    x: &Tensor,
    (dims, named): (&[usize], &[i64]),
    keep: bool,
    out: &Tensor,
) -> Result<bool> {
    let is_half = matches!(out.dtype(), DType::F16 | DType::BF16);
    if !is_half || x.dtype() != out.dtype() || lie_together(x, dims) {
        return Ok(false);
    }
    let single = super::empty(out.shape(), DType::F32)?;
    let wide = x.to(DType::F32)?;
    let more = [Argument::Ints(named), Argument::Bool(keep), Argument::None];
    into_out("aten::sum", [&wide], &more, &single, || {
        reduced(&single, x.shape(), dims, keep)?.fill_(Scalar::Float(0.0))
    })?;
    within("aten::copy_", [out, &single], &[Argument::Bool(false)], || Ok(out.clone()))?;
    Ok(true)
}

/// Whether elements along all of `dims` are one line in memory.
fn lie_together(x: &Tensor, dims: &[usize]) -> bool {
    let mut steps: Vec<_> = dims.iter().map(|&dim| (x.strides()[dim], x.shape()[dim])).collect();
    steps.retain(|&(_, size)| size != 1);
    steps.sort_unstable();
    steps.windows(2).all(|pair| pair[1].0 == pair[0].0 * pair[0].1)
}

/// The mean of `x`, put into `out`.
pub(crate) fn mean_into(x: &Tensor, out: &Tensor) -> Result<()> {
    let (none, over) = (sizes(&[]), all_or(x, &[]));
    let more = [Argument::Ints(&none), Argument::Bool(false), Argument::None];
    into_out("aten::mean", [x], &more, out, || {
        let sums = wide_sums(out)?;
        summed(x, &[], &over, Some(sums.dtype()), &sums, || {
            Mean { dims: over.clone().into(), keep: false, dtype: None }.fill([x], out, Device::CPU)
        })?;
        divide(&sums, x.numel())?;
        narrow_sums(out, &sums)
    })
}

/// Where torch sums for a mean: beside an output of half precision, in single precision.
pub(crate) fn wide_sums(out: &Tensor) -> Result<Tensor> {
    match out.dtype() {
        DType::F16 | DType::BF16 => out.to(DType::F32),
        _ => Ok(out.clone()),
    }
}

/// Says that sums are copied to the output that they were taken apart from; a kernel of ours has filled it.
pub(crate) fn narrow_sums(out: &Tensor, sums: &Tensor) -> Result<()> {
    if out.dtype() == sums.dtype() {
        return Ok(());
    }
    within("aten::copy_", [out, sums], &[Argument::Bool(false)], || Ok(out.clone())).map(drop)
}

/// Says that `x` is divided by a count; a kernel of ours has done so already.
pub(crate) fn divide(x: &Tensor, count: usize) -> Result<()> {
    let count = Scalar::Int(count as i64);
    within("aten::div_", [x], &[plain(count)], || {
        meet("aten::div_", (x, Operand::Scalar(count)), x.dtype(), Some(&[]))?;
        Ok(x.clone())
    })
    .map(drop)
}

fn all_or(x: &Tensor, dims: &[usize]) -> Dims {
    if dims.is_empty() { (0..x.dim()).collect() } else { dims.into() }
}

fn summed(
    x: &Tensor,
    named: &[usize],
    over: &[usize],
    dtype: Option<DType>,
    out: &Tensor,
    fill: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let named = sizes(named);
    let dtype = dtype.map_or(Argument::None, super::dtype_code);
    into_out("aten::sum", [x], &[Argument::Ints(&named), Argument::Bool(false), dtype], out, || {
        let seen = reduced(out, x.shape(), over, false)?;
        let _converted = converted(x, out.dtype())?;
        seen.fill_(Scalar::Float(0.0))?;
        fill()
    })
}
