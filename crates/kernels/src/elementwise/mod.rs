//! Functions of one element per operand, and copies.
//!
//! Operands have the same shape (broadcast by strides of zero) and, but for [`copy`] and
//! conditions, the same element type.

mod copied;
mod copy;
mod decimals;
mod large;
mod map;
mod single;
mod spread;
mod stream;
#[cfg(test)]
mod tests;
mod tile;
mod turn;

pub use copy::{copy, fill};
pub use decimals::round_decimals;

pub(crate) use copy::{contiguous, pack, to_scratch, to_vec, write};
pub(crate) use large::cost;
pub(crate) use single::Single;

use crate::functions::{
    Binary, Bits, BitsBinary, DivideBinary, FloatBinary, FloatTernary, NumberUnary, Ternary, Unary,
};
use crate::{DType, Divide, Element, Float, Number, Scalar, View, ViewMut, with_dtype};
use map::{map1, map2, map2_bytes, map3, update1, update2, update3};

// Functions are inlined always, however large: loops are compiled for processors with vectors of
// their own, and a function that is called from there is compiled for none.

// Runs `body` with `T` as the element type that computes; half precision runs `single`.
macro_rules! floats {
    ($dtype:expr, $T:ident => $body:expr, single => $single:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $body
            }
            DType::F64 => {
                type $T = f64;
                $body
            }
            DType::F16 | DType::BF16 => $single,
            other => panic!("this function is for floats, not {other}"),
        }
    };
}

macro_rules! numbers {
    ($dtype:expr, $T:ident => $body:expr, single => $single:expr) => {
        match $dtype {
            DType::U8 => { type $T = u8; $body }
            DType::I8 => { type $T = i8; $body }
            DType::I16 => { type $T = i16; $body }
            DType::I32 => { type $T = i32; $body }
            DType::I64 => { type $T = i64; $body }
            other => floats!(other, $T => $body, single => $single),
        }
    };
}

// As `numbers`, with bool.
macro_rules! elements {
    ($dtype:expr, $T:ident => $body:expr, single => $single:expr) => {
        match $dtype {
            DType::Bool => { type $T = bool; $body }
            other => numbers!(other, $T => $body, single => $single),
        }
    };
}

// Integers and bool.
macro_rules! integers {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::Bool => {
                type $T = bool;
                $body
            }
            DType::U8 => {
                type $T = u8;
                $body
            }
            DType::I8 => {
                type $T = i8;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            other => panic!("this function is for integers and bool, not {other}"),
        }
    };
}

pub(crate) use {floats, numbers};

/// One row per kind of function: a closure that is one type, and so one loop, wherever it is asked for.
macro_rules! closures {
    ($($name:ident, $kind:ident of $element:ident: $($x:ident),*;)*) => {$(
        fn $name<T: $element>(f: impl $kind) -> impl Fn($(closures!(@T $x)),*) -> T + Copy + Sync {
            std::convert::identity(#[inline(always)] move |$($x: T),*| f.apply($($x),*))
        }
    )*};
    (@T $x:ident) => { T };
}

closures! {
    of_unary, Unary of Float: x;
    of_number, NumberUnary of Number: x;
    of_binary, Binary of Number: a, b;
    of_divide, DivideBinary of Divide: a, b;
    of_float, FloatBinary of Float: a, b;
    of_bits, BitsBinary of Bits: a, b;
}

/// `out = f(x)` for floats.
#[inline]
pub fn unary(f: impl Unary, x: View<'_>, out: ViewMut<'_>) {
    floats!(out.dtype(), T => map1(x, out, of_unary::<T>(f)), single => {
        let mut wide = Single::load(x);
        unary_in_place(f, wide.view_mut());
        wide.store(out);
    });
}

/// `x = f(x)` for floats.
#[inline]
pub fn unary_in_place(f: impl Unary, x: ViewMut<'_>) {
    floats!(x.dtype(), T => update1(x, of_unary::<T>(f)), single => {
        let mut wide = Single::load(x.as_view());
        update1(wide.view_mut(), of_unary::<f32>(f));
        wide.store(x);
    });
}

/// `out = f(x)` for all but bool.
#[inline]
pub fn number_unary(f: impl NumberUnary, x: View<'_>, out: ViewMut<'_>) {
    numbers!(out.dtype(), T => map1(x, out, of_number::<T>(f)), single => {
        let mut wide = Single::load(x);
        number_unary_in_place(f, wide.view_mut());
        wide.store(out);
    });
}

/// `x = f(x)` for all but bool.
#[inline]
pub fn number_unary_in_place(f: impl NumberUnary, x: ViewMut<'_>) {
    numbers!(x.dtype(), T => update1(x, of_number::<T>(f)), single => {
        let mut wide = Single::load(x.as_view());
        update1(wide.view_mut(), of_number::<f32>(f));
        wide.store(x);
    });
}

/// `out`, of bool, says where the elements of `x` pass a test. For all element types.
#[inline]
pub fn test(passes: impl Fn(Scalar) -> bool + Copy + Sync, x: View<'_>, out: ViewMut<'_>) {
    with_dtype!(x.dtype(), T => map1(x, out, #[inline(always)] move |x: T| passes(x.scalar())));
}

/// One row per kind of function of two numbers: the element types it is for.
macro_rules! binaries {
    ($($kind:ident, $dtypes:ident, $closure:ident, heavy $heavy:ident, $types:literal: $name:ident, $in_place:ident;)*) => {$(
        #[doc = concat!("`out = f(a, b)` for ", $types, ".")]
        #[inline]
        pub fn $name(f: impl $kind, a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
            $dtypes!(out.dtype(), T => map2::<{ $heavy }, T, T, T>(a, b, out, $closure::<T>(f)), single => {
                let mut wide = Single::load(a);
                update2::<{ $heavy }, f32, f32>(wide.view_mut(), Single::load(b).view(), $closure::<f32>(f));
                wide.store(out);
            });
        }

        #[doc = concat!("`a = f(a, b)` for ", $types, ".")]
        #[inline]
        pub fn $in_place(f: impl $kind, a: ViewMut<'_>, b: View<'_>) {
            $dtypes!(a.dtype(), T => update2::<{ $heavy }, T, T>(a, b, $closure::<T>(f)), single => {
                let mut wide = Single::load(a.as_view());
                update2::<{ $heavy }, f32, f32>(wide.view_mut(), Single::load(b).view(), $closure::<f32>(f));
                wide.store(a);
            });
        }
    )*};
}

binaries! {
    Binary, elements, of_binary, heavy false, "all element types": binary, binary_in_place;
    DivideBinary, numbers, of_divide, heavy false, "all but bool": divide_binary, divide_binary_in_place;
    FloatBinary, floats, of_float, heavy true, "floats": float_binary, float_binary_in_place;
}

/// `out = f(a, b)` for `dtype` F32 or F64, all elements one after the other, or one that stands for all:
/// what [`binary`] does, for those who know so much already.
#[inline]
pub fn binary_bytes(f: impl Binary, dtype: DType, operands: [&[u8]; 2], out: &mut [u8]) {
    floats!(dtype, T => map2_bytes::<false, T>(operands, out, of_binary::<T>(f)),
        single => panic!("half precision is computed as f32"));
}

/// As [`binary_bytes`], for functions that only floats have.
#[inline]
pub fn float_binary_bytes(f: impl FloatBinary, dtype: DType, operands: [&[u8]; 2], out: &mut [u8]) {
    floats!(dtype, T => map2_bytes::<true, T>(operands, out, of_float::<T>(f)),
        single => panic!("half precision is computed as f32"));
}

/// `out = f(a, b)` for integers and bool.
pub fn bits_binary(f: impl BitsBinary, a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
    integers!(out.dtype(), T => map2::<false, T, T, T>(a, b, out, of_bits::<T>(f)));
}

/// `a = f(a, b)` for integers and bool.
pub fn bits_binary_in_place(f: impl BitsBinary, a: ViewMut<'_>, b: View<'_>) {
    integers!(a.dtype(), T => update2::<false, T, T>(a, b, of_bits::<T>(f)));
}

/// `out = f(a, b)`, of bool, for elements of any type: all but 0 are true.
pub fn logic(f: impl BitsBinary, a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
    with_dtype!(a.dtype(), T => {
        let zero = T::default();
        map2::<false, _, _, _>(a, b, out, #[inline(always)] move |a: T, b: T| f.apply(a != zero, b != zero));
    });
}

/// As [`logic`], with 1 in the place of `a` where it holds and 0 elsewhere.
pub fn logic_in_place(f: impl BitsBinary, a: ViewMut<'_>, b: View<'_>) {
    with_dtype!(a.dtype(), T => {
        let (zero, one) = (T::default(), T::from_scalar(Scalar::Bool(true)));
        update2::<false, _, _>(a, b, #[inline(always)] move |a: T, b: T| if f.apply(a != zero, b != zero) { one } else { zero });
    });
}

/// One row per kind of function of three numbers.
macro_rules! ternaries {
    ($($kind:ident, $dtypes:ident, $types:literal: $name:ident, $in_place:ident;)*) => {$(
        #[doc = concat!("`out = f(a, b, c)` for ", $types, ".")]
        #[inline]
        pub fn $name(f: impl $kind, a: View<'_>, b: View<'_>, c: View<'_>, out: ViewMut<'_>) {
            $dtypes!(out.dtype(), T => map3(a, b, c, out, #[inline(always)] move |a: T, b: T, c: T| f.apply(a, b, c)), single => {
                let mut wide = Single::load(a);
                $in_place(f, wide.view_mut(), Single::load(b).view(), Single::load(c).view());
                wide.store(out);
            });
        }

        #[doc = concat!("`a = f(a, b, c)` for ", $types, ".")]
        #[inline]
        pub fn $in_place(f: impl $kind, a: ViewMut<'_>, b: View<'_>, c: View<'_>) {
            $dtypes!(a.dtype(), T => update3(a, b, c, #[inline(always)] move |a: T, b: T, c: T| f.apply(a, b, c)), single => {
                let mut wide = Single::load(a.as_view());
                let (b, c) = (Single::load(b), Single::load(c));
                update3(wide.view_mut(), b.view(), c.view(), #[inline(always)] move |a: f32, b, c| f.apply(a, b, c));
                wide.store(a);
            });
        }
    )*};
}

ternaries! {
    Ternary, numbers, "all but bool": ternary, ternary_in_place;
    FloatTernary, floats, "floats": float_ternary, float_ternary_in_place;
}

/// Whether any element is 0, or false.
pub fn has_zero(x: View<'_>) -> bool {
    with_dtype!(x.dtype(), T => pack::<T>(x).iter().any(|&x| x == T::default()))
}

/// How two elements are compared. NaN is unequal to everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `a == b`
    Equal,
    /// `a != b`
    NotEqual,
    /// `a < b`
    Less,
    /// `a <= b`
    LessEqual,
    /// `a > b`
    Greater,
    /// `a >= b`
    GreaterEqual,
}

/// `out`, of bool, says where the comparison holds. For all element types.
pub fn compare(comparison: Comparison, a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
    if matches!(a.dtype(), DType::F16 | DType::BF16) {
        return compare(comparison, Single::load(a).view(), Single::load(b).view(), out);
    }
    with_dtype!(a.dtype(), T => match comparison {
        Comparison::Equal => map2::<false, T, T, bool>(a, b, out, #[inline(always)] |a: T, b: T| a == b),
        Comparison::NotEqual => map2::<false, T, T, bool>(a, b, out, #[inline(always)] |a: T, b: T| a != b),
        Comparison::Less => map2::<false, T, T, bool>(a, b, out, #[inline(always)] |a: T, b: T| T::lt(&a, &b)),
        Comparison::LessEqual => map2::<false, T, T, bool>(a, b, out, #[inline(always)] |a: T, b: T| a <= b),
        Comparison::Greater => compare(Comparison::Less, b, a, out),
        Comparison::GreaterEqual => compare(Comparison::LessEqual, b, a, out),
    });
}

/// `out = if condition { a } else { b }`, for all element types; the condition is of bool.
pub fn select(condition: View<'_>, a: View<'_>, b: View<'_>, out: ViewMut<'_>) {
    with_dtype!(out.dtype(), T => {
        map3(condition, a, b, out, #[inline(always)] |condition: bool, a: T, b: T| if condition { a } else { b });
    });
}
