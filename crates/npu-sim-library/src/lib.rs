//! The simulated device as a shared library, for foreign programs that load CANN's: it exports the
//! functions of [`cresset_npu_sim`], and has none of its own.
//!
//! A crate apart, because cargo would link the library for every program that embeds the device.

#![forbid(unsafe_code)]

use cresset_npu_sim as _;
