//! Sums, means and extremes.

use super::cast::{FLOATS, INDICES, expect_castable, expect_dtype, stored};
use super::shape::{dim, dims, expect_one, kept};
use crate::error::{Result, fail};
use crate::objects::{Tensor, dtype_of};
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{DType, Layout, reduce};

pub(crate) fn reduce_sum(x: Tensor, given: Vec<i64>, keep: bool, dtype: i32, out: Tensor) -> Planned {
    expect_castable(x.dtype(), &out)?;
    expect_result(&out, dtype)?;
    if out.dtype() == DType::Bool {
        fail!(code::NN_PARAM_INVALID, "a sum cannot be stored as bool");
    }
    let dims = dims(&given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    let plan = Plan::new(c"ReduceSum", [x], [out], move |[x], [out]| {
        reduce::sum(x, &dims, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn mean(x: Tensor, given: Vec<i64>, keep: bool, dtype: i32, out: Tensor) -> Planned {
    expect_dtype("out", &out, FLOATS)?;
    expect_result(&out, dtype)?;
    let dims = dims(&given, x.shape().len())?;
    let out = kept("out", &out, x.shape(), &dims, keep)?;
    let plan = Plan::new(c"ReduceMean", [x], [out], move |[x], [out]| {
        reduce::mean(x, &dims, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn max(x: Tensor, out: Tensor) -> Planned {
    expect_dtype("out", &out, &[x.dtype()])?;
    expect_one("out", &out)?;
    expect_some(&x, None)?;
    let dims: Vec<usize> = (0..x.shape().len()).collect();
    let ones = Layout::contiguous(&vec![1; dims.len()]).expect("one element");
    let plan = Plan::new(c"ReduceMax", [x], [out.with_layout(ones)], move |[x], [out]| {
        reduce::amax(x, &dims, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn max_dim(x: Tensor, given: i64, keep: bool, out: Tensor, indices: Tensor) -> Planned {
    expect_dtype("out", &out, &[x.dtype()])?;
    expect_dtype("indices", &indices, INDICES)?;
    let dim = dim(given, x.shape().len())?;
    expect_some(&x, Some(dim))?;
    let out = kept("out", &out, x.shape(), &[dim], keep)?;
    let indices = kept("indices", &indices, x.shape(), &[dim], keep)?;
    let plan = Plan::new(c"ArgMaxWithValue", [x], [out, indices], move |[x], [out, indices]| {
        stored(indices, DType::I64, |indices| reduce::max(x, dim, out, indices));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn arg_max(x: Tensor, given: i64, keep: bool, out: Tensor) -> Planned {
    expect_dtype("out", &out, INDICES)?;
    let dim = dim(given, x.shape().len())?;
    expect_some(&x, Some(dim))?;
    let out = kept("out", &out, x.shape(), &[dim], keep)?;
    let plan = Plan::new(c"ArgMaxV2", [x], [out], move |[x], [out]| {
        stored(out, DType::I64, |out| reduce::argmax(x, dim, out));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// Fails unless the type asked for is the one of `out`.
fn expect_result(out: &Tensor, dtype: i32) -> Result {
    expect_dtype("out", out, &[dtype_of(dtype)?])
}

/// Fails if there is nothing to find an extreme of.
fn expect_some(x: &Tensor, dim: Option<usize>) -> Result {
    let empty = match dim {
        Some(dim) => x.shape().get(dim) == Some(&0),
        None => x.layout().is_empty(),
    };
    if empty {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} has no largest element", x.shape());
    }
    Ok(())
}
