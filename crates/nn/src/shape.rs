//! Layers that only move elements around.

use crate::{Forward, Module, check};
use cresset_tensor::ops::{Interpolation, Resize, Unfolding};
use cresset_tensor::{Result, Sizes, Tensor};

/// Gives what it is given.
#[derive(Clone, Copy, Debug, Default, Module)]
pub struct Identity;

impl Forward for Identity {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Ok(input.clone())
    }
}

/// Several dimensions as one: all but the first by default.
#[derive(Clone, Copy, Debug, Module)]
pub struct Flatten {
    start_dim: isize,
    end_dim: isize,
}

impl Flatten {
    /// Dimensions `start_dim` to `end_dim`, both included; negative ones count from the back.
    pub fn new(start_dim: isize, end_dim: isize) -> Flatten {
        Flatten { start_dim, end_dim }
    }
}

impl Default for Flatten {
    fn default() -> Flatten {
        Flatten::new(1, -1)
    }
}

impl Forward for Flatten {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.flatten(self.start_dim, self.end_dim)
    }
}

/// One dimension as several.
#[derive(Clone, Debug, Module)]
pub struct Unflatten {
    dim: isize,
    sizes: Vec<i64>,
}

impl Unflatten {
    /// Dimension `dim` as dimensions of these sizes; -1 is what is left.
    pub fn new(dim: isize, unflattened_size: impl Sizes) -> Unflatten {
        Unflatten { dim, sizes: unflattened_size.written().to_vec() }
    }
}

impl Forward for Unflatten {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.unflatten(self.dim, self.sizes.as_slice())
    }
}

macro_rules! shuffles {
    ($($(#[$doc:meta])* $name:ident, $option:ident: $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            $option: usize,
        }

        impl $name {
            /// # Errors
            /// For 0.
            pub fn new($option: usize) -> Result<$name> {
                check::positive(stringify!($name), &[(stringify!($option), $option)])?;
                Ok($name { $option })
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$method(self.$option)
            }
        }
    )*};
}

shuffles! {
    /// Channels as pixels: `[.., c * r * r, h, w]` becomes `[.., c, h * r, w * r]`.
    PixelShuffle, upscale_factor: pixel_shuffle;
    /// Pixels as channels: `[.., c, h * r, w * r]` becomes `[.., c * r * r, h, w]`.
    PixelUnshuffle, downscale_factor: pixel_unshuffle;
    /// Channels in groups, taken from each group in turn.
    ChannelShuffle, groups: channel_shuffle;
}

/// Images brought to another size.
///
/// ```
/// use cresset_nn::{Forward, Interpolation, Tensor, Upsample};
///
/// let larger = Upsample::by(2.0).mode(Interpolation::Bilinear)?.align_corners(true)?;
/// assert_eq!(larger.call(&Tensor::ones([1, 3, 4, 5], ())?)?.shape(), [1, 3, 8, 10]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Upsample {
    #[module(skip)]
    size: Resize,
    #[module(skip)]
    mode: Interpolation,
    align_corners: Option<bool>,
}

impl Upsample {
    /// To these sizes, or this one in all dimensions.
    pub fn to_size(size: impl Into<Vec<usize>>) -> Upsample {
        Upsample::new(Resize::To(size.into()))
    }

    /// By this factor in all dimensions.
    pub fn by(scale_factor: f64) -> Upsample {
        Upsample::by_each(vec![scale_factor])
    }

    /// By a factor in each dimension.
    pub fn by_each(scale_factors: impl Into<Vec<f64>>) -> Upsample {
        Upsample::new(Resize::By { factors: scale_factors.into(), recompute: false })
    }

    fn new(size: Resize) -> Upsample {
        Upsample { size, mode: Interpolation::Nearest, align_corners: None }
    }

    /// How elements in between are found: by the nearest at first.
    pub fn mode(mut self, mode: Interpolation) -> Result<Upsample> {
        self.mode = mode;
        Ok(self)
    }

    /// Whether the first and the last element keep their places; for methods along lines and curves.
    pub fn align_corners(mut self, align: impl Into<Option<bool>>) -> Result<Upsample> {
        self.align_corners = align.into();
        Ok(self)
    }

    /// Whether places are computed with the sizes that came out, and not with the factors.
    pub fn recompute_scale_factor(mut self, again: bool) -> Result<Upsample> {
        if let Resize::By { recompute, .. } = &mut self.size {
            *recompute = again;
        }
        Ok(self)
    }
}

impl Forward for Upsample {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.interpolate(&self.size, self.mode, self.align_corners)
    }
}

/// What windows over images see, a column for each: `[batch, channels * places, windows]`.
#[derive(Clone, Debug, Module)]
pub struct Unfold {
    #[module(skip)]
    windows: Unfolding,
}

/// Columns put back to where windows saw them, and summed where several did.
#[derive(Clone, Debug, Module)]
pub struct Fold {
    output_size: [usize; 2],
    #[module(skip)]
    windows: Unfolding,
}

fn windows(kernel: [usize; 2]) -> Unfolding {
    use crate::dims::signed;
    Unfolding {
        kernel: signed(&kernel),
        dilation: signed(&[1, 1]),
        padding: signed(&[0, 0]),
        stride: signed(&[1, 1]),
    }
}

macro_rules! folds {
    ($($name:ident)*) => {$(
        impl $name {
            /// How far it is from one place of a window to the next; 1 at first.
            pub fn dilation(mut self, dilation: impl crate::PerDim<2>) -> Result<$name> {
                let dilation = dilation.numbers();
                check::all_positive(stringify!($name), "dilation", &dilation)?;
                self.windows.dilation = crate::dims::signed(&dilation);
                Ok(self)
            }

            /// How far windows reach beyond the image; 0 at first.
            pub fn padding(mut self, padding: impl crate::PerDim<2>) -> Result<$name> {
                self.windows.padding = crate::dims::signed(&padding.numbers());
                Ok(self)
            }

            /// How far it is from one window to the next; 1 at first.
            pub fn stride(mut self, stride: impl crate::PerDim<2>) -> Result<$name> {
                let stride = stride.numbers();
                check::all_positive(stringify!($name), "stride", &stride)?;
                self.windows.stride = crate::dims::signed(&stride);
                Ok(self)
            }
        }
    )*};
}

folds! { Unfold Fold }

impl Unfold {
    /// Windows of `kernel_size`, at every place.
    ///
    /// # Errors
    /// For a size of 0.
    pub fn new(kernel_size: impl crate::PerDim<2>) -> Result<Unfold> {
        let kernel = kernel_size.numbers();
        check::all_positive("Unfold", "kernel_size", &kernel)?;
        Ok(Unfold { windows: windows(kernel) })
    }
}

impl Forward for Unfold {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.im2col(&self.windows)
    }
}

impl Fold {
    /// Images of `output_size`, seen by windows of `kernel_size` at every place.
    ///
    /// # Errors
    /// For a size of 0.
    pub fn new(output_size: impl crate::PerDim<2>, kernel_size: impl crate::PerDim<2>) -> Result<Fold> {
        let kernel = kernel_size.numbers();
        check::all_positive("Fold", "kernel_size", &kernel)?;
        Ok(Fold { output_size: output_size.numbers(), windows: windows(kernel) })
    }
}

impl Forward for Fold {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.col2im(self.output_size, &self.windows)
    }
}
