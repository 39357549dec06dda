//! New tensors and conversions.

use super::Entry;

pub(super) const OPS: &[Entry] = &[];
