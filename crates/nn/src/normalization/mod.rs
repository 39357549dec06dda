//! Normalization: mean and spread taken out, and learned ones put in.

mod anew;
mod batch;
mod instance;
mod layer;
mod local;

pub use anew::update_bn;
pub use batch::*;
pub use instance::*;
pub use layer::*;
pub use local::*;

use crate::{Buffer, Parameter};
use cresset_tensor::{DType, Result, Tensor};

fn ones(shape: &[usize]) -> Result<Option<Parameter>> {
    Ok(Some(Parameter::new(Tensor::ones(shape, ())?)?))
}

fn zeros(shape: &[usize]) -> Result<Option<Parameter>> {
    Ok(Some(Parameter::new(Tensor::zeros(shape, ())?)?))
}

/// A mean of 0, a variance of 1, and no batches seen.
fn statistics(features: usize) -> Result<[Option<Buffer>; 3]> {
    Ok([Tensor::zeros([features], ())?, Tensor::ones([features], ())?, Tensor::zeros([], DType::I64)?]
        .map(|tensor| Some(Buffer::new(tensor))))
}

fn tensor(parameter: &Option<Parameter>) -> Option<Tensor> {
    parameter.as_ref().map(Parameter::tensor)
}

fn held(buffer: &Option<Buffer>) -> Option<Tensor> {
    buffer.as_ref().map(Buffer::tensor)
}

/// The fields and options of layers that keep statistics per channel.
macro_rules! statistical {
    ($($(#[$doc:meta])* $name:ident: affine $affine:literal, tracking $tracking:literal, momentum $momentum:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Module)]
        pub struct $name {
            /// What channels are multiplied by.
            pub weight: Option<Parameter>,
            /// What is added to channels.
            pub bias: Option<Parameter>,
            /// The mean of channels, from batch to batch.
            pub running_mean: Option<Buffer>,
            /// The variance of channels, from batch to batch.
            pub running_var: Option<Buffer>,
            /// How many batches there were.
            pub num_batches_tracked: Option<Buffer>,
            num_features: usize,
            eps: f64,
            momentum: $momentum,
            training: Training,
            hooks: Hooks,
        }

        impl $name {
            /// A layer for so many channels.
            ///
            /// # Errors
            /// For none.
            pub fn new(num_features: usize) -> Result<$name> {
                check::positive(stringify!($name), &[("num_features", num_features)])?;
                let layer = $name {
                    weight: None,
                    bias: None,
                    running_mean: None,
                    running_var: None,
                    num_batches_tracked: None,
                    num_features,
                    eps: 1e-5,
                    momentum: 0.1.into(),
                    training: Training::default(),
                    hooks: Hooks::default(),
                };
                layer.affine($affine)?.track_running_stats($tracking)
            }

            /// What is added to the variance; `1e-5` at first.
            ///
            /// # Errors
            /// For anything but finite numbers above 0.
            pub fn eps(mut self, eps: f64) -> Result<$name> {
                check::epsilon(stringify!($name), eps)?;
                self.eps = eps;
                Ok(self)
            }

            /// How far running statistics move towards those of a batch; a tenth of the way at first.
            pub fn momentum(mut self, momentum: impl Into<$momentum>) -> Result<$name> {
                self.momentum = momentum.into();
                Ok(self)
            }

            /// Whether channels are multiplied by a weight, and a bias is added.
            pub fn affine(mut self, affine: bool) -> Result<$name> {
                let shape = [self.num_features];
                self.weight = if affine { ones(&shape)? } else { None };
                self.bias = if affine { zeros(&shape)? } else { None };
                Ok(self)
            }

            /// Whether a bias is added, if there is a weight.
            pub fn bias(mut self, bias: bool) -> Result<$name> {
                let wanted = bias && self.weight.is_some();
                self.bias = if wanted { zeros(&[self.num_features])? } else { None };
                Ok(self)
            }

            /// Whether mean and variance are kept from batch to batch, to be used after training.
            pub fn track_running_stats(mut self, track: bool) -> Result<$name> {
                let kept = if track { statistics(self.num_features)? } else { [const { None }; 3] };
                [self.running_mean, self.running_var, self.num_batches_tracked] = kept;
                Ok(self)
            }
        }
    )*};
}
use statistical;
