//! Which element type comes out when several go in: torch's rules.

use crate::op::Operand;
use crate::{DType, Scalar, Tensor};

/// What floats become when nothing says otherwise.
pub(crate) const DEFAULT_FLOAT: DType = DType::F32;

/// The element type that two operands meet at.
///
/// Tensors with dimensions outrank those without, and those outrank numbers; a lower rank
/// counts only if it is of a higher kind (bool, integer, float).
#[inline]
pub(crate) fn result_type(a: &Tensor, b: Operand<'_>) -> DType {
    match b {
        Operand::Tensor(b) if a.dtype() == b.dtype() => a.dtype(),
        Operand::Scalar(Scalar::Float(_)) if a.dtype().is_float() => a.dtype(),
        b => result_type_of_mixed(a, b),
    }
}

#[inline(never)]
fn result_type_of_mixed(a: &Tensor, b: Operand<'_>) -> DType {
    common_type([Operand::Tensor(a), b])
}

/// The element type that any number of operands meet at.
pub(crate) fn common_type<'a>(operands: impl IntoIterator<Item = Operand<'a>>) -> DType {
    let mut ranks: [Option<DType>; 3] = [None; 3];
    for operand in operands {
        let (rank, dtype) = match operand {
            Operand::Tensor(number) if number.is_number() => (2, number_type(number)),
            Operand::Tensor(tensor) => (usize::from(tensor.dim() == 0), tensor.dtype()),
            Operand::Scalar(scalar) => (2, scalar_type(scalar)),
        };
        ranks[rank] = Some(ranks[rank].map_or(dtype, |other| promote(other, dtype)));
    }
    let outranked = |higher: DType, lower: DType| if kind(lower) <= kind(higher) { higher } else { lower };
    ranks.into_iter().flatten().reduce(outranked).unwrap_or(DEFAULT_FLOAT)
}

impl Tensor {
    /// The element type that arithmetic of this and `other`, a tensor or a number, computes in.
    pub fn result_type<'a>(&self, other: impl Into<Operand<'a>>) -> DType {
        result_type(self, other.into())
    }
}

/// What a tensor that stands for a number counts as.
fn number_type(number: &Tensor) -> DType {
    if number.dtype().is_float() { DEFAULT_FLOAT } else { number.dtype() }
}

/// The element type of a number on its own.
pub(crate) fn scalar_type(scalar: Scalar) -> DType {
    match scalar {
        Scalar::Float(_) => DEFAULT_FLOAT,
        Scalar::Int(_) => DType::I64,
        Scalar::Bool(_) => DType::Bool,
    }
}

/// What an integer type becomes in an operator that only makes sense for floats.
pub(crate) fn float_type(dtype: DType) -> DType {
    if dtype.is_float() { dtype } else { DEFAULT_FLOAT }
}

/// Whether results of type `from` may be kept as `to` by an in-place operator.
pub(crate) fn can_cast(from: DType, to: DType) -> bool {
    kind(from) <= kind(to)
}

/// 0 for bool, 1 for integers, 2 for floats.
fn kind(dtype: DType) -> u8 {
    match dtype {
        DType::Bool => 0,
        dtype if dtype.is_float() => 2,
        _ => 1,
    }
}

/// The type that holds the values of both.
pub(crate) fn promote(a: DType, b: DType) -> DType {
    use DType::*;
    if a == b {
        return a;
    }
    match kind(a).cmp(&kind(b)) {
        std::cmp::Ordering::Less => return b,
        std::cmp::Ordering::Greater => return a,
        std::cmp::Ordering::Equal => {}
    }
    match (a, b) {
        (F16, BF16) | (BF16, F16) => F32,
        (U8, I8) | (I8, U8) => I16,
        // Within a kind, types are declared from small to large.
        _ if a as u8 > b as u8 => a,
        _ => b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_meet_as_in_torch() {
        use DType::*;
        for (a, b, both) in [
            (F32, F64, F64),
            (F16, BF16, F32),
            (I64, F16, F16),
            (U8, I8, I16),
            (U8, I16, I16),
            (Bool, U8, U8),
        ] {
            assert_eq!(promote(a, b), both);
            assert_eq!(promote(b, a), both);
        }
    }

    #[test]
    fn numbers_and_zero_dim_tensors_count_only_by_kind() {
        let matrix = Tensor::zeros([2, 2], DType::F32).unwrap();
        let point = Tensor::zeros([], DType::F64).unwrap();
        let counts = Tensor::zeros([2], DType::I32).unwrap();
        assert_eq!(result_type(&matrix, Operand::from(&point)), DType::F32);
        assert_eq!(result_type(&counts, Operand::from(&point)), DType::F64);
        assert_eq!(result_type(&counts, Operand::from(1.5)), DType::F32);
        assert_eq!(result_type(&counts, Operand::from(1)), DType::I32);
        assert_eq!(result_type(&point, Operand::from(1.5)), DType::F64);
    }
}
