//! Numbers per dimension, as callers write them.

/// A number for each of `D` dimensions, or one for all of them.
///
/// `3`, `[3, 5]` and `(3, 5)` are all kernel sizes of two dimensions.
pub trait PerDim<const D: usize> {
    /// A number for each dimension.
    fn numbers(self) -> [usize; D];
}

impl<const D: usize> PerDim<D> for usize {
    fn numbers(self) -> [usize; D] {
        [self; D]
    }
}

impl<const D: usize> PerDim<D> for [usize; D] {
    fn numbers(self) -> [usize; D] {
        self
    }
}

impl PerDim<2> for (usize, usize) {
    fn numbers(self) -> [usize; 2] {
        self.into()
    }
}

impl PerDim<3> for (usize, usize, usize) {
    fn numbers(self) -> [usize; 3] {
        self.into()
    }
}

/// How much is added at each of `N` edges, or at all of them; less than nothing takes away. As in
/// torch, the edges of the last dimension come first: left, right, top, bottom.
pub trait Edges<const N: usize> {
    /// A number for each edge.
    fn numbers(self) -> [isize; N];
}

impl<const N: usize> Edges<N> for isize {
    fn numbers(self) -> [isize; N] {
        [self; N]
    }
}

impl<const N: usize> Edges<N> for [isize; N] {
    fn numbers(self) -> [isize; N] {
        self
    }
}

/// As operators take them. What is beyond counting is no size, and refused there.
pub(crate) fn signed(numbers: &[usize]) -> cresset_tensor::ops::PerDim {
    numbers.iter().map(|&number| isize::try_from(number).unwrap_or(isize::MAX)).collect()
}
