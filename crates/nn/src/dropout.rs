//! Layers that leave things out while they train.

use crate::check::probability;
use crate::{Forward, Module, Overwrite, Training, functional};
use cresset_tensor::{Result, Tensor};

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident: $function:path, $change:path;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Module)]
        pub struct $name {
            p: f64,
            training: Training,
        }

        impl $name {
            /// Each with probability `p`.
            ///
            /// # Errors
            /// If `p` is no probability.
            pub fn new(p: f64) -> Result<$name> {
                probability(stringify!($name), p)?;
                Ok($name { p, training: Training::default() })
            }
        }

        impl Default for $name {
            /// Every other one.
            fn default() -> $name {
                $name { p: 0.5, training: Training::default() }
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                $function(input, self.p, self.training.is_on())
            }
        }

        impl Overwrite for $name {
            fn overwrite(&self, input: &Tensor) -> Result<()> {
                $change(input, self.p, self.training.is_on())
            }
        }
    )*};
}

dropouts! {
    /// Leaves elements out while it trains, and scales the others.
    ///
    /// ```
    /// use cresset_nn::{Dropout, Forward, Module, Tensor};
    ///
    /// let (dropout, x) = (Dropout::new(0.5)?, Tensor::ones([8], ())?);
    /// dropout.eval();
    /// assert_eq!(dropout.call(&x)?.to_vec::<f32>()?, [1.0; 8]);
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    Dropout: functional::dropout, functional::dropout_;
    /// Leaves whole channels of lines out while it trains, and scales the others.
    Dropout1d: functional::dropout1d, functional::dropout1d_;
    /// Leaves whole channels of images out while it trains, and scales the others.
    Dropout2d: functional::dropout2d, functional::dropout2d_;
    /// Leaves whole channels of volumes out while it trains, and scales the others.
    Dropout3d: functional::dropout3d, functional::dropout3d_;
    /// Leaves elements out while it trains so that mean and variance stay: goes with [`Selu`](crate::Selu).
    AlphaDropout: functional::alpha_dropout, functional::alpha_dropout_;
    /// Leaves whole channels out while it trains so that mean and variance stay.
    FeatureAlphaDropout: functional::feature_alpha_dropout, functional::feature_alpha_dropout_;
}
