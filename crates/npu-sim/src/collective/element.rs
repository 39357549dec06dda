//! Elements of collectives: how wide they are, and how many become one.

use crate::error::{Result, fail};
use cresset_acl::collective::{element, operation, result};
use cresset_kernels::{bf16, f16};

/// An element type, by its number.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Elements(i32);

/// What becomes of the elements of all ranks.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Operation {
    Sum,
    Product,
    Maximum,
    Minimum,
}

impl Operation {
    pub(crate) fn new(number: i32) -> Result<Operation> {
        Ok(match number {
            operation::SUM => Operation::Sum,
            operation::PRODUCT => Operation::Product,
            operation::MAXIMUM => Operation::Maximum,
            operation::MINIMUM => Operation::Minimum,
            _ => fail!(result::PARAMETER, "there is no operation {number}"),
        })
    }

    fn floats(self, a: f64, b: f64) -> f64 {
        match self {
            Operation::Sum => a + b,
            Operation::Product => a * b,
            Operation::Maximum if a.is_nan() || b.is_nan() => f64::NAN,
            Operation::Minimum if a.is_nan() || b.is_nan() => f64::NAN,
            Operation::Maximum => a.max(b),
            Operation::Minimum => a.min(b),
        }
    }

    fn integers(self, a: i128, b: i128) -> i128 {
        match self {
            Operation::Sum => a.wrapping_add(b),
            Operation::Product => a.wrapping_mul(b),
            Operation::Maximum => a.max(b),
            Operation::Minimum => a.min(b),
        }
    }
}

impl Elements {
    pub(crate) fn new(number: i32) -> Result<Elements> {
        if !(element::INT8..=element::BF16).contains(&number) {
            fail!(result::NOT_SUPPORT, "element type {number} is not simulated");
        }
        Ok(Elements(number))
    }

    pub(crate) fn number(self) -> i32 {
        self.0
    }

    /// Bytes of one.
    pub(crate) fn size(self) -> usize {
        match self.0 {
            element::INT8 | element::UINT8 => 1,
            element::INT16 | element::UINT16 | element::FLOAT16 | element::BF16 => 2,
            element::INT32 | element::UINT32 | element::FLOAT => 4,
            _ => 8,
        }
    }

    /// Joins parts of the same length, element by element, in the order of the ranks, so that all get the same
    /// bits. Floats are summed in double precision and rounded once.
    pub(super) fn reduce(self, operation: Operation, parts: &[&[u8]], out: &mut [u8]) {
        macro_rules! reduce {
            ($ty:ty, $wide:ty, $join:ident, |$read:ident| $widen:expr, |$made:ident| $narrow:expr) => {{
                const SIZE: usize = size_of::<$ty>();
                for (at, out) in out.as_chunks_mut::<SIZE>().0.iter_mut().enumerate() {
                    let value = |part: &[u8]| -> $wide {
                        let bytes =
                            part[at * SIZE..][..SIZE].try_into().expect("as many bytes as the type has");
                        let $read = <$ty>::from_ne_bytes(bytes);
                        $widen
                    };
                    let mut values = parts.iter().map(|part| value(part));
                    let first = values.next().expect("there is at least one rank");
                    let $made = values.fold(first, |a, b| operation.$join(a, b));
                    *out = <$ty>::to_ne_bytes($narrow);
                }
            }};
        }
        macro_rules! integers {
            ($ty:ty) => {
                reduce!($ty, i128, integers, |read| i128::from(read), |made| made as $ty)
            };
        }
        match self.0 {
            element::INT8 => integers!(i8),
            element::INT16 => integers!(i16),
            element::INT32 => integers!(i32),
            element::INT64 => integers!(i64),
            element::UINT8 => integers!(u8),
            element::UINT16 => integers!(u16),
            element::UINT32 => integers!(u32),
            element::UINT64 => integers!(u64),
            element::FLOAT16 => {
                reduce!(f16, f64, floats, |read| f64::from(read), |made| f16::from_f64(made))
            }
            element::BF16 => reduce!(bf16, f64, floats, |read| f64::from(read), |made| bf16::from_f64(made)),
            element::FLOAT => reduce!(f32, f64, floats, |read| f64::from(read), |made| made as f32),
            _ => reduce!(f64, f64, floats, |read| read, |made| made),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_become_one_in_their_own_type() {
        let bytes = |values: &[i16]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
        let (a, b) = (bytes(&[1, -2, 300]), bytes(&[4, 5, 300]));
        let mut out = vec![0; 6];
        let join = |operation, out: &mut Vec<u8>| {
            Elements::new(element::INT16).unwrap().reduce(operation, &[&a, &b], out);
            out.clone()
        };
        assert_eq!(join(Operation::Sum, &mut out), bytes(&[5, 3, 600]));
        assert_eq!(join(Operation::Product, &mut out), bytes(&[4, -10, 300i16.wrapping_mul(300)]));
        assert_eq!(join(Operation::Maximum, &mut out), bytes(&[4, 5, 300]));
        assert_eq!(join(Operation::Minimum, &mut out), bytes(&[1, -2, 300]));
    }
}
