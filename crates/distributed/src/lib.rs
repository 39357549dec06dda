//! Training on several devices: processes that know each other, and modules whose gradients they share.
//!
//! Each process is a rank: it has a device, the whole model and a part of every batch. A [`ProcessGroup`] lets ranks
//! exchange tensors; [`DataParallel`] wraps a module so that after each backward pass all ranks have the gradients
//! that one process with the whole batch would have.
//!
//! ```
//! use cresset_distributed::{Alone, DataParallel, ProcessGroup, Reduce};
//! use cresset_nn::{Forward, Linear, Module};
//! use cresset_tensor::{Device, Tensor};
//!
//! // One rank is enough for a program to be written; started as several, each has a backend that knows the others.
//! let group = ProcessGroup::new(Alone::new(Device::CPU), "world")?;
//! let model = DataParallel::new(Linear::new(4, 2)?, &group)?;
//! model.call(&Tensor::ones([3, 4], ())?)?.sum()?.backward()?;
//! assert!(model.parameters().iter().all(|parameter| parameter.grad().is_some()));
//!
//! let x = Tensor::new([1.0f32, 2.0])?;
//! group.all_reduce(&x, Reduce::Sum)?;
//! assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0]);
//! # Ok::<(), cresset_tensor::Error>(())
//! ```
//!
//! - `backend` is what carries tensors from rank to rank: a library of the device's vendor, never code of ours;
//! - `group` is what programs say to it, and `call` what profiles see of that;
//! - `rendezvous` is how processes that were started together find each other;
//! - `data_parallel` wraps a module; `reducer` decides when which `bucket` of gradients is exchanged.

#![forbid(unsafe_code)]

mod backend;
mod bucket;
mod call;
mod data_parallel;
mod group;
mod reducer;
mod rendezvous;

pub use backend::{Alone, Backend, Collective, Pending, Reduce};
pub use data_parallel::{DataParallel, DataParallelOptions, NoSync};
pub use group::{ProcessGroup, Started};
pub use rendezvous::Rendezvous;
