//! Truths and bits of two operands.

use super::cast::{INTEGERS, Temporary, compute, expect_castable, expect_dtype, promote, with_number};
use super::numbers::{integers, store};
use super::shape::broadcast;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_kernels::functions::{And, BitsBinary, Or, Xor};
use cresset_kernels::{DType, Scalar, elementwise};
use std::ffi::CStr;

/// One line per operator of truths, for which all but 0 is true.
macro_rules! truths {
    ($($name:ident = $kernel:literal, $function:expr;)*) => {$(
        pub(crate) fn $name(x: Tensor, other: Tensor, out: Tensor) -> Planned {
            let inputs = broadcast([x, other], &out)?;
            compute($kernel, inputs, DType::Bool, out, DType::Bool, |[x, other], out| {
                elementwise::bits_binary($function, x, other, out);
            })
        }
    )*};
}

truths! {
    logical_and = c"LogicalAnd", And;
    logical_or = c"LogicalOr", Or;
    logical_xor = c"NotEqual", Xor;
}

/// One line per operator of bits: with tensors, with numbers, and its kernel.
macro_rules! bits {
    ($($by_tensor:ident, $by_number:ident = $kernel:literal, $function:expr;)*) => {$(
        pub(crate) fn $by_tensor(x: Tensor, other: Tensor, out: Tensor) -> Planned {
            with_tensor($kernel, $function, x, other, out)
        }

        pub(crate) fn $by_number(x: Tensor, other: Scalar, out: Tensor) -> Planned {
            with_scalar($kernel, $function, x, other, out)
        }
    )*};
}

bits! {
    bitwise_and_tensor, bitwise_and_scalar = c"BitwiseAnd", And;
    bitwise_or_tensor, bitwise_or_scalar = c"BitwiseOr", Or;
    bitwise_xor_tensor, bitwise_xor_scalar = c"BitwiseXor", Xor;
}

fn with_tensor<F>(kernel: &'static CStr, f: F, x: Tensor, other: Tensor, out: Tensor) -> Planned
where
    F: BitsBinary + Send + 'static,
{
    expect_dtype("x", &x, INTEGERS)?;
    expect_dtype("other", &other, INTEGERS)?;
    let dtype = promote(x.dtype(), other.dtype());
    expect_castable(dtype, &out)?;
    let inputs = broadcast([x, other], &out)?;
    compute(kernel, inputs, dtype, out, dtype, move |[x, other], out| {
        elementwise::bits_binary(f, x, other, out);
    })
}

fn with_scalar<F>(kernel: &'static CStr, f: F, x: Tensor, other: Scalar, out: Tensor) -> Planned
where
    F: BitsBinary + Send + 'static,
{
    expect_dtype("x", &x, INTEGERS)?;
    let dtype = with_number(x.dtype(), other);
    expect_dtype("out", &out, INTEGERS)?;
    let [x] = broadcast([x], &out)?;
    compute(kernel, [x], dtype, out, dtype, move |[x], out| {
        Temporary::filled(other, dtype, x.shape()).read(|other| elementwise::bits_binary(f, x, other, out));
    })
}

/// One line per shift of bits: its kernel, and what becomes of a number and how far to shift it.
macro_rules! shifts {
    ($($name:ident = $kernel:literal, |$x:ident, $by:ident| $value:expr;)*) => {$(
        pub(crate) fn $name(x: Tensor, other: Tensor, out: Tensor) -> Planned {
            expect_dtype("x", &x, INTEGERS)?;
            expect_dtype("other", &other, INTEGERS)?;
            let inputs = broadcast([x, other], &out)?;
            let width = 8 * out.dtype().size() as i64;
            Plan::new($kernel, inputs, [out], move |[x, other], [out]| {
                let pairs = integers(x).into_iter().zip(integers(other));
                let shifted = pairs.map(|($x, by)| {
                    let $by = by.clamp(0, width - 1) as u32;
                    let beyond = !(0..width).contains(&by);
                    $value(beyond)
                });
                store(&shifted.collect::<Vec<i64>>(), out);
                Ok(())
            })
        }
    )*};
}

shifts! {
    left_shift = c"LeftShift", |x, by| |beyond: bool| if beyond { 0 } else { x.wrapping_shl(by) };
    right_shift = c"RightShift", |x, by| |beyond: bool| if beyond { x >> 63 } else { x >> by };
}
