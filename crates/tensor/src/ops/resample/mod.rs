//! Elements between elements: interpolation to other sizes, and samples at places of a grid.

mod grid;
mod interpolate;
mod pieces;
mod shown;
mod upsample;

pub use cresset_kernels::resample::{Border, Method, Sampling};
pub use grid::*;
pub use interpolate::*;
pub use upsample::*;
