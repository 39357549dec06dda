//! A recurrent network for digits.

use super::images;
use crate::nn::{Forward, Linear, Lstm, Module};
use crate::{Result, Tensor};

/// An LSTM that reads a digit row by row, and a linear layer on what it holds after the last.
///
/// ```
/// use cresset::models::Rnn;
/// use cresset::prelude::*;
///
/// assert_eq!(Rnn::new()?.call(&Tensor::zeros([2, 64], ())?)?.shape(), [2, 10]);
/// # Ok::<(), cresset::Error>(())
/// ```
#[derive(Module)]
pub struct Rnn {
    lstm: Lstm,
    fc: Linear,
}

impl Rnn {
    /// A network with weights by chance.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new() -> Result<Rnn> {
        Ok(Rnn { lstm: Lstm::new(8, 64)?.batch_first(true)?, fc: Linear::new(64, 10)? })
    }
}

impl Forward for Rnn {
    type Output = Tensor;

    fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let (outputs, _) = self.lstm.call((&images(pixels, &[])?, None))?;
        self.fc.call(&outputs.select(1, -1)?)
    }
}
