//! How parameters start.

use cresset_tensor::{Result, Tensor};

/// Uniform numbers within `1 / sqrt(fan_in)` of 0: how torch's layers start.
pub fn fan_in_uniform(shape: impl AsRef<[usize]>, fan_in: usize) -> Result<Tensor> {
    let bound = if fan_in == 0 { 0.0 } else { 1.0 / (fan_in as f64).sqrt() };
    Tensor::uniform(-bound, bound, shape, ())
}
