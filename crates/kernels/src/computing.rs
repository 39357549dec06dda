//! Element types that whole kernels compute in: half precision in `f32`, integers in `i64`.

use crate::elementwise::{contiguous, copy, pack, to_scratch, write};
use crate::scratch::{Elements, Scratch};
use crate::{Element, View, ViewMut};

/// Runs `body` with `T` as the type to compute in, `f32`, `f64` or `i64`.
macro_rules! computing {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            $crate::DType::Bool => panic!("this function is for numbers, not bool"),
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            dtype if dtype.is_float() => {
                type $T = f32;
                $body
            }
            _ => {
                type $T = i64;
                $body
            }
        }
    };
}

pub(crate) use computing;

/// The elements in row-major order, as the type to compute in.
pub(crate) fn load<T: Element>(x: View<'_>) -> Elements<'_, T> {
    if x.dtype() == T::DTYPE { pack(x) } else { Elements::Copied(to_scratch(x)) }
}

/// Lets `f` fill the elements in row-major order, then rounds them into `out` if it is of another type.
pub(crate) fn store<T: Element>(out: ViewMut<'_>, f: impl FnOnce(&mut [T])) {
    if out.dtype() == T::DTYPE {
        return write(out, f);
    }
    let layout = contiguous(out.shape());
    let mut elements = Scratch::new(layout.len());
    f(&mut elements);
    copy(View::of(&elements, &layout), out);
}
