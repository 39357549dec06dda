//! Layer, group and batch normalization: elements without the mean and spread of their group.
//!
//! They differ in what a group is. [`Frame`] says it; the kernel and the derivative are written
//! once, for all of them.

mod batch;
mod frame;
mod gradient;
mod group;
mod layer;
mod local;
mod rms;
mod second;

pub use batch::*;
pub use gradient::*;
pub use group::*;
pub use layer::*;
pub use local::*;
pub use rms::*;

use frame::{Affine, Frame};
