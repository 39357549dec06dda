//! The C interface of Ascend's CANN as data: every function that we use or offer, once.
//!
//! CANN is reached through C functions in shared libraries. The device backend needs a
//! pointer to each, the simulated device exports each, and a check against the vendor's
//! headers needs the signature of each. All three are made from the tables here, so that
//! they cannot disagree:
//!
//! | table | holds | of |
//! |---|---|---|
//! | [`runtime_functions!`] | devices, streams, events, memory, errors | `libascendcl.so` |
//! | [`probed_functions!`] | the same, where a release may lack them | `libascendcl.so` |
//! | [`object_functions!`] | descriptors of tensors, scalars, lists | `libnnopbase.so` |
//! | [`activity_functions!`] | device records | `libmspti.so` |
//! | [`operators!`] | operators, each a pair of functions | `libopapi.so` |
//! | [`collective_functions!`] | communication between devices | `libhccl.so` |
//! | `foreign_…_functions!` | what other programs call of the first four | |
//! | [`foreign_operators!`] | operators that other programs call | `libopapi.so` |
//! | [`refused_functions!`] | what they must find, but is not offered | |
//!
//! A table is a macro that hands its lines to a macro of the caller. The first three hand
//! over plain signatures, written with the names of [`types`]; [`operators!`] hands over
//! argument classes, which [`class`] turns into C types. [`signature`] has them as data, and
//! [`header`] what the vendor's headers call our constants and structures.

#![forbid(unsafe_code)]

pub mod class;
pub mod code;
pub mod collective;
pub mod constant;
mod foreign;
mod foreign_operators;
mod functions;
pub mod header;
mod operators;
pub mod record;
mod refused;
pub mod release;
pub mod signature;
pub mod structure;
pub mod types;
