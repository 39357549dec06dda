//! Normalization by the channels nearby.

use crate::ops::{Averaging, Padding, PerDim, Pooling, check_float};
use crate::{Cause, Error, Result, Tensor};

/// The options of [`Tensor::local_response_norm`].
#[derive(Clone, Copy, Debug)]
pub struct LocalResponseNorm {
    /// How many channels count as nearby.
    pub size: usize,
    /// What the mean of their squares is multiplied by.
    pub alpha: f64,
    /// The power to which the sum is taken.
    pub beta: f64,
    /// What is added.
    pub k: f64,
}

impl LocalResponseNorm {
    /// So many channels, and the numbers of the paper that introduced the method.
    pub fn new(size: usize) -> LocalResponseNorm {
        LocalResponseNorm { size, alpha: 1e-4, beta: 0.75, k: 1.0 }
    }
}

impl Tensor {
    /// Elements of `[samples, channels, ..]` divided by `(k + alpha * mean)^beta`, where the mean is that
    /// of the squares in the channels nearby.
    pub fn local_response_norm(&self, how: LocalResponseNorm) -> Result<Tensor> {
        const NAME: &str = "local_response_norm";
        check_float(NAME, self)?;
        let size = isize::try_from(how.size).ok().filter(|&size| size > 0 && self.dim() > 2);
        let Some(size) = size else {
            let text = format_args!(
                "expects [samples, channels, ..] and a size from 1 on, not {:?} and {}",
                self.shape(),
                how.size
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        };
        if self.numel() == 0 {
            return Ok(self.clone());
        }
        let lines = [self.shape()[0], 1, self.shape()[1], self.shape()[2..].iter().product()];
        let squares = self.mul(self)?.reshape(lines)?;
        let squares = squares.pad(&[0, 0, size / 2, (size - 1) / 2], Padding::Constant(0.0.into()))?;
        let windows = Pooling { stride: PerDim::from_elem(1, 1), ..Pooling::new([size, 1]) };
        let mean = squares.avg_pool2d(&Averaging { windows, ..Averaging::new([size, 1]) })?;
        self.div(&mean.reshape(self.shape())?.mul(how.alpha)?.add(how.k)?.pow(how.beta)?)
    }
}
