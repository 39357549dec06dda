//! Loops compiled twice: for every processor, and for those with 256-bit vectors and fused products.
//!
//! On x86-64 the first is SSE2, the second AVX2 with FMA. On aarch64 there is one, for NEON, which
//! all of these processors have.

use crate::{DType, Element};

/// A function, with its generic parameters in brackets, that picks the version of its body
/// for the processor it runs on. What the body calls takes part only if it is
/// inlined, so functions and closures that it is given are to be `#[inline(always)]`.
///
/// `for A` keeps the second version to element types `A` that [are computed in](is_computed_in): the others
/// are rarely where time is spent, and each version costs time to compile and room.
macro_rules! wide {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident[$($generics:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $result:ty)? $(, for $element:ident)? $body:block) => {
        $(#[$attribute])*
        $visibility fn $name<$($generics)*>($($arg: $ty),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            if true $(&& $crate::wide::is_computed_in::<$element>())? && $crate::wide::is_wide() {
                #[target_feature(enable = "avx2,fma")]
                fn for_avx2<$($generics)*>($($arg: $ty),*) $(-> $result)? $body

                #[expect(unsafe_code, reason = "calls code for a feature that it has looked for")]
                // SAFETY: the processor has AVX2 and FMA.
                return unsafe { for_avx2($($arg),*) };
            }
            $body
        }
    };
}

pub(crate) use wide;

/// Whether this is a type that most is computed in. Half precision passes through `f32`, and integers count
/// and point.
#[inline(always)]
pub(crate) const fn is_computed_in<T: Element>() -> bool {
    matches!(T::DTYPE, DType::F32 | DType::F64)
}

/// Whether the processor has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn is_wide() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}
