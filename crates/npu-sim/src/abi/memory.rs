//! Memory and copies.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::put;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Result, call, fail};
use crate::{pinned, transfer};
use cresset_acl::code;
use cresset_acl::types::{Status, Stream, c_void};

/// Gives device memory. The policy changes nothing here.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMalloc(address: *mut *mut c_void, bytes: usize, _policy: i32) -> Status {
    call("aclrtMalloc", || {
        if address.is_null() || bytes == 0 {
            fail!(code::INVALID_PARAM, "asked for {bytes} bytes, to be told at {address:?}");
        }
        let device = Context::current()?.device;
        let start =
            device.memory.allocate(bytes).map_err(|failure| failure.of(&format!("device {}", device.id)))?;
        // SAFETY: by the caller's promise.
        unsafe { put(address, start as *mut c_void) }
    })
}

/// Takes back device memory. Needs no context, as on hardware.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtFree(address: *mut c_void) -> Status {
    call("aclrtFree", || {
        if address.is_null() {
            fail!(code::INVALID_PARAM, "the address is null");
        }
        match Device::owner(address as usize) {
            Some(device) => device.memory.free(address as usize),
            None => fail!(code::RT_PARAM_INVALID, "{address:?} is not device memory"),
        }
    })
}

/// Gives host memory that the device reaches by itself.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocHost(address: *mut *mut c_void, bytes: usize) -> Status {
    call("aclrtMallocHost", || {
        Context::current()?;
        // SAFETY: by the caller's promise.
        unsafe { put(address, pinned::allocate(bytes)? as *mut c_void) }
    })
}

/// Takes back memory of `aclrtMallocHost`.
///
/// # Safety
/// The caller has no references to the memory left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtFreeHost(address: *mut c_void) -> Status {
    call("aclrtFreeHost", || pinned::free(address as usize))
}

/// Free and all bytes of the device.
///
/// # Safety
/// `free` and `total` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetMemInfo(_kind: i32, free: *mut usize, total: *mut usize) -> Status {
    call("aclrtGetMemInfo", || {
        let (room, all) = Context::current()?.device.memory.room();
        // SAFETY: by the caller's promise.
        unsafe { put(free, room).and(put(total, all)) }
    })
}

/// Copies before it returns. The addresses say in which direction, not the kind.
///
/// # Safety
/// Host memory may be read or written for so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpy(
    to: *mut c_void,
    most: usize,
    from: *const c_void,
    bytes: usize,
    kind: i32,
) -> Status {
    call("aclrtMemcpy", || {
        check(to as usize, from as usize, bytes, most, kind)?;
        transfer::copy(c"aclrtMemcpy", to as usize, from as usize, bytes)
    })
}

/// Copies in a stream; waits for it if host memory is not pinned.
///
/// # Safety
/// Host memory may be read or written for so many bytes, until the stream has done it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpyAsync(
    to: *mut c_void,
    most: usize,
    from: *const c_void,
    bytes: usize,
    kind: i32,
    stream: Stream,
) -> Status {
    call("aclrtMemcpyAsync", || {
        check(to as usize, from as usize, bytes, most, kind)?;
        let stream = Context::current()?.stream(stream as usize)?;
        transfer::copy_async(c"aclrtMemcpyAsync", to as usize, from as usize, bytes, kind, &stream)
    })
}

/// Fills device memory with one byte.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemset(address: *mut c_void, most: usize, value: i32, bytes: usize) -> Status {
    call("aclrtMemset", || {
        fits(bytes, most)?;
        transfer::set(c"aclrtMemset", address as usize, value, bytes)
    })
}

/// Fills device memory with one byte, in a stream.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemsetAsync(
    address: *mut c_void,
    most: usize,
    value: i32,
    bytes: usize,
    stream: Stream,
) -> Status {
    call("aclrtMemsetAsync", || {
        fits(bytes, most)?;
        let stream = Context::current()?.stream(stream as usize)?;
        transfer::set_async(c"aclrtMemsetAsync", address as usize, value, bytes, &stream)
    })
}

fn check(to: usize, from: usize, bytes: usize, most: usize, kind: i32) -> Result {
    if bytes > 0 && (to == 0 || from == 0) {
        fail!(code::INVALID_PARAM, "an address is null");
    }
    if !(0..=5).contains(&kind) {
        fail!(code::INVALID_PARAM, "there is no copy of kind {kind}");
    }
    fits(bytes, most)
}

fn fits(bytes: usize, most: usize) -> Result {
    if bytes > most {
        fail!(code::RT_PARAM_INVALID, "{bytes} bytes do not fit into {most}");
    }
    Ok(())
}
