//! Tensors, operators and automatic differentiation.
//!
//! - [`Tensor`] is a handle: a [`Layout`] over a shared [`Storage`] on some [`Device`].
//! - [`op`] is the mechanism: an operator is a value with one `impl Op`; [`ops`] holds them,
//!   one file per family.
//! - [`autograd`] records calls and runs them backwards.
//! - [`autocast()`] computes in mixed precision.
//! - [`backend`] is what a device other than the host must provide.

#![forbid(unsafe_code)]

mod autocast;
pub mod autograd;
pub mod backend;
mod composite;
mod convert;
pub mod cpu;
mod create;
mod dim;
mod display;
mod error;
pub mod indexing;
mod like;
mod literal;
pub mod op;
pub mod ops;
mod options;
mod out;
mod overload;
mod promote;
mod random;
mod range;
mod reuse;
mod shown;
mod sizes;
mod storage;
mod tally;
mod tensor;
mod transfer;

pub use autocast::{Autocast, AutocastGuard, autocast, without_autocast};
pub use autograd::{Backward, Grads, Saves, no_grad};
pub use composite::composite;
pub use cresset_dispatch::observe::Argument;
pub use cresset_dispatch::{Device, Key};
pub use cresset_kernels::{DType, Element, Layout, Scalar, bf16, f16};
pub use dim::{NamedDim, NamedDims};
pub use error::{Cause, Error, Result};
pub use literal::Nested;
pub use op::{Forward, Inputs, Kernel, Op, Operand, Output, Spec};
pub use options::{MemoryFormat, Options, To};
pub use out::CallOut;
pub use random::{
    RandomState, manual_seed, manual_seed_on, random_state, random_state_of, random_states, set_random_state,
    set_random_state_of,
};
pub use range::Arange;
pub use sizes::{Size, Sizes};
pub use storage::{DeviceMemory, Memory, Storage, host_bytes_allocated, limit_host_bytes};
pub use tensor::Tensor;
