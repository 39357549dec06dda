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
//!  ├─ collective                          ranks that communicate, in this process or others
//!  ├─ trace, marker, buffers              activity records
//!  ├─ pace, fault, clock, calls           when things run, fail, and how long they take
//!  └─ tester                              settings and faults that tests change while they run
//! ```
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `CRESSET_SIM_DEVICES` | how many devices there are | 1 |
//! | `CRESSET_SIM_MEMORY` | bytes of memory per device | 2 GiB |
//! | `CRESSET_SIM_SOC` | name of the chip | `Ascend910B3 (simulated)` |
//! | `CRESSET_SIM_CANN` | release of the toolkit that it claims to be; functions newer than 8.1 go with it | `9.1.0` |
//! | `CRESSET_SIM_CLOCK` | how long kernels take: as `host` needs, or as a model of a `910b` | `host` |
//! | `CRESSET_SIM_DELAY_US` | how long a task waits before it runs | 0 |
//! | `CRESSET_SIM_ASYNC` | when tasks run: `eager`, `lazy` (only when waited for), `random:seed` | `eager` |
//! | `CRESSET_SIM_FAIL` | `function:calls:effect,…`: these calls fail, come late, or are lost | none |
//! | `CRESSET_SIM_CALLS` | `1`: count calls, for `cressetSimReport` | 0 |
//! | `CRESSET_SIM_LEAKS` | `1`: say at the end what was never destroyed | 0 |
//! | `HCCL_CONNECT_TIMEOUT` | seconds that ranks wait for each other to join | 120 |
//! | `HCCL_EXEC_TIMEOUT` | seconds that a collective waits for other ranks | 1836 |
//!
//! [`configure`] and, for C, `cressetSimConfigure` change faults, order, delays and counting while a program runs.

#![deny(unsafe_code)]

pub mod abi;

mod blocks;
mod buffers;
mod calls;
mod clock;
mod collective;
mod config;
mod context;
mod device;
mod error;
mod event;
mod exception;
mod fault;
mod handle;
mod marker;
mod memory;
mod objects;
mod ops;
mod pace;
mod pinned;
mod plan;
mod process;
mod report;
mod stream;
mod tester;
mod trace;
mod transfer;

pub use abi::symbol;
pub use abi::{
    activity::*, callback::*, collective::*, communicator::*, copy::*, device::*, event::*, exception::*,
    executor::*, info::*, marker::*, memory::*, objects::*, refused::*, stream::*, tensor::*, tester::*,
    virtual_memory::*,
};
pub use tester::{configure, report};

/// What this device calls itself.
pub const NAME: &str = "cresset-npu-sim";
