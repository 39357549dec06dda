//! Shapes as callers write them: of any integer type, where `-1` may stand for what is left.

use crate::{Cause, Error, Result};
use cresset_kernels::Dims;
use smallvec::{Array, SmallVec};

/// Sizes as written, `-1` included.
pub(crate) type Written = SmallVec<[i64; 4]>;

/// A list of sizes: an array, slice or vector of integers, or one integer alone.
pub trait Sizes {
    /// The sizes as they are written.
    fn written(&self) -> SmallVec<[i64; 4]>;
}

/// An integer that can be a size.
pub trait Size: Copy {
    /// The number; one beyond counting becomes a negative one that is no size.
    fn number(self) -> i64;
}

macro_rules! sizes {
    ($($integer:ty)*) => {$(
        impl Size for $integer {
            fn number(self) -> i64 {
                i64::try_from(self).unwrap_or(i64::MIN)
            }
        }

        impl Sizes for $integer {
            fn written(&self) -> Written {
                Written::from_elem(self.number(), 1)
            }
        }
    )*};
}

sizes!(i32 i64 isize usize);

impl<T: Size> Sizes for [T] {
    fn written(&self) -> Written {
        self.iter().map(|size| size.number()).collect()
    }
}

impl<T: Size, const N: usize> Sizes for [T; N] {
    fn written(&self) -> Written {
        self.as_slice().written()
    }
}

impl<T: Size> Sizes for Vec<T> {
    fn written(&self) -> Written {
        self.as_slice().written()
    }
}

impl<A: Array<Item: Size>> Sizes for SmallVec<A> {
    fn written(&self) -> Written {
        self.as_slice().written()
    }
}

/// No dimensions at all.
impl Sizes for () {
    fn written(&self) -> Written {
        Written::new()
    }
}

impl<S: Sizes + ?Sized> Sizes for &S {
    fn written(&self) -> Written {
        (**self).written()
    }
}

/// The shape that `written` means for the elements of shape `from`: a `-1` becomes what is left.
pub(crate) fn resolve(op: &'static str, written: &[i64], from: &[usize]) -> Result<Dims> {
    let refused = |text: &dyn std::fmt::Display| {
        let text = format_args!("shape {from:?} cannot become {written:?}: {text}");
        Err(Error::new(Cause::Shape, op, text))
    };
    let count: usize = from.iter().product();
    let mut shape = Dims::with_capacity(written.len());
    let (mut known, mut left) = (Some(1usize), None);
    for (at, &size) in written.iter().enumerate() {
        match usize::try_from(size) {
            Ok(size) => known = known.and_then(|known| known.checked_mul(size)),
            Err(_) if size != -1 => return refused(&format_args!("{size} is not a size")),
            Err(_) if left.is_some() => return refused(&"only one size can be left open by -1"),
            Err(_) => left = Some(at),
        }
        shape.push(usize::try_from(size).unwrap_or(1));
    }
    match (left, known) {
        (Some(_), Some(0)) => refused(&"the size left open by -1 could be any"),
        (Some(at), Some(known)) if count.is_multiple_of(known) => {
            shape[at] = count / known;
            Ok(shape)
        }
        (None, Some(known)) if known == count => Ok(shape),
        _ => refused(&"the number of elements differs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_in_any_integer() {
        assert_eq!(&[-1, 4].written()[..], [-1, 4]);
        assert_eq!(&[2usize, 3][..].written()[..], [2, 3]);
        assert_eq!(&vec![2i64].written()[..], [2]);
        assert_eq!(&Dims::from_slice(&[7]).written()[..], [7]);
        assert_eq!(&(-1).written()[..], [-1]);
        assert_eq!(&usize::MAX.written()[..], [i64::MIN]);
        assert!(().written().is_empty());
    }

    #[test]
    fn what_is_left_open_is_worked_out() {
        assert_eq!(&resolve("", &[-1, 4], &[2, 6]).unwrap()[..], [3, 4]);
        assert_eq!(&resolve("", &[0, 5], &[0]).unwrap()[..], [0, 5]);
        for wrong in [&[-1, -1][..], &[-2, 6], &[5, -1], &[0, -1], &[i64::MAX, i64::MAX], &[]] {
            assert_eq!(resolve("", wrong, &[12]).unwrap_err().cause(), Cause::Shape, "{wrong:?}");
        }
    }
}
