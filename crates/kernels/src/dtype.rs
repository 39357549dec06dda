//! Element types, and the one macro that turns a [`DType`] into a Rust type.

use crate::Scalar;
use crate::special::single;
use half::{bf16, f16};
use std::fmt;

/// The type of a tensor's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DType {
    /// Truth values, one byte each.
    Bool,
    /// Unsigned 8-bit integers.
    U8,
    /// Signed 8-bit integers.
    I8,
    /// Signed 16-bit integers.
    I16,
    /// Signed 32-bit integers.
    I32,
    /// Signed 64-bit integers.
    I64,
    /// IEEE half precision.
    F16,
    /// Truncated single precision.
    BF16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl DType {
    /// Every element type.
    pub const ALL: [DType; 10] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::I16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// The short name, e.g. `f32`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Whether elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Views read memory as elements, so which types are elements is decided here alone.
mod sealed {
    pub trait Sealed {}
}

/// A Rust type that a tensor can hold. Only the types of [`DType`] are elements.
pub trait Element:
    sealed::Sealed + Copy + Default + PartialEq + PartialOrd + fmt::Debug + Send + Sync + 'static
{
    /// The element type's name at run time.
    const DTYPE: DType;
    /// The element as a number of unlimited kind.
    fn scalar(self) -> Scalar;
    /// The nearest element to a number; floats are cut towards zero for integers.
    fn from_scalar(scalar: Scalar) -> Self;
}

/// A float cut towards zero; the smallest integer where none fits, as torch's hosts have it.
#[inline]
fn cut_long(value: f64) -> i64 {
    let fits = value >= i64::MIN as f64 && value < -(i64::MIN as f64);
    if fits { value as i64 } else { i64::MIN }
}

/// As [`cut_long`], for integers of at most 32 bits; shorter ones keep the lowest of these.
#[inline]
fn cut(value: f64) -> i32 {
    let fits = value > f64::from(i32::MIN) - 1.0 && value < f64::from(i32::MAX) + 1.0;
    if fits { value as i32 } else { i32::MIN }
}

/// Elements with arithmetic. Integers wrap around; the sum of truths is their `or`, the product
/// their `and`.
pub trait Number: Element {
    /// `0`
    const ZERO: Self;
    /// `1`
    const ONE: Self;
    /// `self + other`
    fn plus(self, other: Self) -> Self;
    /// `self - other`
    fn minus(self, other: Self) -> Self;
    /// `self * other`
    fn times(self, other: Self) -> Self;

    /// `self + factor * other`, by floats rounded once, as fused products of processors are.
    #[inline(always)]
    fn plus_product(self, factor: Self, other: Self) -> Self {
        self.plus(factor.times(other))
    }
}

/// Elements with the functions of analysis.
pub trait Float: Number + num_traits::Float {
    /// The element in double precision.
    fn wide(self) -> f64;
    /// The nearest element to a double.
    fn narrow(value: f64) -> Self;
    /// `e` to the power of the element, in a form that becomes vector code where there is one.
    fn exponential(self) -> Self;
    /// The hyperbolic tangent, likewise.
    fn hyperbolic_tangent(self) -> Self;
    /// The nearest integer, halves to the even one.
    fn round_even(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// `1 / (1 + e^-x)`
    fn sigmoid(self) -> Self;
    /// The natural logarithm, in a form that becomes vector code where there is one.
    fn logarithm(self) -> Self;
    /// `log(1 + x)`, likewise.
    fn logarithm_1p(self) -> Self;
    /// `e^x - 1`, likewise.
    fn exponential_m1(self) -> Self;
}

macro_rules! integers {
    ($($ty:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $ty {}

        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            #[inline]
            fn scalar(self) -> Scalar {
                Scalar::Int(self as i64)
            }

            #[inline]
            fn from_scalar(scalar: Scalar) -> Self {
                match scalar {
                    Scalar::Float(value) if size_of::<$ty>() == 8 => cut_long(value) as $ty,
                    Scalar::Float(value) => cut(value) as $ty,
                    Scalar::Int(value) => value as $ty,
                    Scalar::Bool(value) => value as $ty,
                }
            }
        }

        impl Number for $ty {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
    )*};
}

macro_rules! floats {
    ($($ty:ty => $dtype:ident, $zero:expr, $one:expr, $wide:expr, $narrow:expr, [$($name:ident = $function:expr),*];)*) => {$(
        impl sealed::Sealed for $ty {}

        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;

            #[inline]
            fn scalar(self) -> Scalar {
                Scalar::Float(self.wide())
            }

            #[inline]
            fn from_scalar(scalar: Scalar) -> Self {
                Self::narrow(scalar.as_f64())
            }
        }

        impl Number for $ty {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline]
            fn plus(self, other: Self) -> Self {
                self + other
            }

            #[inline]
            fn minus(self, other: Self) -> Self {
                self - other
            }

            #[inline]
            fn times(self, other: Self) -> Self {
                self * other
            }

            #[inline(always)]
            fn plus_product(self, factor: Self, other: Self) -> Self {
                num_traits::Float::mul_add(factor, other, self)
            }
        }

        impl Float for $ty {
            #[inline]
            fn wide(self) -> f64 {
                ($wide)(self)
            }

            #[inline]
            fn narrow(value: f64) -> Self {
                ($narrow)(value)
            }

            $(#[inline(always)]
            fn $name(self) -> Self {
                ($function)(self)
            })*
        }
    )*};
}

integers!(u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64);
floats! {
    f32 => F32, 0.0, 1.0, |x: f32| x as f64, |x: f64| x as f32, [
        exponential = single::exp,
        hyperbolic_tangent = single::tanh,
        round_even = f32::round_ties_even,
        erf = single::erf,
        sigmoid = single::sigmoid,
        logarithm = single::ln,
        logarithm_1p = single::ln_1p,
        exponential_m1 = single::exp_m1
    ];
    f64 => F64, 0.0, 1.0, |x: f64| x, |x: f64| x, [
        exponential = f64::exp,
        hyperbolic_tangent = f64::tanh,
        round_even = f64::round_ties_even,
        erf = libm::erf,
        sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp()),
        logarithm = f64::ln,
        logarithm_1p = f64::ln_1p,
        exponential_m1 = f64::exp_m1
    ];
    f16 => F16, f16::ZERO, f16::ONE, f16::to_f64, f16::from_f64, [
        exponential = |x: f16| half(x, single::exp),
        hyperbolic_tangent = |x: f16| half(x, single::tanh),
        round_even = |x: f16| half(x, f32::round_ties_even),
        erf = |x: f16| half(x, single::erf),
        sigmoid = |x: f16| half(x, single::sigmoid),
        logarithm = |x: f16| half(x, single::ln),
        logarithm_1p = |x: f16| half(x, single::ln_1p),
        exponential_m1 = |x: f16| half(x, single::exp_m1)
    ];
    bf16 => BF16, bf16::ZERO, bf16::ONE, bf16::to_f64, bf16::from_f64, [
        exponential = |x: bf16| half(x, single::exp),
        hyperbolic_tangent = |x: bf16| half(x, single::tanh),
        round_even = |x: bf16| half(x, f32::round_ties_even),
        erf = |x: bf16| half(x, single::erf),
        sigmoid = |x: bf16| half(x, single::sigmoid),
        logarithm = |x: bf16| half(x, single::ln),
        logarithm_1p = |x: bf16| half(x, single::ln_1p),
        exponential_m1 = |x: bf16| half(x, single::exp_m1)
    ];
}

/// Half precision is computed in single precision.
fn half<T: Float>(x: T, f: impl Fn(f32) -> f32) -> T {
    T::narrow(f(x.wide() as f32).into())
}

impl sealed::Sealed for bool {}

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    #[inline]
    fn scalar(self) -> Scalar {
        Scalar::Bool(self)
    }

    #[inline]
    fn from_scalar(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Float(value) => value != 0.0,
            Scalar::Int(value) => value != 0,
            Scalar::Bool(value) => value,
        }
    }
}

impl Number for bool {
    const ZERO: Self = false;
    const ONE: Self = true;

    #[inline]
    fn plus(self, other: Self) -> Self {
        self | other
    }

    #[inline]
    fn minus(self, other: Self) -> Self {
        self ^ other
    }

    #[inline]
    fn times(self, other: Self) -> Self {
        self & other
    }
}

/// `with_dtype!(dtype, T => body)`: runs `body` with `T` standing for the Rust type.
///
/// A list before the arrow keeps the choice to some types and names what to do otherwise:
/// `with_dtype!(dtype, [floats] T => body, else fallback)`, or `[numbers]` for all but `bool`.
#[macro_export]
macro_rules! with_dtype {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Bool => { type $T = bool; $body }
            other => $crate::with_dtype!(other, [numbers] $T => $body, else unreachable!("bool has its own arm")),
        }
    };
    ($dtype:expr, [numbers] $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            $crate::DType::U8 => { type $T = u8; $body }
            $crate::DType::I8 => { type $T = i8; $body }
            $crate::DType::I16 => { type $T = i16; $body }
            $crate::DType::I32 => { type $T = i32; $body }
            $crate::DType::I64 => { type $T = i64; $body }
            other => $crate::with_dtype!(other, [floats] $T => $body, else $other),
        }
    };
    ($dtype:expr, [floats] $T:ident => $body:expr, else $other:expr) => {
        match $dtype {
            $crate::DType::F32 => { type $T = f32; $body }
            $crate::DType::F64 => { type $T = f64; $body }
            $crate::DType::F16 => { type $T = $crate::f16; $body }
            $crate::DType::BF16 => { type $T = $crate::bf16; $body }
            _ => $other,
        }
    };
}
