//! Windows that share the input evenly, so many of them.

use super::maximum::{Locating, WithIndices, with_indices};
use crate::{Forward, Module, check, functional};
use cresset_tensor::{Result, Tensor};

/// How many windows there are in each of `D` dimensions: a number for all, one for each, or `None`
/// for as many as the input has places.
///
/// `7`, `[7, 7]` and `[None, Some(7)]` are all sizes of two dimensions.
pub trait OutputSize<const D: usize> {
    /// A number for each dimension.
    fn sizes(self) -> [Option<usize>; D];
}

impl<const D: usize> OutputSize<D> for usize {
    fn sizes(self) -> [Option<usize>; D] {
        [Some(self); D]
    }
}

impl<const D: usize> OutputSize<D> for [usize; D] {
    fn sizes(self) -> [Option<usize>; D] {
        self.map(Some)
    }
}

impl<const D: usize> OutputSize<D> for [Option<usize>; D] {
    fn sizes(self) -> [Option<usize>; D] {
        self
    }
}

impl OutputSize<2> for (usize, usize) {
    fn sizes(self) -> [Option<usize>; 2] {
        [Some(self.0), Some(self.1)]
    }
}

impl OutputSize<3> for (usize, usize, usize) {
    fn sizes(self) -> [Option<usize>; 3] {
        [Some(self.0), Some(self.1), Some(self.2)]
    }
}

fn signed<const D: usize>(sizes: [Option<usize>; D]) -> [Option<isize>; D] {
    sizes.map(|size| size.map(|size| isize::try_from(size).unwrap_or(isize::MAX)))
}

/// The one size of a line, or that of the input.
fn length(size: [Option<usize>; 1], input: &Tensor) -> isize {
    let own = input.shape().last().copied().unwrap_or(0);
    isize::try_from(size[0].unwrap_or(own)).unwrap_or(isize::MAX)
}

macro_rules! adaptive {
    ($($(#[$doc:meta])* $name:ident, $dims:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            output_size: [Option<usize>; $dims],
        }

        impl $name {
            /// So many windows.
            pub fn new(output_size: impl OutputSize<$dims>) -> Result<$name> {
                Ok($name { output_size: output_size.sizes() })
            }

            fn check(&self, input: &Tensor) -> Result<()> {
                check::rank(stringify!($name), input, &[$dims + 1, $dims + 2])
            }
        }
    )*};
}

adaptive! {
    /// Averages of windows that share the last dimension.
    AdaptiveAvgPool1d, 1;
    /// Averages of windows that share the last two dimensions.
    ///
    /// ```
    /// use cresset_nn::{AdaptiveAvgPool2d, Forward, Tensor};
    ///
    /// let pool = AdaptiveAvgPool2d::new(1)?;
    /// assert_eq!(pool.call(&Tensor::ones([2, 5, 7, 9], ())?)?.shape(), [2, 5, 1, 1]);
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    AdaptiveAvgPool2d, 2;
    /// Averages of windows that share the last three dimensions.
    AdaptiveAvgPool3d, 3;
    /// The largest elements of windows that share the last dimension.
    AdaptiveMaxPool1d, 1;
    /// The largest elements of windows that share the last two dimensions.
    AdaptiveMaxPool2d, 2;
    /// The largest elements of windows that share the last three dimensions.
    AdaptiveMaxPool3d, 3;
}

macro_rules! averages {
    ($($name:ident: |$size:ident, $x:ident| $value:expr;)*) => {$(
        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                self.check($x)?;
                let $size = self.output_size;
                $value
            }
        }
    )*};
}

averages! {
    AdaptiveAvgPool1d: |size, x| x.adaptive_avg_pool1d(length(size, x));
    AdaptiveAvgPool2d: |size, x| x.adaptive_avg_pool2d(&signed(size));
    AdaptiveAvgPool3d: |size, x| x.adaptive_avg_pool3d(&signed(size));
}

macro_rules! maxima {
    ($($name:ident: |$size:ident, $x:ident| $both:expr;)*) => {$(
        impl $name {
            /// Also gives where each maximum was found.
            pub fn return_indices(self) -> WithIndices<$name> {
                with_indices(self)
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                Ok(self.locate(input)?.0)
            }
        }

        impl Locating for $name {
            fn locate(&self, $x: &Tensor) -> Result<(Tensor, Tensor)> {
                self.check($x)?;
                let $size = self.output_size;
                let [out, indices] = $both?;
                Ok((out, indices))
            }
        }
    )*};
}

maxima! {
    AdaptiveMaxPool1d: |size, x| x.adaptive_max_pool1d(length(size, x));
    AdaptiveMaxPool2d: |size, x| x.adaptive_max_pool2d(&signed(size));
    AdaptiveMaxPool3d: |size, x| functional::adaptive_max_pool3d(x, size);
}
