//! Convolutions and pooling.

use super::Entry;

pub(super) const OPS: &[Entry] = &[];
