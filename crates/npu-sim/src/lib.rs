//! A software device behind CANN's C functions.
//!
//! As a shared library it is loaded by any program that uses an Ascend device; as a crate
//! it is embedded, and [`symbol`] finds the functions. It is stricter than hardware where
//! hardware would corrupt silently: host code that follows a device pointer faults, stale
//! handles are refused, kernels may touch live device memory only.
//!
//! ```text
//! abi        C functions, made from the tables of cresset-acl
//!  ├─ context, device, stream, event      who works where, in which order
//!  ├─ memory (blocks), pinned, transfer   bytes, and who may touch them
//!  ├─ objects, plan, ops                  operators: check, plan, compute with cresset-kernels
//!  └─ trace, buffers                      activity records
//! ```
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `CRESSET_SIM_DEVICES` | how many devices there are | 1 |
//! | `CRESSET_SIM_MEMORY` | bytes of memory per device | 2 GiB |
//! | `CRESSET_SIM_SOC` | name of the chip | `Ascend910B3 (simulated)` |
//! | `CRESSET_SIM_DELAY_US` | how long a task waits before it runs | 0 |
//! | `CRESSET_SIM_FAIL` | `function:n:code,…`: the n-th call fails so; for operators, in the stream | none |

#![deny(unsafe_code)]

pub mod abi;

mod blocks;
mod buffers;
mod clock;
mod config;
mod context;
mod device;
mod error;
mod event;
mod fault;
mod handle;
mod memory;
mod objects;
mod ops;
mod pinned;
mod plan;
mod stream;
mod trace;
mod transfer;

pub use abi::symbol;
pub use abi::{activity::*, device::*, memory::*, objects::*, stream::*};

/// What this device calls itself.
pub const NAME: &str = "cresset-npu-sim";
