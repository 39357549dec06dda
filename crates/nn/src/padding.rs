//! Something around images.

use crate::{Edges, Forward, Module, check};
use cresset_tensor::ops::Padding;
use cresset_tensor::{Result, Tensor};

/// A line per layer: how many dimensions are padded, and with what.
macro_rules! paddings {
    ($($(#[$doc:meta])* $name:ident, $dims:literal: $with:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            padding: [isize; 2 * $dims],
        }

        impl $name {
            /// So much at all edges, or at each: those of the last dimension come first.
            pub fn new(padding: impl Edges<{ 2 * $dims }>) -> $name {
                $name { padding: padding.numbers() }
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])?;
                input.pad(&self.padding, $with)
            }
        }
    )*};
}

paddings! {
    /// The last dimension mirrored at its edges, which are not repeated.
    ReflectionPad1d, 1: Padding::Reflect;
    /// The last two dimensions mirrored at their edges, which are not repeated.
    ReflectionPad2d, 2: Padding::Reflect;
    /// The last three dimensions mirrored at their edges, which are not repeated.
    ReflectionPad3d, 3: Padding::Reflect;
    /// The elements at the edges of the last dimension repeated.
    ReplicationPad1d, 1: Padding::Replicate;
    /// The elements at the edges of the last two dimensions repeated.
    ReplicationPad2d, 2: Padding::Replicate;
    /// The elements at the edges of the last three dimensions repeated.
    ReplicationPad3d, 3: Padding::Replicate;
    /// The last dimension over and over.
    CircularPad1d, 1: Padding::Circular;
    /// The last two dimensions over and over.
    CircularPad2d, 2: Padding::Circular;
    /// The last three dimensions over and over.
    CircularPad3d, 3: Padding::Circular;
}

/// Around tensors of any rank from the number of dimensions on.
macro_rules! constants {
    ($($(#[$doc:meta])* $zero:ident, $constant:ident, $dims:literal;)*) => {$(
        $(#[$doc])*
        /// One value.
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $constant {
            padding: [isize; 2 * $dims],
            value: f64,
        }

        impl $constant {
            /// `value` at all edges, or so much of it at each: those of the last dimension come first.
            pub fn new(padding: impl Edges<{ 2 * $dims }>, value: f64) -> $constant {
                $constant { padding: padding.numbers(), value }
            }
        }

        impl Forward for $constant {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.pad(&self.padding, Padding::Constant(self.value.into()))
            }
        }

        $(#[$doc])*
        /// Zeros.
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $zero {
            padding: [isize; 2 * $dims],
        }

        impl $zero {
            /// Zeros at all edges, or so many at each: those of the last dimension come first.
            pub fn new(padding: impl Edges<{ 2 * $dims }>) -> $zero {
                $zero { padding: padding.numbers() }
            }
        }

        impl Forward for $zero {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.pad(&self.padding, Padding::Constant(0.0.into()))
            }
        }
    )*};
}

constants! {
    /// Around the last dimension:
    ZeroPad1d, ConstantPad1d, 1;
    /// Around the last two dimensions:
    ZeroPad2d, ConstantPad2d, 2;
    /// Around the last three dimensions:
    ZeroPad3d, ConstantPad3d, 3;
}
