//! The largest element of each window, and the way back.

use super::{Windows, sliding};
use crate::forward::called;
use crate::{Forward, Members, Module, PerDim, check, functional};
use cresset_tensor::{Result, Tensor};

/// A layer that knows where each of its outputs was found.
pub trait Locating: Module {
    /// The output, and where in its plane each element of it was found.
    fn locate(&self, input: &Tensor) -> Result<(Tensor, Tensor)>;
}

/// A pooling layer that also gives where each maximum was found, as torch's `return_indices=True`.
pub struct WithIndices<M>(M);

impl<M: Locating> Module for WithIndices<M> {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        self.0.members(members);
    }

    fn class(&self) -> &'static str {
        self.0.class()
    }
}

impl<M: Locating> Forward for WithIndices<M> {
    type Output = (Tensor, Tensor);

    fn forward(&self, input: &Tensor) -> Result<(Tensor, Tensor)> {
        self.0.locate(input)
    }
}

pub(super) fn with_indices<M: Locating>(layer: M) -> WithIndices<M> {
    WithIndices(layer)
}

macro_rules! maxima {
    ($($(#[$doc:meta])* $name:ident, $dims:literal: $pool:path, $locate:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            #[module(skip)]
            windows: Windows<$dims>,
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
                Ok($name { windows })
            }

            /// How far it is from one place of a window to the next; 1 at first.
            pub fn dilation(mut self, dilation: impl PerDim<$dims>) -> Result<$name> {
                self.windows.dilation = dilation.numbers();
                self.windows.check()?;
                Ok(self)
            }

            /// Also gives where each maximum was found.
            pub fn return_indices(self) -> WithIndices<$name> {
                with_indices(self)
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])?;
                $pool(input, &self.windows.pooling())
            }
        }

        impl Locating for $name {
            fn locate(&self, input: &Tensor) -> Result<(Tensor, Tensor)> {
                check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])?;
                $locate(input, &self.windows.pooling()).map(|[out, indices]| (out, indices))
            }
        }
    )*};
}

maxima! {
    /// The largest element of windows that slide over the last dimension.
    MaxPool1d, 1: Tensor::max_pool1d, Tensor::max_pool1d_with_indices;
    /// The largest element of windows that slide over the last two dimensions.
    ///
    /// ```
    /// use cresset_nn::{Forward, MaxPool2d, MaxUnpool2d, Tensor};
    ///
    /// let pool = MaxPool2d::new(2)?.return_indices();
    /// let (largest, places) = pool.call(&Tensor::rand([1, 3, 8, 8], ())?)?;
    /// assert_eq!(MaxUnpool2d::new(2)?.call((&largest, &places))?.shape(), [1, 3, 8, 8]);
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    MaxPool2d, 2: Tensor::max_pool2d, Tensor::max_pool2d_with_indices;
    /// The largest element of windows that slide over the last three dimensions.
    MaxPool3d, 3: Tensor::max_pool3d, Tensor::max_pool3d_with_indices;
}

macro_rules! unpools {
    ($($(#[$doc:meta])* $name:ident, $dims:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            #[module(skip)]
            windows: Windows<$dims>,
        }

        sliding!($name, $dims, padded);

        impl $name {
            /// The windows of the pooling that is undone.
            ///
            /// # Errors
            /// For a size of 0.
            pub fn new(kernel_size: impl PerDim<$dims>) -> Result<$name> {
                let windows = Windows::new(stringify!($name), kernel_size.numbers());
                windows.check()?;
                Ok($name { windows })
            }

            /// As [`call`](Forward::call), into planes of the given size.
            pub fn call_to(
                &self,
                input: &Tensor,
                indices: &Tensor,
                output_size: impl PerDim<$dims>,
            ) -> Result<Tensor> {
                let sizes = output_size.numbers();
                called::<(Tensor, Tensor), _, _>(self, (input, indices), |(input, indices): (&Tensor, &Tensor)| {
                    check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])?;
                    functional::max_unpool(input, indices, &sizes)
                })
            }
        }

        impl Forward<(Tensor, Tensor)> for $name {
            type Output = Tensor;

            fn forward(&self, (input, indices): (&Tensor, &Tensor)) -> Result<Tensor> {
                check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])?;
                let from = &input.shape()[input.dim() - $dims..];
                let Windows { kernel, padding, .. } = self.windows;
                let stride = self.windows.stride();
                let size = |dim: usize| {
                    (from[dim].saturating_sub(1).saturating_mul(stride[dim]).saturating_add(kernel[dim])).saturating_sub(padding[dim].saturating_mul(2))
                };
                functional::max_unpool(input, indices, &std::array::from_fn::<usize, $dims, _>(size))
            }
        }
    )*};
}

unpools! {
    /// Puts what [`MaxPool1d`] found back to where it was, and zeros elsewhere.
    MaxUnpool1d, 1;
    /// Puts what [`MaxPool2d`] found back to where it was, and zeros elsewhere.
    MaxUnpool2d, 2;
    /// Puts what [`MaxPool3d`] found back to where it was, and zeros elsewhere.
    MaxUnpool3d, 3;
}
