//! Loops compiled twice: for every processor, and for those with 256-bit vectors.

/// A function, with its generic parameters in brackets, that picks the version of its body
/// for the processor it runs on. What the body calls takes part only if it is inlined.
///
/// `for A` keeps the second version to element types `A` that are floats: the others are
/// rarely where time is spent, and each version costs time to compile.
macro_rules! wide {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident[$($generics:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $result:ty)? $(, for $element:ident)? $body:block) => {
        $(#[$attribute])*
        $visibility fn $name<$($generics)*>($($arg: $ty),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            if true $(&& <$element as $crate::Element>::DTYPE.is_float())? && std::arch::is_x86_feature_detected!("avx2") {
                #[target_feature(enable = "avx2")]
                fn with_avx2<$($generics)*>($($arg: $ty),*) $(-> $result)? $body

                #[expect(unsafe_code, reason = "calls code for a feature that it has looked for")]
                // SAFETY: the processor has AVX2.
                return unsafe { with_avx2($($arg),*) };
            }
            $body
        }
    };
}

pub(crate) use wide;
