//! Scalar functions as small types, for the loops of [`elementwise`](crate::elementwise).
//!
//! A new function is a struct with one of these traits; nothing here needs to know it.
//! Loops call `apply` with `f32` or `f64`: half-precision elements are computed in `f32`
//! and rounded once.

mod binary;
mod ternary;
mod unary;

pub use binary::*;
pub use ternary::*;
pub use unary::*;

use crate::{Divide, Element, Float, Number};
use std::ops::{BitAnd, BitOr, BitXor};

/// A function of one float.
pub trait Unary: Copy + Sync {
    /// The function's value.
    fn apply<T: Float>(self, x: T) -> T;
}

/// A function of one number, integers too.
pub trait NumberUnary: Copy + Sync {
    /// The function's value.
    fn apply<T: Number>(self, x: T) -> T;
}

/// A function of two elements of any type.
pub trait Binary: Copy + Sync {
    /// The function's value.
    fn apply<T: Number>(self, a: T, b: T) -> T;
}

/// A function of two numbers that divides: for all but bool.
pub trait DivideBinary: Copy + Sync {
    /// The function's value.
    fn apply<T: Divide>(self, a: T, b: T) -> T;
}

/// A function of the bits of two integers or truths.
pub trait BitsBinary: Copy + Sync {
    /// The function's value.
    fn apply<T: Bits>(self, a: T, b: T) -> T;
}

/// Elements whose bits mean something: integers and truths.
pub trait Bits: Element + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> {}

macro_rules! bits {
    ($($ty:ty)*) => { $(impl Bits for $ty {})* };
}

bits!(bool u8 i8 i16 i32 i64);

/// A function of two floats.
pub trait FloatBinary: Copy + Sync {
    /// The function's value.
    fn apply<T: Float>(self, a: T, b: T) -> T;
}

/// A function of three numbers, integers too.
pub trait Ternary: Copy + Sync {
    /// The function's value.
    fn apply<T: Number>(self, a: T, b: T, c: T) -> T;
}

/// A function of three floats.
pub trait FloatTernary: Copy + Sync {
    /// The function's value.
    fn apply<T: Float>(self, a: T, b: T, c: T) -> T;
}

// One row per function without parameters: what it is, its name and arguments, its value.
macro_rules! functions {
    ($kind:ident of $number:ident: $(#[doc = $doc:literal] $name:ident($($x:ident),*) => $value:expr;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl $kind for $name {
            #[inline(always)]
            fn apply<T: $number>(self, $($x: T),*) -> T {
                $value
            }
        }
    )*};
}
use functions;

#[inline(always)]
pub(crate) fn is_nan<T: PartialEq>(x: T) -> bool {
    #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
    let nan = x != x;
    nan
}

#[inline(always)]
fn number<T: Number>(condition: bool) -> T {
    if condition { T::ONE } else { T::ZERO }
}
