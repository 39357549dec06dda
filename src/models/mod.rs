//! Models that come along: small and whole, written as one writes one's own.
//!
//! The first three read digits, rows of 64 pixels, and give scores of ten classes; [`Gpt`] reads numbers of
//! characters and gives scores of the next one at every place.

mod cnn;
mod gpt;
mod rnn;

pub use cnn::Cnn;
pub use gpt::{Gpt, GptOptions};
pub use rnn::Rnn;

use crate::nn::{Linear, Relu, Sequential};
use crate::{Result, Tensor};

/// Three linear layers with ReLU between them.
///
/// ```
/// use cresset::prelude::*;
///
/// let scores = cresset::models::mlp()?.call(&Tensor::zeros([2, 64], ())?)?;
/// assert_eq!(scores.shape(), [2, 10]);
/// # Ok::<(), cresset::Error>(())
/// ```
pub fn mlp() -> Result<Sequential> {
    Ok(Sequential::new()
        .push(Linear::new(64, 128)?)
        .push(Relu)
        .push(Linear::new(128, 64)?)
        .push(Relu)
        .push(Linear::new(64, 10)?))
}

/// Rows of 64 pixels as images of 8 × 8, with `channels` in front of them.
fn images(pixels: &Tensor, channels: &[usize]) -> Result<Tensor> {
    let samples = pixels.shape().first().copied().unwrap_or(1);
    pixels.reshape([&[samples], channels, &[8, 8]].concat())
}
