//! The switchboard between callers, layers, kernels and observers.
//!
//! This crate knows nothing about tensors, devices or profilers; they meet here.
//!
//! - [`key`]: which layers and backends a call passes through, and which this thread skips;
//! - [`device`]: a backend's key and an index, e.g. `npu:0`;
//! - [`table`]: one table of kernels per operator, one slot per backend, filled from outside;
//! - [`observe`]: who watches calls go by, and what a watcher can ask;
//! - [`memory`]: what allocators report;
//! - [`activity`]: what devices did, in their own time;
//! - [`group`]: which groups of processes this one is in;
//! - [`site`]: for which operator a thread gives work to a device;
//! - [`thread`]: small numbers for threads.
//!
//! With nobody watching, each channel costs its caller one relaxed load and one branch.

#![forbid(unsafe_code)]

pub mod activity;
pub mod device;
pub mod group;
pub mod key;
pub mod memory;
pub mod observe;
pub mod site;
mod slots;
pub mod table;
pub mod thread;

pub use device::Device;
pub use key::{Key, KeySet};
pub use table::Table;
