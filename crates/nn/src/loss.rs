//! Losses as values.

use cresset_tensor::{Result, Tensor};

/// The mean cross-entropy between scores and classes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CrossEntropyLoss;

impl CrossEntropyLoss {
    /// The loss of `scores`, one row per sample, for the `target` classes.
    pub fn forward(&self, scores: &Tensor, target: &Tensor) -> Result<Tensor> {
        scores.cross_entropy(target)
    }
}
