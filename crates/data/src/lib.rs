//! Data sets, the order in which they are gone through, and loaders that bring batches.
//!
//! ```
//! use cresset_data::{DataLoader, TensorDataset};
//! use cresset_tensor::Tensor;
//!
//! let (x, y) = (Tensor::randn([100, 8], ())?, Tensor::zeros([100], ())?);
//! let data = TensorDataset::new([x, y])?;
//! let loader = DataLoader::builder(data).batch_size(32).shuffle(7).build()?;
//! for batch in loader.epoch(0) {
//!     let [x, y] = batch?;
//!     assert_eq!(x.shape()[0], y.shape()[0]);
//! }
//! # Ok::<(), cresset_tensor::Error>(())
//! ```
//!
//! - `dataset` is what can be loaded from;
//! - `order` says which samples a batch is made of;
//! - `loader` brings the batches of an epoch, `workers` on threads of their own, ahead of time;
//! - `pinned` lets them wait where devices fetch them;
//! - `read` has files of samples, `text` what language models are trained on.

#![forbid(unsafe_code)]

mod dataset;
mod loader;
mod order;
mod pinned;
mod read;
mod text;
mod workers;

pub use cresset_tensor::{DType, Error, Result, Tensor};
pub use dataset::{Dataset, Each, TensorDataset};
pub use loader::{Builder, DataLoader, Epoch};
pub use pinned::{Pin, Pinned};
pub use read::{Csv, Table, read_idx, read_npy};
pub use text::{Characters, Windows};
