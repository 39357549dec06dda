//! Comparisons, which give truth values, and choice by truth values.

use super::cast::{Temporary, compute, converted, expect_dtype, promote, with_number};
use super::numbers::{each, numbers};
use super::shape::{broadcast, broadcast_to, expect_one};
use crate::error::Result;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_kernels::elementwise::{self, Comparison};
use cresset_kernels::{DType, Scalar};
use std::ffi::CStr;

/// One line per comparison: with tensors, with numbers, and its kernel.
macro_rules! comparisons {
    ($($by_tensor:ident, $by_number:ident = $kernel:literal, $comparison:ident;)*) => {$(
        pub(crate) fn $by_tensor(x: Tensor, other: Tensor, out: Tensor) -> Planned {
            with_tensor($kernel, Comparison::$comparison, x, other, out)
        }

        pub(crate) fn $by_number(x: Tensor, other: Scalar, out: Tensor) -> Planned {
            with_scalar($kernel, Comparison::$comparison, x, other, out)
        }
    )*};
}

comparisons! {
    eq_tensor, eq_scalar = c"Equal", Equal;
    ne_tensor, ne_scalar = c"NotEqual", NotEqual;
    gt_tensor, gt_scalar = c"Greater", Greater;
    ge_tensor, ge_scalar = c"GreaterEqual", GreaterEqual;
    lt_tensor, lt_scalar = c"Less", Less;
    le_tensor, le_scalar = c"LessEqual", LessEqual;
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
        Temporary::filled(other, dtype, x.shape())
            .read(|other| elementwise::compare(comparison, x, other, out));
    })
}

pub(crate) fn equal(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    expect_one("out", &out)?;
    expect_dtype("out", &out, &[DType::Bool])?;
    let same = x.shape() == other.shape();
    Plan::new(c"TensorEqual", [x, other], [out], move |[x, other], [out]| {
        let equal = same && numbers(x) == numbers(other);
        elementwise::fill(Scalar::Bool(equal), out);
        Ok(())
    })
}

pub(crate) fn is_close(
    x: Tensor,
    other: Tensor,
    rtol: f64,
    atol: f64,
    equal_nan: bool,
    out: Tensor,
) -> Planned {
    expect_dtype("out", &out, &[DType::Bool])?;
    each(c"IsClose", [x, other], out, move |[a, b]| {
        let near = a == b || (a - b).abs() <= atol + rtol * b.abs() && b.is_finite();
        (near || equal_nan && a.is_nan() && b.is_nan()) as u8 as f64
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

pub(crate) fn inplace_masked_fill_scalar(x: Tensor, mask: Tensor, value: Scalar) -> Planned {
    let mask = mask_of(&x, mask)?;
    let dtype = x.dtype();
    Plan::new(c"MaskedFill", [x.clone(), mask], [x], move |[old, mask], [x]| {
        Temporary::filled(value, dtype, old.shape()).read(|value| elementwise::select(mask, value, old, x));
        Ok(())
    })
}

pub(crate) fn inplace_masked_fill_tensor(x: Tensor, mask: Tensor, value: Tensor) -> Planned {
    let mask = mask_of(&x, mask)?;
    expect_one("value", &value)?;
    expect_dtype("value", &value, &[x.dtype()])?;
    let value = broadcast_to("value", &value, x.shape())?;
    Plan::new(c"MaskedFill", [x.clone(), mask, value], [x], |[old, mask, value], [x]| {
        elementwise::select(mask, value, old, x);
        Ok(())
    })
}

fn mask_of(x: &Tensor, mask: Tensor) -> Result<Tensor> {
    expect_dtype("mask", &mask, &[DType::Bool])?;
    broadcast_to("mask", &mask, x.shape())
}
