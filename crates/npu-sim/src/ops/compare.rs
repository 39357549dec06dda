//! Comparisons, which give truth values, and choice by truth values.

use super::cast::{Temporary, compute, converted, expect_dtype, promote, with_number};
use super::shape::broadcast;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_kernels::elementwise::{self, Comparison};
use cresset_kernels::{DType, Scalar};
use std::ffi::CStr;

pub(crate) fn eq_tensor(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    with_tensor(c"Equal", Comparison::Equal, x, other, out)
}

pub(crate) fn eq_scalar(x: Tensor, other: Scalar, out: Tensor) -> Planned {
    with_scalar(c"Equal", Comparison::Equal, x, other, out)
}

pub(crate) fn gt_tensor(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    with_tensor(c"Greater", Comparison::Greater, x, other, out)
}

pub(crate) fn gt_scalar(x: Tensor, other: Scalar, out: Tensor) -> Planned {
    with_scalar(c"Greater", Comparison::Greater, x, other, out)
}

fn with_tensor(
    kernel: &'static CStr,
    comparison: Comparison,
    x: Tensor,
    other: Tensor,
    out: Tensor,
) -> Planned {
    let dtype = promote(x.dtype(), other.dtype());
    let [x, other] = broadcast([x, other], &out)?;
    compute(kernel, [x, other], dtype, out, DType::Bool, move |[x, other], out| {
        elementwise::compare(comparison, x, other, out);
    })
}

fn with_scalar(
    kernel: &'static CStr,
    comparison: Comparison,
    x: Tensor,
    other: Scalar,
    out: Tensor,
) -> Planned {
    let dtype = with_number(x.dtype(), other);
    let [x] = broadcast([x], &out)?;
    compute(kernel, [x], dtype, out, DType::Bool, move |[x], out| {
        let number = Temporary::new(dtype, x.shape());
        number.write(|to| elementwise::fill(other, to));
        number.read(|other| elementwise::compare(comparison, x, other, out));
    })
}

pub(crate) fn s_where(condition: Tensor, x: Tensor, other: Tensor, out: Tensor) -> Planned {
    let dtype = promote(x.dtype(), other.dtype());
    expect_dtype("condition", &condition, &[DType::Bool])?;
    expect_dtype("out", &out, &[dtype])?;
    let inputs = broadcast([condition, x, other], &out)?;
    Plan::new(c"SelectV2", inputs, [out], move |[condition, x, other], [out]| {
        converted(x, dtype, |x| {
            converted(other, dtype, |other| elementwise::select(condition, x, other, out))
        });
        Ok(())
    })
}
