//! Whole quotients, what they leave, and powers: where integers and floats part ways.

use super::arithmetic::{With, float_binary};
use super::cast::{Temporary, converted, expect_castable, number, promote, stored, with_number};
use super::shape::broadcast;
use super::unary::map;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::functions::{DivFloor, DivTrunc, DivideBinary, Fmod, Pow, Power, Remainder};
use cresset_kernels::{DType, Scalar, View, elementwise};
use std::ffi::CStr;

/// One line per operator: with tensors, with numbers, and its kernel.
macro_rules! quotients {
    ($($by_tensor:ident, $by_number:ident = $kernel:literal, $function:expr;)*) => {$(
        pub(crate) fn $by_tensor(x: Tensor, other: Tensor, out: Tensor) -> Planned {
            with_tensor($kernel, $function, x, other, out)
        }

        pub(crate) fn $by_number(x: Tensor, other: Scalar, out: Tensor) -> Planned {
            with_number_of($kernel, $function, x, other, out)
        }
    )*};
}

quotients! {
    floor_divide, floor_divides = c"FloorDiv", DivFloor;
    remainder_tensor_tensor, remainder_tensor_scalar = c"FloorMod", Remainder;
    fmod_tensor, fmod_scalar = c"Mod", Fmod;
}

/// How a quotient becomes a whole number.
const TRUNCATED: i32 = 1;
const FLOORED: i32 = 2;

pub(crate) fn div_mod(x: Tensor, other: Tensor, mode: i32, out: Tensor) -> Planned {
    match mode {
        TRUNCATED => with_tensor(c"TruncateDiv", DivTrunc, x, other, out),
        FLOORED => with_tensor(c"FloorDiv", DivFloor, x, other, out),
        _ => super::div(x, other, out),
    }
}

pub(crate) fn div_mods(x: Tensor, other: Scalar, mode: i32, out: Tensor) -> Planned {
    match mode {
        TRUNCATED => with_number_of(c"TruncateDiv", DivTrunc, x, other, out),
        FLOORED => with_number_of(c"FloorDiv", DivFloor, x, other, out),
        _ => super::divs(x, other, out),
    }
}

fn with_tensor<F>(kernel: &'static CStr, f: F, x: Tensor, other: Tensor, out: Tensor) -> Planned
where
    F: DivideBinary + Send + 'static,
{
    let dtype = promote(x.dtype(), other.dtype());
    expect_castable(dtype, &out)?;
    let (inputs, dtype) = (broadcast([x, other], &out)?, number(dtype));
    Plan::new(kernel, inputs, [out], move |[x, other], [out]| {
        converted(x, dtype, |x| {
            converted(other, dtype, |other| {
                expect_divisor(other)?;
                stored(out, dtype, |out| elementwise::divide_binary(f, x, other, out));
                Ok(())
            })
        })
    })
}

fn with_number_of<F>(kernel: &'static CStr, f: F, x: Tensor, other: Scalar, out: Tensor) -> Planned
where
    F: DivideBinary + Send + 'static,
{
    let dtype = with_number(x.dtype(), other);
    expect_castable(dtype, &out)?;
    let ([x], dtype) = (broadcast([x], &out)?, wide(number(dtype)));
    Plan::new(kernel, [x], [out], move |[x], [out]| {
        Temporary::filled(other, dtype, x.shape()).read(|other| {
            expect_divisor(other)?;
            converted(x, dtype, |x| {
                stored(out, dtype, |out| elementwise::divide_binary(f, x, other, out));
            });
            Ok(())
        })
    })
}

/// Numbers are not rounded to half precision before they count.
fn wide(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// Integers have no infinity to answer with.
fn expect_divisor(divisor: View<'_>) -> Result {
    if !divisor.dtype().is_float() && elementwise::has_zero(divisor) {
        fail!(code::RT_AICORE_EXCEPTION, "an integer is divided by zero");
    }
    Ok(())
}

pub(crate) fn pow_tensor_scalar(x: Tensor, exponent: Scalar, out: Tensor) -> Planned {
    let dtype = with_number(x.dtype(), exponent);
    expect_castable(dtype, &out)?;
    if dtype.is_float() {
        return map(c"Pow", With { f: Pow, last: exponent }, dtype, x, out);
    }
    let ([x], dtype) = (broadcast([x], &out)?, number(dtype));
    Plan::new(c"Pow", [x], [out], move |[x], [out]| {
        Temporary::filled(exponent, dtype, x.shape()).read(|exponent| {
            converted(x, dtype, |x| {
                stored(out, dtype, |out| elementwise::divide_binary(Power, x, exponent, out));
            });
        });
        Ok(())
    })
}

pub(crate) fn pow_scalar_tensor(x: Scalar, exponent: Tensor, out: Tensor) -> Planned {
    let dtype = with_number(exponent.dtype(), x);
    expect_castable(dtype, &out)?;
    let ([exponent], dtype) = (broadcast([exponent], &out)?, number(dtype));
    Plan::new(c"Pow", [exponent], [out], move |[exponent], [out]| {
        Temporary::filled(x, dtype, exponent.shape()).read(|x| {
            converted(exponent, dtype, |exponent| {
                stored(out, dtype, |out| elementwise::divide_binary(Power, x, exponent, out));
            });
        });
        Ok(())
    })
}

pub(crate) fn pow_tensor_tensor(x: Tensor, exponent: Tensor, out: Tensor) -> Planned {
    let dtype = promote(x.dtype(), exponent.dtype());
    expect_castable(dtype, &out)?;
    if dtype.is_float() {
        return float_binary(c"Pow", Pow, dtype, x, exponent, out);
    }
    let (inputs, dtype) = (broadcast([x, exponent], &out)?, number(dtype));
    super::cast::compute(c"Pow", inputs, dtype, out, dtype, |[x, exponent], out| {
        elementwise::divide_binary(Power, x, exponent, out);
    })
}
