//! Functions of one tensor.

use super::Entry;
use cresset_tensor::Tensor;

pub(super) const OPS: &[Entry] = &[
    Entry::one("exp", |a| a.get::<Tensor>(0, "input")?.exp()),
    Entry::one("log", |a| a.get::<Tensor>(0, "input")?.log()),
    Entry::one("neg", |a| a.get::<Tensor>(0, "input")?.neg()),
];
