//! Averages of windows, of one power or another.

use super::{Windows, sliding};
use crate::{Forward, Module, PerDim, check, functional};
use cresset_tensor::ops::Averaging;
use cresset_tensor::{Result, Tensor};

macro_rules! averages {
    ($($(#[$doc:meta])* $name:ident, $dims:literal: $pool:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            #[module(skip)]
            windows: Windows<$dims>,
            count_include_pad: bool,
            divisor_override: Option<i64>,
        }

        sliding!($name, $dims, padded);

        impl $name {
            /// Windows of `kernel_size`, side by side.
            ///
            /// # Errors
            /// For a size of 0.
            pub fn new(kernel_size: impl PerDim<$dims>) -> Result<$name> {
                let windows = Windows::new(stringify!($name), kernel_size.numbers());
                windows.check()?;
                Ok($name { windows, count_include_pad: true, divisor_override: None })
            }

            /// Whether places in the padding count; they do at first.
            pub fn count_include_pad(mut self, count_include_pad: bool) -> Result<$name> {
                self.count_include_pad = count_include_pad;
                Ok(self)
            }

            /// What sums are divided by, if not by the number of places.
            ///
            /// # Errors
            /// For 0.
            pub fn divisor_override(mut self, divisor: impl Into<Option<i64>>) -> Result<$name> {
                self.divisor_override = divisor.into();
                let zero = self.divisor_override == Some(0);
                check::within(stringify!($name), "divisor_override", 0, !zero, "other than 0")?;
                Ok(self)
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])?;
                let how = Averaging {
                    windows: self.windows.pooling(),
                    count_include_pad: self.count_include_pad,
                    divisor_override: self.divisor_override,
                };
                $pool(input, &how)
            }
        }
    )*};
}

averages! {
    /// Averages of windows that slide over the last dimension.
    AvgPool1d, 1: Tensor::avg_pool1d;
    /// Averages of windows that slide over the last two dimensions.
    AvgPool2d, 2: Tensor::avg_pool2d;
    /// Averages of windows that slide over the last three dimensions.
    AvgPool3d, 3: Tensor::avg_pool3d;
}

macro_rules! powers {
    ($($(#[$doc:meta])* $name:ident, $dims:literal: $pool:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            norm_type: f64,
            #[module(skip)]
            windows: Windows<$dims>,
        }

        sliding!($name, $dims);

        impl $name {
            /// Norms of order `norm_type` of windows of `kernel_size`, side by side.
            ///
            /// # Errors
            /// For a size or an order of 0.
            pub fn new(norm_type: f64, kernel_size: impl PerDim<$dims>) -> Result<$name> {
                let windows = Windows::new(stringify!($name), kernel_size.numbers());
                windows.check()?;
                check::within(stringify!($name), "norm_type", norm_type, norm_type != 0.0, "other than 0")?;
                Ok($name { norm_type, windows })
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])?;
                // A stride that nobody asked for is left to the average, as torch does.
                let mut windows = self.windows.pooling();
                if self.windows.stride.is_none() {
                    windows.stride.clear();
                }
                functional::lp_pool::<$dims>(input, self.norm_type, windows, $pool)
            }
        }
    )*};
}

powers! {
    /// `(sum of x^p)^(1/p)` of windows that slide over the last dimension.
    LpPool1d, 1: Tensor::avg_pool1d;
    /// `(sum of x^p)^(1/p)` of windows that slide over the last two dimensions.
    LpPool2d, 2: Tensor::avg_pool2d;
    /// `(sum of x^p)^(1/p)` of windows that slide over the last three dimensions.
    LpPool3d, 3: Tensor::avg_pool3d;
}
