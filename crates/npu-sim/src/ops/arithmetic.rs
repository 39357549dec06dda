//! Arithmetic on two or three operands.

use super::cast::{compute, expect_castable, expect_dtype, float, number, promote, with_number};
use super::numbers::{each, numbers, store};
use super::shape::{broadcast, dim};
use super::unary::{map, map_number};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::functions::{
    Add, Addcdiv, Addcmul, Atan2, Binary, Div, FloatBinary, FloatTernary, Heaviside, Lerp, LogAddExp,
    Maximum, Minimum, Mul, NumberUnary, Sub, Unary, Xlogy,
};
use cresset_kernels::{DType, Float, Number, Scalar, elementwise};
use std::ffi::CStr;

pub(crate) fn add(x: Tensor, other: Tensor, alpha: Scalar, out: Tensor) -> Planned {
    binary(c"Add", Add { alpha }, x, other, out)
}

pub(crate) fn adds(x: Tensor, other: Scalar, alpha: Scalar, out: Tensor) -> Planned {
    with_scalar(c"Add", Add { alpha }, x, other, out)
}

pub(crate) fn inplace_add(x: Tensor, other: Tensor, alpha: Scalar) -> Planned {
    add(x.clone(), other, alpha, x)
}

pub(crate) fn inplace_adds(x: Tensor, other: Scalar, alpha: Scalar) -> Planned {
    adds(x.clone(), other, alpha, x)
}

pub(crate) fn sub(x: Tensor, other: Tensor, alpha: Scalar, out: Tensor) -> Planned {
    binary(c"Sub", Sub { alpha }, x, other, out)
}

pub(crate) fn subs(x: Tensor, other: Scalar, alpha: Scalar, out: Tensor) -> Planned {
    with_scalar(c"Sub", Sub { alpha }, x, other, out)
}

pub(crate) fn rsub(x: Tensor, other: Tensor, alpha: Scalar, out: Tensor) -> Planned {
    binary(c"Sub", Sub { alpha }, other, x, out)
}

pub(crate) fn rsubs(x: Tensor, other: Scalar, alpha: Scalar, out: Tensor) -> Planned {
    with_scalar(c"Sub", Reversed(Sub { alpha }), x, other, out)
}

pub(crate) fn mul(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    binary(c"Mul", Mul, x, other, out)
}

pub(crate) fn muls(x: Tensor, other: Scalar, out: Tensor) -> Planned {
    with_scalar(c"Muls", Mul, x, other, out)
}

pub(crate) fn inplace_mul(x: Tensor, other: Tensor) -> Planned {
    mul(x.clone(), other, x)
}

pub(crate) fn inplace_muls(x: Tensor, other: Scalar) -> Planned {
    muls(x.clone(), other, x)
}

pub(crate) fn div(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    let dtype = float(promote(x.dtype(), other.dtype()));
    expect_castable(dtype, &out)?;
    float_binary(c"RealDiv", Div, dtype, x, other, out)
}

pub(crate) fn divs(x: Tensor, other: Scalar, out: Tensor) -> Planned {
    let dtype = float(x.dtype());
    expect_castable(dtype, &out)?;
    map(c"RealDiv", With { f: Div, last: other }, dtype, x, out)
}

pub(crate) fn inplace_div(x: Tensor, other: Tensor) -> Planned {
    div(x.clone(), other, x)
}

pub(crate) fn inplace_divs(x: Tensor, other: Scalar) -> Planned {
    divs(x.clone(), other, x)
}

pub(crate) fn maximum(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    binary(c"Maximum", Maximum, x, other, out)
}

pub(crate) fn minimum(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    binary(c"Minimum", Minimum, x, other, out)
}

pub(crate) fn heaviside(x: Tensor, values: Tensor, out: Tensor) -> Planned {
    expect_dtype("values", &values, &[x.dtype()])?;
    binary(c"Heaviside", Heaviside, x, values, out)
}

/// One line per function that only floats have.
macro_rules! floats {
    ($($name:ident = $kernel:literal, $function:expr;)*) => {$(
        pub(crate) fn $name(x: Tensor, other: Tensor, out: Tensor) -> Planned {
            let dtype = float(promote(x.dtype(), other.dtype()));
            expect_castable(dtype, &out)?;
            float_binary($kernel, $function, dtype, x, other, out)
        }
    )*};
}

floats! {
    atan2 = c"Atan2", Atan2;
    log_add_exp = c"LogAddExp", LogAddExp;
    x_log_y_tensor = c"Xlogy", Xlogy;
}

pub(crate) fn x_log_y_scalar_other(x: Tensor, other: Scalar, out: Tensor) -> Planned {
    let dtype = float(x.dtype());
    expect_castable(dtype, &out)?;
    map(c"Xlogy", With { f: Xlogy, last: other }, dtype, x, out)
}

pub(crate) fn clamp(x: Tensor, low: Scalar, high: Scalar, out: Tensor) -> Planned {
    bounded(Clamp { low: Some(low), high: Some(high) }, x, out)
}

pub(crate) fn clamp_min(x: Tensor, low: Scalar, out: Tensor) -> Planned {
    bounded(Clamp { low: Some(low), high: None }, x, out)
}

pub(crate) fn clamp_max(x: Tensor, high: Scalar, out: Tensor) -> Planned {
    bounded(Clamp { low: None, high: Some(high) }, x, out)
}

pub(crate) fn clamp_tensor(x: Tensor, low: Tensor, high: Tensor, out: Tensor) -> Planned {
    let dtype = promote(x.dtype(), promote(low.dtype(), high.dtype()));
    expect_castable(dtype, &out)?;
    let (inputs, dtype) = (broadcast([x, low, high], &out)?, number(dtype));
    compute(c"ClipByValueV2", inputs, dtype, out, dtype, |[x, low, high], mut out| {
        elementwise::binary(Maximum, x, low, out.reborrow());
        elementwise::binary_in_place(Minimum, out, high);
    })
}

pub(crate) fn clamp_min_tensor(x: Tensor, low: Tensor, out: Tensor) -> Planned {
    binary(c"Maximum", Maximum, x, low, out)
}

pub(crate) fn clamp_max_tensor(x: Tensor, high: Tensor, out: Tensor) -> Planned {
    binary(c"Minimum", Minimum, x, high, out)
}

pub(crate) fn log_add_exp2(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    each(c"LogAddExp2", [x, other], out, |[a, b]| {
        if a.is_nan() || b.is_nan() {
            return f64::NAN;
        }
        let (low, high) = (a.min(b), a.max(b));
        // Two infinities of one sign have no difference.
        let more = if low == high { 1.0 } else { (low - high).exp2().ln_1p() * std::f64::consts::LOG2_E };
        high + more
    })
}

pub(crate) fn linalg_cross(x: Tensor, other: Tensor, given: i64, out: Tensor) -> Planned {
    let [x, other] = broadcast([x, other], &out)?;
    let dim = dim(given, out.shape().len())?;
    if out.shape().get(dim) != Some(&3) {
        fail!(code::NN_PARAM_INVALID, "{:?} has not three elements along {dim}", out.shape());
    }
    let inner: usize = out.shape()[dim + 1..].iter().product();
    Plan::new(c"Cross", [x, other], [out], move |[x, other], [out]| {
        let (a, b) = (numbers(x), numbers(other));
        let product = |at: usize| {
            let (axis, first) = (at / inner % 3, at / (3 * inner) * 3 * inner + at % inner);
            let place = |axis: usize| first + axis % 3 * inner;
            a[place(axis + 1)] * b[place(axis + 2)] - a[place(axis + 2)] * b[place(axis + 1)]
        };
        store(&(0..a.len()).map(product).collect::<Vec<f64>>(), out);
        Ok(())
    })
}

fn bounded(f: Clamp, x: Tensor, out: Tensor) -> Planned {
    let dtype = [f.low, f.high].into_iter().flatten().fold(x.dtype(), with_number);
    expect_castable(dtype, &out)?;
    map_number(c"ClipByValueV2", f, number(dtype), x, out)
}

/// Between two bounds, of which the upper one wins.
#[derive(Clone, Copy)]
struct Clamp {
    low: Option<Scalar>,
    high: Option<Scalar>,
}

impl NumberUnary for Clamp {
    fn apply<T: Number>(self, x: T) -> T {
        let x = self.low.map_or(x, |low| Maximum.apply(x, T::from_scalar(low)));
        self.high.map_or(x, |high| Minimum.apply(x, T::from_scalar(high)))
    }
}

pub(crate) fn addcdiv(x: Tensor, a: Tensor, b: Tensor, value: Scalar, out: Tensor) -> Planned {
    float_ternary(c"Addcdiv", Addcdiv { value }, [x, a, b], out)
}

pub(crate) fn inplace_addcdiv(x: Tensor, a: Tensor, b: Tensor, value: Scalar) -> Planned {
    addcdiv(x.clone(), a, b, value, x)
}

pub(crate) fn addcmul(x: Tensor, a: Tensor, b: Tensor, value: Scalar, out: Tensor) -> Planned {
    let dtype = promote(x.dtype(), promote(a.dtype(), b.dtype()));
    if dtype.is_float() {
        return float_ternary(c"Addcmul", Addcmul { value }, [x, a, b], out);
    }
    expect_castable(with_number(dtype, value), &out)?;
    let (inputs, dtype) = (broadcast([x, a, b], &out)?, number(dtype));
    compute(c"Addcmul", inputs, dtype, out, dtype, move |[x, a, b], out| {
        elementwise::ternary(Addcmul { value }, x, a, b, out);
    })
}

pub(crate) fn inplace_addcmul(x: Tensor, a: Tensor, b: Tensor, value: Scalar) -> Planned {
    addcmul(x.clone(), a, b, value, x)
}

pub(crate) fn lerp(x: Tensor, end: Tensor, weight: Tensor, out: Tensor) -> Planned {
    float_ternary(c"Lerp", Lerp, [x, end, weight], out)
}

pub(crate) fn lerps(x: Tensor, end: Tensor, weight: Scalar, out: Tensor) -> Planned {
    let dtype = float(promote(x.dtype(), end.dtype()));
    expect_castable(dtype, &out)?;
    float_binary(c"Lerp", With { f: Lerp, last: weight }, dtype, x, end, out)
}

pub(crate) fn inplace_lerps(x: Tensor, end: Tensor, weight: Scalar) -> Planned {
    lerps(x.clone(), end, weight, x)
}

/// A function whose last argument is a number.
#[derive(Clone, Copy)]
pub(super) struct With<F> {
    pub(super) f: F,
    pub(super) last: Scalar,
}

/// A function whose arguments change places.
#[derive(Clone, Copy)]
struct Reversed<F>(F);

impl<F: Binary> Binary for Reversed<F> {
    fn apply<T: Number>(self, a: T, b: T) -> T {
        self.0.apply(b, a)
    }
}

impl<F: Binary> NumberUnary for With<F> {
    fn apply<T: Number>(self, x: T) -> T {
        self.f.apply(x, T::from_scalar(self.last))
    }
}

impl<F: FloatBinary> Unary for With<F> {
    fn apply<T: Float>(self, x: T) -> T {
        self.f.apply(x, T::from_scalar(self.last))
    }
}

impl<F: FloatTernary> FloatBinary for With<F> {
    fn apply<T: Float>(self, a: T, b: T) -> T {
        self.f.apply(a, b, T::from_scalar(self.last))
    }
}

/// Whether `out` is updated where it is: it is the first operand, and nothing is converted.
fn in_place(x: &Tensor, others: &[&Tensor], out: &Tensor, dtype: DType) -> bool {
    x == out && out.dtype() == dtype && others.iter().all(|other| other.dtype() == dtype)
}

fn binary(
    kernel: &'static CStr,
    f: impl Binary + Send + 'static,
    x: Tensor,
    other: Tensor,
    out: Tensor,
) -> Planned {
    let dtype = promote(x.dtype(), other.dtype());
    expect_castable(dtype, &out)?;
    let dtype = number(dtype);
    let [x, other] = broadcast([x, other], &out)?;
    if in_place(&x, &[&other], &out, dtype) {
        return Plan::new(kernel, [other], [out], move |[other], [out]| {
            elementwise::binary_in_place(f, out, other);
            Ok(())
        });
    }
    compute(kernel, [x, other], dtype, out, dtype, move |[x, other], out| {
        elementwise::binary(f, x, other, out)
    })
}

fn with_scalar(
    kernel: &'static CStr,
    f: impl Binary + Send + 'static,
    x: Tensor,
    other: Scalar,
    out: Tensor,
) -> Planned {
    let dtype = with_number(x.dtype(), other);
    expect_castable(dtype, &out)?;
    map_number(kernel, With { f, last: other }, number(dtype), x, out)
}

/// A function of two floats, computed in `dtype`.
pub(super) fn float_binary(
    kernel: &'static CStr,
    f: impl FloatBinary + Send + 'static,
    dtype: DType,
    x: Tensor,
    other: Tensor,
    out: Tensor,
) -> Planned {
    let [x, other] = broadcast([x, other], &out)?;
    if in_place(&x, &[&other], &out, dtype) {
        return Plan::new(kernel, [other], [out], move |[other], [out]| {
            elementwise::float_binary_in_place(f, out, other);
            Ok(())
        });
    }
    compute(kernel, [x, other], dtype, out, dtype, move |[x, other], out| {
        elementwise::float_binary(f, x, other, out)
    })
}

fn float_ternary(
    kernel: &'static CStr,
    f: impl FloatTernary + Send + 'static,
    [x, a, b]: [Tensor; 3],
    out: Tensor,
) -> Planned {
    let dtype = float(promote(x.dtype(), promote(a.dtype(), b.dtype())));
    expect_castable(dtype, &out)?;
    let [x, a, b] = broadcast([x, a, b], &out)?;
    if in_place(&x, &[&a, &b], &out, dtype) {
        return Plan::new(kernel, [a, b], [out], move |[a, b], [out]| -> Result {
            elementwise::float_ternary_in_place(f, out, a, b);
            Ok(())
        });
    }
    compute(kernel, [x, a, b], dtype, out, dtype, move |[x, a, b], out| {
        elementwise::float_ternary(f, x, a, b, out)
    })
}
