//! The one thing that can be wrong with data rather than with its shape: an index.

use std::fmt;

/// An index leads to no element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The index.
    pub index: i64,
    /// How many elements there are.
    pub size: usize,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {} is out of range for size {}", self.index, self.size)
    }
}

impl std::error::Error for OutOfRange {}
