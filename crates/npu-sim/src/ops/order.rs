//! Sorting, the best few, and running sums, products and extremes.

use super::cast::{INDICES, converted, expect_castable, expect_dtype, stored};
use super::numbers::{numbers, store};
use super::shape::{dim, expect};
use crate::error::{Result, fail};
use crate::objects::{Tensor, dtype_of};
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{DType, Scalar, View, ViewMut, order, scan};
use std::ffi::CStr;

pub(crate) fn sort(
    x: Tensor,
    stable: bool,
    given: i64,
    descending: bool,
    out: Tensor,
    indices: Tensor,
) -> Planned {
    let [x, out, indices] = [x, out, indices].map(line);
    let dim = check(&x, given, &out, &indices)?;
    expect("out", &out, x.shape())?;
    let how = order::Sort { descending, stable };
    ranked(c"Sort", x, dim, [out, indices], move |x, places| order::argsort(how, x, dim, places))
}

pub(crate) fn argsort(x: Tensor, given: i64, descending: bool, out: Tensor) -> Planned {
    let dim = dim(given, x.shape().len())?;
    expect("out", &out, x.shape())?;
    expect_dtype("out", &out, INDICES)?;
    if x.shape().is_empty() {
        return super::inplace_zero(out);
    }
    let how = order::Sort { descending, stable: true };
    let plan = Plan::new(c"Sort", [x], [out], move |[x], [out]| {
        stored(out, DType::I64, |places| order::argsort(how, x, dim, places));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn topk(
    x: Tensor,
    count: i64,
    given: i64,
    largest: bool,
    sorted: bool,
    out: Tensor,
    indices: Tensor,
) -> Planned {
    let [x, out, indices] = [x, out, indices].map(line);
    let dim = check(&x, given, &out, &indices)?;
    let mut shape = x.shape().to_vec();
    if !(0..=shape[dim] as i64).contains(&count) {
        fail!(code::NN_PARAM_INVALID, "{count} elements of {} cannot be picked", shape[dim]);
    }
    shape[dim] = count as usize;
    expect("out", &out, &shape)?;
    let how = order::Topk { largest, sorted };
    ranked(c"TopKV2", x, dim, [out, indices], move |x, places| match count {
        0 => {}
        _ => order::topk(how, x, dim, places),
    })
}

pub(crate) fn cummax(x: Tensor, given: i64, out: Tensor, indices: Tensor) -> Planned {
    let [x, out, indices] = [x, out, indices].map(line);
    let dim = check(&x, given, &out, &indices)?;
    ranked(c"Cummax", x, dim, [out, indices], move |x, places| order::cummax(x, dim, places))
}

pub(crate) fn cummin(x: Tensor, given: i64, out: Tensor, indices: Tensor) -> Planned {
    let [x, out, indices] = [x, out, indices].map(line);
    let dim = check(&x, given, &out, &indices)?;
    ranked(c"Cummin", x, dim, [out, indices], move |x, places| order::cummin(x, dim, places))
}

/// Indices found by `find`, and the elements that they name.
fn ranked<F>(kernel: &'static CStr, x: Tensor, dim: usize, outputs: [Tensor; 2], find: F) -> Planned
where
    F: FnOnce(View<'_>, ViewMut<'_>) + Send + 'static,
{
    let plan = Plan::new(kernel, [x], outputs, move |[x], [out, indices]| {
        stored(indices, DType::I64, |mut places| {
            find(x, places.reborrow());
            order::pick(x, dim, places.as_view(), out);
        });
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

fn check(x: &Tensor, given: i64, out: &Tensor, indices: &Tensor) -> Result<usize> {
    let dim = dim(given, x.shape().len())?;
    if x.shape().is_empty() {
        fail!(code::NN_PARAM_INVALID, "x has no dimensions, expected at least one");
    }
    expect_dtype("out", out, &[x.dtype()])?;
    expect_dtype("indices", indices, INDICES)?;
    expect("indices", indices, out.shape())?;
    Ok(dim)
}

pub(crate) fn cumsum(x: Tensor, given: i64, dtype: i32, out: Tensor) -> Planned {
    running(c"Cumsum", scan::cumsum, x, given, dtype, out)
}

pub(crate) fn cumsum_v2(x: Tensor, given: i64, exclusive: bool, reverse: bool, out: Tensor) -> Planned {
    let dim = dim(given, x.shape().len())?;
    expect("out", &out, x.shape())?;
    expect_dtype("out", &out, &[x.dtype()])?;
    let sizes = x.shape().to_vec();
    let size = sizes.get(dim).copied().unwrap_or(1);
    let inner: usize = sizes.get(dim + 1..).unwrap_or(&[]).iter().product();
    let plan = Plan::new(c"Cumsum", [x], [out], move |[x], [out]| {
        let mut values = numbers(x);
        for block in values.chunks_mut((size * inner).max(1)) {
            for column in 0..inner {
                let mut sum = 0.0;
                for step in 0..size {
                    let at = if reverse { size - 1 - step } else { step } * inner + column;
                    let next = sum + block[at];
                    block[at] = if exclusive { sum } else { next };
                    sum = next;
                }
            }
        }
        store(&values, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn cumprod(x: Tensor, given: Scalar, dtype: i32, out: Tensor) -> Planned {
    running(c"Cumprod", scan::cumprod, x, given.as_f64() as i64, dtype, out)
}

/// A number by itself as one of a line.
fn line(x: Tensor) -> Tensor {
    if x.shape().is_empty() { x.with_layout(x.layout().unsqueeze(0)) } else { x }
}

type Scan = fn(View<'_>, usize, ViewMut<'_>);

fn running(kernel: &'static CStr, scan: Scan, x: Tensor, given: i64, dtype: i32, out: Tensor) -> Planned {
    let dim = dim(given, x.shape().len())?;
    expect("out", &out, x.shape())?;
    expect_castable(x.dtype(), &out)?;
    expect_dtype("out", &out, &[dtype_of(dtype)?])?;
    let [x, out] = [x, out].map(line);
    let dtype = out.dtype();
    let plan = Plan::new(kernel, [x], [out], move |[x], [out]| {
        converted(x, dtype, |x| scan(x, dim, out));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}
