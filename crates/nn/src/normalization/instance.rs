//! Normalization by the channels of each sample.

use super::{held, ones, statistical, statistics, tensor, zeros};
use crate::{Buffer, Forward, Hooks, Module, Parameter, Training, check};
use cresset_tensor::ops::BatchNorm;
use cresset_tensor::{Result, Tensor};

statistical! {
    /// Lines `[batch, channels, length]` without the mean and spread of each sample's channels.
    InstanceNorm1d: affine false, tracking false, momentum f64;
    /// Images `[batch, channels, height, width]` without the mean and spread of each sample's channels.
    InstanceNorm2d: affine false, tracking false, momentum f64;
    /// Volumes `[batch, channels, depth, height, width]` without the mean and spread of each
    /// sample's channels.
    InstanceNorm3d: affine false, tracking false, momentum f64;
}

macro_rules! instances {
    ($($name:ident: $batched:literal;)*) => {$(
        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                check::rank(stringify!($name), input, &[$batched - 1, $batched])?;
                if self.weight.is_some() || self.running_mean.is_some() {
                    let dim = input.dim() + 1 - $batched;
                    check::size(stringify!($name), "channels", input, dim, self.num_features)?;
                }
                if input.dim() == $batched {
                    return self.normalize(input);
                }
                self.normalize(&input.unsqueeze(0)?)?.squeeze_dim(0)
            }
        }

        impl $name {
            fn normalize(&self, input: &Tensor) -> Result<Tensor> {
                let (mean, variance) = (held(&self.running_mean), held(&self.running_var));
                let training = self.training.is_on() || mean.is_none();
                let how = BatchNorm { training, momentum: self.momentum, epsilon: self.eps };
                let (weight, bias) = (tensor(&self.weight), tensor(&self.bias));
                input.instance_norm([mean.as_ref(), variance.as_ref()], weight.as_ref(), bias.as_ref(), how)
            }
        }
    )*};
}

instances! {
    InstanceNorm1d: 3;
    InstanceNorm2d: 4;
    InstanceNorm3d: 5;
}
