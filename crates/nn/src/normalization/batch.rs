//! Normalization by the channels of a batch.

use super::anew::weigh_the_same;
use super::{held, ones, statistical, statistics, tensor, zeros};
use crate::{Buffer, Forward, Hooks, Module, Parameter, Training, check};
use cresset_tensor::ops::BatchNorm;
use cresset_tensor::{Result, Tensor};

statistical! {
    /// Batches `[batch, channels]` or `[batch, channels, length]` without the mean and spread of
    /// their channels. A momentum of `None` gives every batch seen the same weight.
    BatchNorm1d: affine true, tracking true, momentum Option<f64>;
    /// Images `[batch, channels, height, width]` without the mean and spread of their channels.
    /// A momentum of `None` gives every batch seen the same weight.
    ///
    /// ```
    /// use cresset_nn::{BatchNorm2d, Forward, Module, Tensor};
    ///
    /// let norm = BatchNorm2d::new(3)?.momentum(0.05)?;
    /// norm.call(&Tensor::randn([4, 3, 8, 8], ())?)?;
    /// norm.eval();
    /// assert_eq!(norm.num_batches_tracked.as_ref().unwrap().tensor().to_vec::<i64>()?, [1]);
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    BatchNorm2d: affine true, tracking true, momentum Option<f64>;
    /// Volumes `[batch, channels, depth, height, width]` without the mean and spread of their
    /// channels. A momentum of `None` gives every batch seen the same weight.
    BatchNorm3d: affine true, tracking true, momentum Option<f64>;
}

macro_rules! batches {
    ($($name:ident: $ranks:expr;)*) => {$(
        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                check::rank(stringify!($name), input, &$ranks)?;
                check::size(stringify!($name), "channels", input, 1, self.num_features)?;
                let training = self.training.is_on();
                let momentum = match (&self.num_batches_tracked, self.momentum) {
                    (Some(seen), momentum) if training => count(seen, momentum)?,
                    (_, momentum) => momentum.unwrap_or(0.0),
                };
                let (mean, variance) = (held(&self.running_mean), held(&self.running_var));
                let how = BatchNorm { training: training || mean.is_none(), momentum, epsilon: self.eps };
                let (weight, bias) = (tensor(&self.weight), tensor(&self.bias));
                input.batch_norm([mean.as_ref(), variance.as_ref()], weight.as_ref(), bias.as_ref(), how)
            }
        }
    )*};
}

batches! {
    BatchNorm1d: [2, 3];
    BatchNorm2d: [4];
    BatchNorm3d: [5];
}

/// Counts a batch, and says how far the running statistics are to move.
fn count(seen: &Buffer, momentum: Option<f64>) -> Result<f64> {
    let seen = seen.tensor();
    seen.add_(1)?;
    match momentum.filter(|_| !weigh_the_same()) {
        Some(momentum) => Ok(momentum),
        None => Ok(1.0 / seen.item()?.as_f64()),
    }
}
