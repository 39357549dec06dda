//! Functions of one operand.

use super::arithmetic::float_binary;
use super::cast::{FLOATS, INTEGERS, compute, expect_castable, expect_dtype, float, number, promote};
use super::fill::inplace_copy;
use super::shape::broadcast;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_kernels::functions::*;
use cresset_kernels::{DType, Number, Scalar, elementwise};
use std::ffi::CStr;

/// One line per function: its kernel, and what it does to an element.
macro_rules! functions {
    ($kind:ident: $($name:ident = $kernel:literal, $function:expr;)*) => {$(
        pub(crate) fn $name(x: Tensor, out: Tensor) -> Planned {
            $kind($kernel, $function, x, out)
        }
    )*};
}

functions! { same_kind:
    neg = c"Neg", Neg;
    abs = c"Abs", Abs;
    sign = c"Sign", Sign;
    relu = c"Relu", Relu;
    square = c"Square", Square;
}

/// A number times itself.
#[derive(Clone, Copy)]
struct Square;

impl NumberUnary for Square {
    fn apply<T: Number>(self, x: T) -> T {
        Mul.apply(x, x)
    }
}

functions! { analytic:
    exp = c"Exp", Exp;
    exp2 = c"Pow", Exp2;
    expm1 = c"Expm1", Expm1;
    log = c"Log", Log;
    log2 = c"Log", Log2;
    log10 = c"Log", Log10;
    log1p = c"Log1p", Log1p;
    sqrt = c"Sqrt", Sqrt;
    rsqrt = c"Rsqrt", Rsqrt;
    reciprocal = c"Reciprocal", Reciprocal;
    tanh = c"Tanh", Tanh;
    sigmoid = c"Sigmoid", Sigmoid;
    sin = c"Sin", Sin;
    cos = c"Cos", Cos;
    tan = c"Tan", Tan;
    asin = c"Asin", Asin;
    acos = c"Acos", Acos;
    atan = c"Atan", Atan;
    sinh = c"Sinh", Sinh;
    cosh = c"Cosh", Cosh;
    asinh = c"Asinh", Asinh;
    acosh = c"Acosh", Acosh;
    atanh = c"Atanh", Atanh;
    erf = c"Erf", Erf;
    erfc = c"Erfc", Erfc;
    erfinv = c"Erfinv", Erfinv;
    sinc = c"Sinc", Sinc;
}

functions! { only_float:
    floor = c"Floor", Floor;
    ceil = c"Ceil", Ceil;
    round = c"Round", Round;
    trunc = c"Trunc", Trunc;
    frac = c"Frac", Frac;
}

functions! { question:
    logical_not = c"LogicalNot", |x| x.as_f64() == 0.0;
    is_pos_inf = c"IsPosInf", |x| x.as_f64() == f64::INFINITY;
    is_neg_inf = c"IsNegInf", |x| x.as_f64() == f64::NEG_INFINITY;
    is_finite = c"IsFinite", |x| x.as_f64().is_finite();
    is_inf = c"IsInf", |x| x.as_f64().is_infinite();
    signbit = c"SignBitsUnpack", |x| x.as_f64().is_sign_negative();
}

pub(crate) fn bitwise_not(x: Tensor, out: Tensor) -> Planned {
    expect_dtype("x", &x, INTEGERS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    if x.dtype() == DType::Bool {
        return question(c"LogicalNot", |x| x == Scalar::Bool(false), x, out);
    }
    same_kind(c"Invert", BitwiseNot, x, out)
}

pub(crate) fn round_decimals(x: Tensor, decimals: i64, out: Tensor) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    let ([x], dtype) = (broadcast([x.clone()], &out)?, x.dtype());
    compute(c"Round", [x], dtype, out, dtype, move |[x], out| elementwise::round_decimals(decimals, x, out))
}

pub(crate) fn nan_to_num(x: Tensor, nan: f32, posinf: f32, neginf: f32, out: Tensor) -> Planned {
    if !x.dtype().is_float() {
        return inplace_copy(out, x);
    }
    let f = NanToNum { nan: nan.into(), posinf: posinf.into(), neginf: neginf.into() };
    analytic(c"NanToNum", f, x, out)
}

pub(super) fn same_kind(
    kernel: &'static CStr,
    f: impl NumberUnary + Send + 'static,
    x: Tensor,
    out: Tensor,
) -> Planned {
    expect_castable(x.dtype(), &out)?;
    map_number(kernel, f, number(x.dtype()), x, out)
}

pub(super) fn analytic(
    kernel: &'static CStr,
    f: impl Unary + Send + 'static,
    x: Tensor,
    out: Tensor,
) -> Planned {
    let dtype = float(x.dtype());
    expect_castable(dtype, &out)?;
    map(kernel, f, dtype, x, out)
}

pub(super) fn only_float(
    kernel: &'static CStr,
    f: impl Unary + Send + 'static,
    x: Tensor,
    out: Tensor,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    analytic(kernel, f, x, out)
}

/// A question about each element, answered with a truth.
fn question(kernel: &'static CStr, passes: fn(Scalar) -> bool, x: Tensor, out: Tensor) -> Planned {
    let ([x], dtype) = (broadcast([x.clone()], &out)?, x.dtype());
    compute(kernel, [x], dtype, out, DType::Bool, move |[x], out| elementwise::test(passes, x, out))
}

pub(super) fn gradient(
    kernel: &'static CStr,
    f: impl FloatBinary + Send + 'static,
    grad: Tensor,
    saved: Tensor,
    out: Tensor,
) -> Planned {
    let dtype = float(promote(grad.dtype(), saved.dtype()));
    expect_castable(dtype, &out)?;
    float_binary(kernel, f, dtype, grad, saved, out)
}

/// A function of one float, computed in `dtype`.
pub(super) fn map(
    kernel: &'static CStr,
    f: impl Unary + Send + 'static,
    dtype: DType,
    x: Tensor,
    out: Tensor,
) -> Planned {
    let [x] = broadcast([x], &out)?;
    if x == out && out.dtype() == dtype {
        return Plan::new(kernel, [], [out], move |[], [out]| {
            elementwise::unary_in_place(f, out);
            Ok(())
        });
    }
    compute(kernel, [x], dtype, out, dtype, move |[x], out| elementwise::unary(f, x, out))
}

/// A function of one number, computed in `dtype`.
pub(super) fn map_number(
    kernel: &'static CStr,
    f: impl NumberUnary + Send + 'static,
    dtype: DType,
    x: Tensor,
    out: Tensor,
) -> Planned {
    let [x] = broadcast([x], &out)?;
    if x == out && out.dtype() == dtype {
        return Plan::new(kernel, [], [out], move |[], [out]| {
            elementwise::number_unary_in_place(f, out);
            Ok(())
        });
    }
    compute(kernel, [x], dtype, out, dtype, move |[x], out| elementwise::number_unary(f, x, out))
}
