//! Train models in Rust, and see every operator.
//!
//! Cresset is a training framework that instruments its own dispatcher: each forward,
//! backward and optimizer call can be watched, and a profile shows what `torch.profiler`
//! would. This crate puts the parts together:
//!
//! | module | is |
//! |---|---|
//! | [`tensor`] | tensors, operators, autograd |
//! | [`nn`], [`optim`] | modules, optimizers |
//! | [`profiler`] | sessions, tables, traces |
//! | [`npu`] | the Ascend NPU, over its C library or the simulator behind it |
//! | [`dispatch`] | the switchboard that all of them meet at |
//! | [`kernels`] | host math, for operators of your own |
//! | [`data`] | data sets that come along |
//!
//! ```
//! use cresset::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.with_grad()?;
//! let mut profiler = Profiler::builder().start()?;
//! (&x * &x)?.sum()?.backward()?;
//! profiler.stop()?;
//! println!("{}", profiler.key_averages()?.table());
//! assert_eq!(x.grad().ok_or("no gradient")?.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

pub mod data;
mod device;

pub use cresset_dispatch as dispatch;
pub use cresset_kernels as kernels;
pub use cresset_nn as nn;
pub use cresset_npu as npu;
pub use cresset_optim as optim;
pub use cresset_profiler as profiler;
pub use cresset_tensor as tensor;

pub use cresset_tensor::{DType, Device, Error, Result, Scalar, Tensor, manual_seed, no_grad};
pub use device::{device, load_npu};

/// What most programs need.
pub mod prelude {
    pub use crate::nn::{CrossEntropyLoss, Linear, Module, Relu, Sequential};
    pub use crate::optim::{Adam, AdamOptions, Optimizer, Sgd, SgdOptions};
    pub use crate::profiler::{Profiler, Schedule, record_function};
    pub use crate::{DType, Device, Tensor, device, no_grad};
}
