//! Normalization by the channels nearby.

use crate::{Forward, Module, check};
use cresset_tensor::ops;
use cresset_tensor::{Result, Tensor};

/// Elements divided by `(k + alpha * mean)^beta`, where the mean is that of the squares in the channels nearby.
#[derive(Clone, Copy, Debug, Module)]
pub struct LocalResponseNorm {
    size: usize,
    alpha: f64,
    beta: f64,
    k: f64,
}

impl LocalResponseNorm {
    /// So many channels count as nearby.
    ///
    /// # Errors
    /// For none.
    pub fn new(size: usize) -> Result<LocalResponseNorm> {
        check::positive("LocalResponseNorm", &[("size", size)])?;
        Ok(LocalResponseNorm { size, alpha: 1e-4, beta: 0.75, k: 1.0 })
    }

    /// What the mean is multiplied by; `1e-4` at first.
    pub fn alpha(self, alpha: f64) -> Result<LocalResponseNorm> {
        Ok(LocalResponseNorm { alpha, ..self })
    }

    /// The power to which the sum is taken; 0.75 at first.
    pub fn beta(self, beta: f64) -> Result<LocalResponseNorm> {
        Ok(LocalResponseNorm { beta, ..self })
    }

    /// What is added; 1 at first.
    pub fn k(self, k: f64) -> Result<LocalResponseNorm> {
        Ok(LocalResponseNorm { k, ..self })
    }
}

impl Forward for LocalResponseNorm {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let LocalResponseNorm { size, alpha, beta, k } = *self;
        input.local_response_norm(ops::LocalResponseNorm { size, alpha, beta, k })
    }
}
