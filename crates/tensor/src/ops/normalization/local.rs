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
        let mut mean = self.nearby(size)?;
        mean = mean.mul(how.alpha)?;
        mean = mean.add(how.k)?;
        mean = mean.pow(how.beta)?;
        self.div(&mean)
    }

    /// The mean of the squares in so many channels.
    fn nearby(&self, size: isize) -> Result<Tensor> {
        let mut squares = self.mul(self)?;
        let ones = |rank: usize| -> PerDim { std::iter::repeat_n(1, rank).collect() };
        let window = |rank: usize| -> PerDim { std::iter::once(size).chain(ones(rank - 1)).collect() };
        let averaging = |rank: usize| {
            let windows = Pooling { stride: ones(rank), ..Pooling::new(window(rank)) };
            Averaging { windows, ..Averaging::new(window(rank)) }
        };
        if self.dim() == 3 {
            squares = squares.unsqueeze(1)?;
            squares = squares.pad(&[0, 0, size / 2, (size - 1) / 2], Padding::Zeros)?;
            return squares.avg_pool2d(&averaging(2))?.squeeze_dim(1);
        }
        let sizes = [self.shape()[0], 1, self.shape()[1], self.shape()[2]].map(|size| size as isize);
        squares = squares.view([sizes[0], sizes[1], sizes[2], sizes[3], -1])?;
        squares = squares.pad(&[0, 0, 0, 0, size / 2, (size - 1) / 2], Padding::Zeros)?;
        squares.avg_pool3d(&averaging(3))?.squeeze_dim(1)?.view(self.shape())
    }
}
