//! Shares that add up to 1.

use crate::check;
use crate::{Forward, Module};
use cresset_tensor::{Result, Tensor};

macro_rules! softmaxes {
    ($($(#[$doc:meta])* $name:ident: |$x:ident, $dim:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            dim: isize,
        }

        impl $name {
            /// Along `dim`; a negative one counts from the back.
            pub fn new(dim: isize) -> $name {
                $name { dim }
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                let $dim = self.dim;
                $value
            }
        }
    )*};
}

softmaxes! {
    /// `e^x`, divided by the sum along a dimension.
    Softmax: |x, dim| x.softmax(dim);
    /// `e^-x`, divided by the sum along a dimension.
    Softmin: |x, dim| x.softmin(dim, None);
    /// The logarithm of [`Softmax`].
    LogSoftmax: |x, dim| x.log_softmax(dim);
}

/// [`Softmax`] over the channels of images, at every place.
#[derive(Clone, Copy, Debug, Default, Module)]
pub struct Softmax2d;

impl Forward for Softmax2d {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        check::rank("Softmax2d", input, &[3, 4])?;
        input.softmax(-3)
    }
}
