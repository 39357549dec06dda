//! Products of matrices.

use super::Entry;
use cresset_tensor::Tensor;

pub(super) const OPS: &[Entry] = &[
    Entry::one("mm", |a| a.get::<Tensor>(0, "input")?.mm(&a.get(1, "mat2")?)),
    Entry::one("matmul", |a| a.get::<Tensor>(0, "input")?.matmul(&a.get(1, "other")?)),
];
