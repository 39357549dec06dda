//! Train models in Rust, and see every operator.
//!
//! Cresset is a training framework that instruments its own dispatcher: each forward,
//! backward and optimizer call can be watched, and a profile shows what `torch.profiler`
//! would. This crate puts the parts together:
//!
//! | module | is |
//! |---|---|
//! | [`tensor`](mod@tensor) | tensors, operators, autograd |
//! | [`nn`], [`optim`] | modules, optimizers |
//! | [`profiler`] | sessions, tables, traces |
//! | [`trace`] | traces that are files, torch's too: tables, checks, comparisons |
//! | [`npu`] | the Ascend NPU, over its C library or the simulator behind it |
//! | [`dispatch`] | the switchboard that all of them meet at |
//! | [`kernels`] | host math, for operators of your own |
//! | [`data`] | loaders, readers, and data sets that come along |
//! | [`models`] | models that come along |
//! | [`distributed`] | training on several devices |
//! | [`checkpoint`] | training that goes on where it was |
//!
//! A training step on the NPU, or on the simulator that stands in for one, and its profile:
//!
//! ```
//! use cresset::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let npu = device("npu")?;
//! let model = Sequential::new().push(Linear::new(64, 32)?).push(Relu).push(Linear::new(32, 10)?);
//! model.to(npu)?;
//! let mut optimizer = Adam::new(model.parameters(), AdamOptions::default())?;
//! let (x, y) = (Tensor::randn([10, 64], npu)?, Tensor::arange(10)?.to(npu)?);
//!
//! let mut profiler = Profiler::builder().record_shapes(true).profile_memory(true).start()?;
//! optimizer.zero_grad();
//! let loss = model.call(&x)?.cross_entropy(&y)?;
//! loss.backward()?;
//! optimizer.step()?;
//! profiler.stop()?;
//!
//! println!("loss {}", loss.item()?);
//! println!("{}", profiler.key_averages()?.table().sort_by("device_time_total")?.row_limit(10));
//! # let file = std::env::temp_dir().join("cresset-doc.pt.trace.json.gz");
//! # #[cfg(any())]
//! profiler.export_chrome_trace("step.pt.trace.json.gz")?;
//! # profiler.export_chrome_trace(&file)?;
//! # std::fs::remove_file(file)?;
//! # Ok(())
//! # }
//! ```
//!
//! `examples/` is a course in ten programs. Which library serves the NPU is decided by the variables that
//! [`npu`] lists, and told by `cresset doctor`.
//!
//! Features, all on by default: `npu`, `trace`, and `command`, which is the program `cresset`. Without
//! them there is the host: tensors, autograd, modules, optimizers, data, checkpoints and the profiler.

#![forbid(unsafe_code)]

pub mod data;
mod device;
pub mod distributed;
pub mod models;
mod peak;

pub use cresset_checkpoint as checkpoint;
pub use cresset_dispatch as dispatch;
pub use cresset_kernels as kernels;
pub use cresset_nn as nn;
#[cfg(feature = "npu")]
pub use cresset_npu as npu;
pub use cresset_optim as optim;
pub use cresset_profiler as profiler;
pub use cresset_tensor as tensor;
#[cfg(feature = "trace")]
pub use cresset_trace as trace;

pub use cresset_kernels::{set_threads, threads, with_threads};
pub use cresset_tensor::{
    Autocast, DType, Device, Error, Result, Scalar, Tensor, autocast, manual_seed, no_grad, tensor,
    without_autocast,
};
pub use device::{device, load_npu};
pub use peak::peak;

/// What most programs need.
pub mod prelude {
    pub use crate::nn::{CrossEntropyLoss, Forward, Linear, Module, Relu, Sequential, Sigmoid, Tanh};
    pub use crate::optim::{Adam, AdamOptions, AdamW, AdamWOptions, Optimizer, Sgd, SgdOptions};
    pub use crate::profiler::{Profiler, Schedule, record_function};
    pub use crate::{DType, Device, Tensor, device, manual_seed, no_grad};
    pub use cresset_tensor::indexing::{Ellipsis, NewAxis, slice};
    pub use cresset_tensor::tensor;
}

/// The programs of the guide, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/nn.md")]
struct GuideToModels;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../docs/tensors.md")]
struct GuideToTensors;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../docs/autograd.md")]
struct GuideToAutograd;

/// As above.
#[cfg(all(doctest, feature = "npu"))]
#[doc = include_str!("../docs/distributed.md")]
struct GuideToSeveralDevices;
