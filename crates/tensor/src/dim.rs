//! Dimensions as the caller named them. Operators need to know where a dimension is; observers are told the
//! number that was written, which may count from the back.

use crate::{Argument, Result, Tensor};
use cresset_kernels::Dims;
use smallvec::SmallVec;
use std::ops::Deref;

/// A dimension: dereferences to where it is, counted from the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedDim {
    at: usize,
    named: isize,
}

impl NamedDim {
    /// Dimension `at`, named `named`.
    pub(crate) fn new(at: usize, named: isize) -> NamedDim {
        NamedDim { at, named }
    }

    /// The number that the caller wrote.
    pub fn named(self) -> isize {
        self.named
    }

    /// The number that the caller wrote, as observers see it.
    pub(crate) fn argument(self) -> Argument<'static> {
        Argument::Int(self.named as i64)
    }
}

impl From<usize> for NamedDim {
    fn from(at: usize) -> NamedDim {
        NamedDim { at, named: at as isize }
    }
}

impl Deref for NamedDim {
    type Target = usize;

    fn deref(&self) -> &usize {
        &self.at
    }
}

/// Several dimensions: dereferences to where they are, counted from the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedDims {
    at: Dims,
    named: SmallVec<[isize; 4]>,
}

impl NamedDims {
    /// Dimensions `at`, named `named`.
    pub(crate) fn new(at: Dims, named: &[isize]) -> NamedDims {
        NamedDims { at, named: SmallVec::from_slice(named) }
    }

    /// The numbers that the caller wrote.
    pub fn named(&self) -> &[isize] {
        &self.named
    }

    /// The numbers that the caller wrote, as observers see them.
    pub(crate) fn told(&self) -> SmallVec<[i64; 4]> {
        self.named.iter().map(|&dim| dim as i64).collect()
    }
}

impl From<Dims> for NamedDims {
    fn from(at: Dims) -> NamedDims {
        let named = at.iter().map(|&dim| dim as isize).collect();
        NamedDims { at, named }
    }
}

impl FromIterator<usize> for NamedDims {
    fn from_iter<I: IntoIterator<Item = usize>>(dims: I) -> NamedDims {
        dims.into_iter().collect::<Dims>().into()
    }
}

impl Deref for NamedDims {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.at
    }
}

impl Tensor {
    /// As [`dim_index`](Tensor::dim_index), with the number that was written.
    pub(crate) fn named_dim(&self, op: &'static str, dim: isize) -> Result<NamedDim> {
        Ok(NamedDim::new(self.dim_index(op, dim)?, dim))
    }
}
