//! Numbers outside tensors.

use std::fmt;

/// A number whose element type is decided by the tensors it meets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A floating-point number.
    Float(f64),
    /// An integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

impl Scalar {
    /// The number in double precision.
    #[inline]
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Float(value) => value,
            Scalar::Int(value) => value as f64,
            Scalar::Bool(value) => value as u8 as f64,
        }
    }

    /// The number as an integer, cut towards zero.
    #[inline]
    pub fn as_i64(self) -> i64 {
        match self {
            Scalar::Float(value) => value as i64,
            Scalar::Int(value) => value,
            Scalar::Bool(value) => value as i64,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Float(value) => value.fmt(f),
            Scalar::Int(value) => value.fmt(f),
            Scalar::Bool(value) => value.fmt(f),
        }
    }
}

macro_rules! scalars {
    ($($ty:ty => $kind:ident as $wide:ty),*) => {$(
        impl From<$ty> for Scalar {
            #[inline]
            fn from(value: $ty) -> Scalar {
                Scalar::$kind(value as $wide)
            }
        }
    )*};
}

scalars!(f64 => Float as f64, f32 => Float as f64, i64 => Int as i64, i32 => Int as i64, bool => Bool as bool);
