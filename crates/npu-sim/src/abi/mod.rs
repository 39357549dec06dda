//! The C functions: null checks and raw pointers end here.

#![expect(unsafe_code, reason = "takes pointers from C, and exports functions")]

pub mod activity;
pub mod callback;
pub mod collective;
pub mod communicator;
pub mod copy;
pub mod device;
pub mod event;
pub mod exception;
pub mod executor;
pub mod info;
pub mod marker;
pub mod memory;
pub mod objects;
pub mod operators;
pub mod refused;
pub mod stream;
mod table;
pub mod tensor;
pub mod tester;
pub mod virtual_memory;

pub use table::symbol;

use crate::error::{Result, fail};
use cresset_acl::code;

/// Writes a result where C wants it.
///
/// # Safety
/// `to` is null or may be written.
unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        fail!(code::INVALID_PARAM, "the place for the result is null");
    }
    // SAFETY: not null, so the caller vouches for it.
    unsafe { to.write(value) };
    Ok(())
}
