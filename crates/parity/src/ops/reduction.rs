//! Reductions, sorting, cumulative sums.

use super::Entry;

pub(super) const OPS: &[Entry] = &[];
