//! Pooling: what windows see, in one number.

mod adaptive;
mod average;
mod fractional;
mod maximum;

pub use adaptive::*;
pub use average::*;
pub use fractional::*;
pub use maximum::*;

use crate::check;
use crate::dims::signed;
use cresset_tensor::Result;
use cresset_tensor::ops::Pooling;

/// Windows over `D` dimensions.
#[derive(Clone, Debug)]
struct Windows<const D: usize> {
    layer: &'static str,
    kernel: [usize; D],
    /// As the kernel unless said otherwise.
    stride: Option<[usize; D]>,
    padding: [usize; D],
    dilation: [usize; D],
    ceil_mode: bool,
}

impl<const D: usize> Windows<D> {
    fn new(layer: &'static str, kernel: [usize; D]) -> Windows<D> {
        Windows { layer, kernel, stride: None, padding: [0; D], dilation: [1; D], ceil_mode: false }
    }

    fn check(&self) -> Result<()> {
        check::all_positive(self.layer, "kernel_size", &self.kernel)?;
        check::all_positive(self.layer, "stride", &self.stride())?;
        check::all_positive(self.layer, "dilation", &self.dilation)?;
        for dim in 0..D {
            let half = (self.dilation[dim].saturating_mul(self.kernel[dim] - 1).saturating_add(1)) / 2;
            let expected = format_args!("at most {half} in dimension {dim}: half of a window");
            check::within(self.layer, "padding", self.padding[dim], self.padding[dim] <= half, expected)?;
        }
        Ok(())
    }

    fn stride(&self) -> [usize; D] {
        self.stride.unwrap_or(self.kernel)
    }

    fn pooling(&self) -> Pooling {
        Pooling {
            kernel: signed(&self.kernel),
            stride: signed(&self.stride()),
            padding: signed(&self.padding),
            dilation: signed(&self.dilation),
            ceil_mode: self.ceil_mode,
        }
    }
}

/// The options that all windows have.
macro_rules! sliding {
    ($name:ident, $dims:literal) => {
        impl $name {
            /// How far it is from one window to the next; as far as a window is wide at first.
            pub fn stride(mut self, stride: impl crate::PerDim<$dims>) -> Result<$name> {
                self.windows.stride = Some(stride.numbers());
                self.windows.check()?;
                Ok(self)
            }

            /// Whether a last window may reach beyond the input; not at first.
            pub fn ceil_mode(mut self, ceil_mode: bool) -> Result<$name> {
                self.windows.ceil_mode = ceil_mode;
                Ok(self)
            }
        }
    };
    ($name:ident, $dims:literal, padded) => {
        sliding!($name, $dims);

        impl $name {
            /// How far windows reach beyond the input, at most half of a window; 0 at first.
            pub fn padding(mut self, padding: impl crate::PerDim<$dims>) -> Result<$name> {
                self.windows.padding = padding.numbers();
                self.windows.check()?;
                Ok(self)
            }
        }
    };
}
use sliding;
