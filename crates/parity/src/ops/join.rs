//! Joining, padding, repeating.

use super::Entry;

pub(super) const OPS: &[Entry] = &[];
