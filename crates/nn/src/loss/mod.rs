//! Losses as modules, by what they compare.
//!
//! A loss is called with what a model said and what it should have said. Options are methods:
//!
//! ```
//! use cresset_nn::{CrossEntropyLoss, Forward, Reduction, Tensor};
//!
//! let loss = CrossEntropyLoss::new().label_smoothing(0.1)?.reduction(Reduction::Sum)?;
//! let scores = Tensor::zeros([4, 10], ())?;
//! let total = loss.call((&scores, &Tensor::new([3i64, 1, 4, 1])?))?;
//! assert!((total.item()?.as_f64() - 4.0 * 10f64.ln()).abs() < 1e-5);
//! # Ok::<(), cresset_nn::Error>(())
//! ```

mod adaptive;
mod classes;
mod distance;
mod linear;
mod pairs;
mod probability;
mod sequence;

pub use adaptive::AdaptiveLogSoftmaxWithLoss;
pub use classes::*;
pub use cresset_tensor::ops::Reduction;
pub use distance::*;
pub use linear::LinearCrossEntropyLoss;
pub use pairs::*;
pub use probability::*;
pub use sequence::CtcLoss;

use crate::Buffer;
use cresset_tensor::Tensor;

/// Declares losses. A line per option: its name, type, default, and what is allowed if not all is;
/// then weights, which are buffers if they are given; and last how the loss is computed.
macro_rules! losses {
    ($(
        $(#[$doc:meta])*
        $name:ident {
            $($(#[$about:meta])* $option:ident: $ty:ty = $default:expr $(, $expected:literal if $allowed:expr)?;)*
        }
        $(weights { $($(#[$of:meta])* $buffer:ident;)* })?
        |$this:ident, $($input:ident),*| $compute:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(crate::Module)]
        pub struct $name {
            #[module(skip)]
            reduction: cresset_tensor::ops::Reduction,
            $($option: $ty,)*
            $($($buffer: Option<crate::Buffer>,)*)?
            hooks: crate::Hooks,
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl $name {
            /// With torch's defaults.
            pub fn new() -> Self {
                Self {
                    reduction: cresset_tensor::ops::Reduction::Mean,
                    $($option: $default,)*
                    $($($buffer: None,)*)?
                    hooks: crate::Hooks::default(),
                }
            }

            /// What becomes of the losses of single samples: their mean unless said otherwise.
            pub fn reduction(self, reduction: cresset_tensor::ops::Reduction) -> cresset_tensor::Result<Self> {
                Ok(Self { reduction, ..self })
            }

            $(
                $(#[$about])*
                pub fn $option(self, $option: $ty) -> cresset_tensor::Result<Self> {
                    $(
                        let allowed: fn($ty) -> bool = $allowed;
                        crate::check::within(
                            stringify!($name), stringify!($option), $option, allowed($option), $expected,
                        )?;
                    )?
                    Ok(Self { $option, ..self })
                }
            )*

            $($(
                $(#[$of])*
                pub fn $buffer(self, $buffer: &cresset_tensor::Tensor) -> cresset_tensor::Result<Self> {
                    Ok(Self { $buffer: Some(crate::Buffer::new($buffer.detach()?)), ..self })
                }
            )*)?
        }

        impl crate::Forward<($(crate::loss::tensor!($input)),*)> for $name {
            type Output = cresset_tensor::Tensor;

            fn forward(
                &self,
                ($($input),*): ($(&crate::loss::tensor!($input)),*),
            ) -> cresset_tensor::Result<cresset_tensor::Tensor> {
                let $this = self;
                $compute
            }
        }
    )*};
}

/// A tensor for each name.
macro_rules! tensor {
    ($name:ident) => {
        cresset_tensor::Tensor
    };
}

use {losses, tensor};

/// The tensor that a buffer is, if there is one.
fn given(buffer: &Option<Buffer>) -> Option<Tensor> {
    buffer.as_ref().map(Buffer::tensor)
}
