//! The classes of arguments that operators take, and their C types.
//!
//! Every operator in the vendor's headers is written with these and nothing else.

use crate::types::*;

pub use core::primitive::{bool, f32, f64, i8, i32, i64, u64};

/// A class of arguments.
pub trait Class {
    /// How C passes it.
    type Raw: Copy;
    /// The same as one letter class for comparing signatures: `p` for pointers, else the type.
    const C: &'static str;
}

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $raw:ty;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl Class for $name {
            type Raw = $raw;
            const C: &'static str = "p";
        }
    )*};
}

classes! {
    /// A tensor, read or written.
    Tensor = *const TensorHandle;
    /// A tensor, or null.
    OptionalTensor = *const TensorHandle;
    /// A number on the host.
    Scalar = *const ScalarHandle;
    /// A number on the host, or null.
    OptionalScalar = *const ScalarHandle;
    /// Integers on the host.
    IntArray = *const IntArrayHandle;
    /// Integers on the host, or null.
    OptionalIntArray = *const IntArrayHandle;
    /// Truth values on the host.
    BoolArray = *const BoolArrayHandle;
    /// Truth values on the host, or null.
    OptionalBoolArray = *const BoolArrayHandle;
    /// A list of tensors.
    TensorList = *const TensorListHandle;
    /// A list of tensors, or null.
    OptionalTensorList = *const TensorListHandle;
    /// Floats on the host.
    FloatArray = *const FloatArrayHandle;
    /// A list of numbers on the host.
    ScalarList = *const ScalarListHandle;
    /// Text, ended by a zero byte.
    Text = *const c_char;
    /// Text, ended by a zero byte, or null.
    OptionalText = *const c_char;
}

/// An element type; see [`constant::dtype`](crate::constant::dtype).
pub struct DataType;

impl Class for DataType {
    type Raw = i32;
    const C: &'static str = "i32";
}

macro_rules! plain {
    ($($ty:ident)*) => {$(
        impl Class for $ty {
            type Raw = $ty;
            const C: &'static str = stringify!($ty);
        }
    )*};
}

plain!(bool f32 f64 i8 i32 i64 u64);
