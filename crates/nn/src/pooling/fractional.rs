//! The largest element of windows that lie at random.

use super::maximum::{Locating, WithIndices, with_indices};
use crate::functional::{self, Fraction};
use crate::{Forward, Module, PerDim, check};
use cresset_tensor::{Result, Tensor};

macro_rules! fractional {
    ($($(#[$doc:meta])* $name:ident, $dims:literal: $pool:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            kernel: [usize; $dims],
            #[module(skip)]
            to: Fraction<$dims>,
        }

        impl $name {
            /// Windows of `kernel_size`, as many as `to` says.
            ///
            /// # Errors
            /// For sizes of 0, and shares that are not between 0 and 1.
            pub fn new(kernel_size: impl PerDim<$dims>, to: Fraction<$dims>) -> Result<$name> {
                let kernel = kernel_size.numbers();
                check::all_positive(stringify!($name), "kernel_size", &kernel)?;
                to.check(stringify!($name))?;
                Ok($name { kernel, to })
            }

            /// Also gives where each maximum was found.
            pub fn return_indices(self) -> WithIndices<$name> {
                with_indices(self)
            }
        }

        impl Locating for $name {
            fn locate(&self, input: &Tensor) -> Result<(Tensor, Tensor)> {
                check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])?;
                $pool(input, self.kernel, self.to, None).map(|[out, indices]| (out, indices))
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                Ok(self.locate(input)?.0)
            }
        }
    )*};
}

fractional! {
    /// The largest element of windows that lie at random over the last two dimensions.
    ///
    /// ```
    /// use cresset_nn::functional::Fraction;
    /// use cresset_nn::{Forward, FractionalMaxPool2d, Tensor};
    ///
    /// let pool = FractionalMaxPool2d::new(2, Fraction::Ratio([0.7, 0.7]))?;
    /// assert_eq!(pool.call(&Tensor::rand([1, 3, 10, 10], ())?)?.shape(), [1, 3, 7, 7]);
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    FractionalMaxPool2d, 2: functional::fractional_max_pool2d;
    /// The largest element of windows that lie at random over the last three dimensions.
    FractionalMaxPool3d, 3: functional::fractional_max_pool3d;
}
