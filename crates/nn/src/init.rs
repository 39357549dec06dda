//! How parameters start.

use cresset_tensor::{Result, Tensor};

/// Uniform numbers within `1 / sqrt(inputs)` of 0: how linear layers start in torch.
pub fn linear_uniform(shape: impl AsRef<[usize]>, inputs: usize) -> Result<Tensor> {
    let bound = 1.0 / (inputs as f64).sqrt();
    Tensor::uniform(-bound, bound, shape, ())
}
