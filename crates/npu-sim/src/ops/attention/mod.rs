//! Scaled dot-product attention: for training, with gradients, and for inference.
//!
//! [`heads`] brings every layout of tensors to one, [`seen`] says which keys a query sees, [`weigh`] computes.

mod flash;
mod heads;
mod infer;
mod rotary;
mod seen;
mod varied;
mod weigh;

pub(crate) use flash::*;
pub(crate) use infer::*;
pub(crate) use rotary::*;
pub(crate) use varied::*;

use cresset_kernels::DType;

/// What attention computes with.
const TYPES: &[DType] = &[DType::F32, DType::F16, DType::BF16];
