//! Optimizers: they change parameters by their gradients.
//!
//! Names, defaults and formulas are torch's. A step is a scope in a profile, named as torch
//! names it, and made of ordinary operators.

#![forbid(unsafe_code)]

mod adam;
mod optimizer;
mod sgd;

pub use adam::{Adam, AdamOptions};
pub use cresset_tensor::{Error, Result, Tensor};
pub use optimizer::Optimizer;
pub use sgd::{Sgd, SgdOptions};
