//! Loops compiled several times: for every processor, and for those with wider vectors.
//!
//! On x86-64 the first is SSE2, the second AVX2 with FMA, the third AVX-512. On aarch64 there is one, for
//! NEON, which all of these processors have. `CRESSET_VECTORS=128`, `256` or `512` picks narrower ones than
//! the processor has, to compare them.

use crate::{DType, Element};

/// A function, with its generic parameters in brackets, that picks the version of its body
/// for the processor it runs on. What the body calls takes part only if it is
/// inlined, so functions and closures that it is given are to be `#[inline(always)]`.
///
/// `for A` keeps the wider versions to element types `A` that [are computed in](is_computed_in): the others
/// are rarely where time is spent, and each version costs time to compile and room. `heavy if H` says when
/// arithmetic outweighs memory, and only then there is a version for AVX-512, which computes half as much again in
/// the same time but reads and writes no faster.
macro_rules! wide {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident[$($generics:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $result:ty)? $(, for $element:ident)? $body:block) => {
        $crate::wide::wide! {
            $(#[$attribute])*
            $visibility fn $name[$($generics)*]($($arg: $ty),*) $(-> $result)? $(, for $element)?, heavy if false $body
        }
    };
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident[$($generics:tt)*]($($arg:ident: $ty:ty),* $(,)?)
        $(-> $result:ty)? $(, for $element:ident)?, heavy if $heavy:ident $body:block) => {
        $(#[$attribute])*
        $visibility fn $name<$($generics)*>($($arg: $ty),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            if true $(&& $crate::wide::is_computed_in::<$element>())? {
                #[target_feature(enable = "avx2,fma")]
                fn for_avx2<$($generics)*>($($arg: $ty),*) $(-> $result)? $body

                #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
                fn for_avx512<$($generics)*>($($arg: $ty),*) $(-> $result)? $body

                #[expect(unsafe_code, reason = "calls code for features that it has looked for")]
                match $crate::wide::vectors() {
                    // SAFETY: the processor has AVX-512.
                    $crate::wide::Vectors::Avx512 if $heavy => return unsafe { for_avx512($($arg),*) },
                    $crate::wide::Vectors::Avx512 | $crate::wide::Vectors::Avx2 => {
                        // SAFETY: the processor has AVX2 and FMA, as all have that have AVX-512.
                        return unsafe { for_avx2($($arg),*) };
                    }
                    $crate::wide::Vectors::Sse2 => {}
                }
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

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{Vectors, is_wide, vectors};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    /// The vectors that loops use.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Vectors {
        Sse2 = 1,
        Avx2 = 2,
        Avx512 = 3,
    }

    /// One of [`Vectors`], or 0 before anyone asked.
    static VECTORS: AtomicU8 = AtomicU8::new(0);

    /// The widest vectors that the processor has, unless narrower ones were asked for.
    #[inline(always)]
    pub(crate) fn vectors() -> Vectors {
        match VECTORS.load(Relaxed) {
            0 => find(),
            1 => Vectors::Sse2,
            2 => Vectors::Avx2,
            _ => Vectors::Avx512,
        }
    }

    /// Whether there are vectors of at least 256 bits.
    #[inline(always)]
    pub(crate) fn is_wide() -> bool {
        vectors() != Vectors::Sse2
    }

    #[cold]
    fn find() -> Vectors {
        let found = match (widest(), std::env::var("CRESSET_VECTORS").as_deref()) {
            (_, Ok("128")) => Vectors::Sse2,
            (Vectors::Avx512, Ok("256")) => Vectors::Avx2,
            (widest, _) => widest,
        };
        VECTORS.store(found as u8, Relaxed);
        found
    }

    fn widest() -> Vectors {
        use std::arch::is_x86_feature_detected as has;
        if !(has!("avx2") && has!("fma")) {
            return Vectors::Sse2;
        }
        let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        if avx512 { Vectors::Avx512 } else { Vectors::Avx2 }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::process::Command;

    /// The tests of this crate run with the widest vectors; here they run again with each of the others.
    #[test]
    fn narrower_vectors_pass_the_same_tests() {
        for width in ["128", "256"] {
            let tests = std::env::current_exe().expect("a test knows its own program");
            let mut run = Command::new(tests);
            run.args(["--skip", "narrower_vectors"]).env("CRESSET_VECTORS", width);
            let output = run.output().expect("what runs can run again");
            assert!(output.status.success(), "{width} bits: {}", String::from_utf8_lossy(&output.stdout));
        }
    }
}
