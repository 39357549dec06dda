//! A convolutional network for digits.

use super::images;
use crate::nn::{BatchNorm2d, Conv2d, Dropout, Forward, Linear, MaxPool2d, Module};
use crate::{Result, Tensor};

/// Two convolutions, each with a norm, ReLU and a pool, then two linear layers.
///
/// ```
/// use cresset::models::Cnn;
/// use cresset::prelude::*;
///
/// assert_eq!(Cnn::new()?.call(&Tensor::zeros([2, 64], ())?)?.shape(), [2, 10]);
/// # Ok::<(), cresset::Error>(())
/// ```
#[derive(Module)]
pub struct Cnn {
    conv1: Conv2d,
    norm1: BatchNorm2d,
    conv2: Conv2d,
    norm2: BatchNorm2d,
    pool: MaxPool2d,
    dropout: Dropout,
    fc1: Linear,
    fc2: Linear,
}

impl Cnn {
    /// A network with weights by chance.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new() -> Result<Cnn> {
        Ok(Cnn {
            conv1: Conv2d::new(1, 32, 3)?.padding(1)?,
            norm1: BatchNorm2d::new(32)?,
            conv2: Conv2d::new(32, 64, 3)?.padding(1)?,
            norm2: BatchNorm2d::new(64)?,
            pool: MaxPool2d::new(2)?,
            dropout: Dropout::new(0.25)?,
            fc1: Linear::new(64 * 2 * 2, 128)?,
            fc2: Linear::new(128, 10)?,
        })
    }
}

impl Forward for Cnn {
    type Output = Tensor;

    fn forward(&self, pixels: &Tensor) -> Result<Tensor> {
        let x = images(pixels, &[1])?;
        let x = self.pool.call(&self.norm1.call(&self.conv1.call(&x)?)?.relu()?)?;
        let x = self.pool.call(&self.norm2.call(&self.conv2.call(&x)?)?.relu()?)?;
        let x = self.fc1.call(&x.flatten(1, -1)?)?.relu()?;
        self.fc2.call(&self.dropout.call(&x)?)
    }
}
