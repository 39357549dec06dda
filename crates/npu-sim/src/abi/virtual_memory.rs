//! Memory and its addresses apart from each other, and pools.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::put;
use crate::blocks::Rounding;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Result, call, fail};
use crate::handle::Handles;
use crate::memory::Span;
use cresset_acl::code;
use cresset_acl::structure::{PhysicalProperties, PoolProperties};
use cresset_acl::types::{Status, Stream, c_void};

/// What memory without an address is handed out in.
const GRANULARITY: usize = 2 << 20;

/// Memory without an address.
struct Physical {
    device: &'static Device,
    bytes: usize,
}

static PHYSICAL: Handles<Physical> = Handles::new(12, "physical memory");
/// Pools by handle: they hold nothing, since memory comes from the device and goes back to it.
static POOLS: Handles<&'static Device> = Handles::new(13, "memory pool");

/// Takes addresses without memory.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtReserveMemAddress(
    address: *mut *mut c_void,
    bytes: usize,
    _alignment: usize,
    _expected: *mut c_void,
    _flags: u64,
) -> Status {
    call("aclrtReserveMemAddress", || {
        if bytes == 0 || address.is_null() {
            fail!(code::INVALID_PARAM, "asked for {bytes} addresses, to be told at {address:?}");
        }
        let start = Context::current()?.device.memory.reserve(bytes)?;
        // SAFETY: by the caller's promise.
        unsafe { put(address, start as *mut c_void) }
    })
}

/// Gives such addresses back.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtReleaseMemAddress(address: *mut c_void) -> Status {
    call("aclrtReleaseMemAddress", || owner(address)?.memory.unreserve(address as usize))
}

fn owner(address: *mut c_void) -> Result<&'static Device> {
    match Device::owner(address as usize) {
        Some(device) => Ok(device),
        None => fail!(code::RT_PARAM_INVALID, "{address:?} is not an address of a device"),
    }
}

/// Takes memory without addresses.
///
/// # Safety
/// `handle` is null or may be written; `properties` is null or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocPhysical(
    handle: *mut *mut c_void,
    bytes: usize,
    properties: *const PhysicalProperties,
    _flags: u64,
) -> Status {
    call("aclrtMallocPhysical", || {
        Context::current()?;
        // SAFETY: by the caller's promise.
        let Some(properties) = (unsafe { properties.as_ref() }) else {
            fail!(code::INVALID_PARAM, "the properties are null");
        };
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            fail!(code::RT_PARAM_INVALID, "{bytes} bytes are no multiple of {GRANULARITY}");
        }
        let device = Device::by_id(properties.location.id as i32)?;
        device.memory.take(bytes)?;
        let made = PHYSICAL.insert(Physical { device, bytes });
        // SAFETY: by the caller's promise.
        unsafe { put(handle, made as *mut c_void) }
    })
}

/// Gives such memory back.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtFreePhysical(handle: *mut c_void) -> Status {
    call("aclrtFreePhysical", || {
        let Some(memory) = PHYSICAL.remove(handle as usize) else {
            fail!(code::RT_INVALID_HANDLE, "{handle:?} is not memory in use");
        };
        memory.device.memory.give(memory.bytes);
        Ok(())
    })
}

/// Puts memory at reserved addresses.
///
/// # Safety
/// None: all is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMapMem(
    address: *mut c_void,
    bytes: usize,
    offset: usize,
    handle: *mut c_void,
    _flags: u64,
) -> Status {
    call("aclrtMapMem", || {
        let Some(memory) = PHYSICAL.get(handle as usize) else {
            fail!(code::RT_INVALID_HANDLE, "{handle:?} is not memory in use");
        };
        if offset.checked_add(bytes).is_none_or(|end| end > memory.bytes) {
            fail!(code::RT_PARAM_INVALID, "{bytes} bytes from {offset} on are beyond {}", memory.bytes);
        }
        memory.device.memory.map(Span { start: address as usize, bytes })
    })
}

/// Takes memory away from its addresses.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtUnmapMem(address: *mut c_void) -> Status {
    call("aclrtUnmapMem", || owner(address)?.memory.unmap(address as usize))
}

/// What memory without an address is handed out in.
///
/// # Safety
/// `granularity` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemGetAllocationGranularity(
    _properties: *mut PhysicalProperties,
    option: i32,
    granularity: *mut usize,
) -> Status {
    call("aclrtMemGetAllocationGranularity", || {
        if !(0..=1).contains(&option) {
            fail!(code::RT_PARAM_INVALID, "there is no granularity {option}");
        }
        // SAFETY: by the caller's promise.
        unsafe { put(granularity, GRANULARITY) }
    })
}

/// Makes a pool of memory.
///
/// # Safety
/// `pool` is null or may be written; `properties` is null or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemPoolCreate(
    pool: *mut *mut c_void,
    properties: *const PoolProperties,
) -> Status {
    call("aclrtMemPoolCreate", || {
        // SAFETY: by the caller's promise.
        let Some(properties) = (unsafe { properties.as_ref() }) else {
            fail!(code::INVALID_PARAM, "the properties are null");
        };
        let made = POOLS.insert(Device::by_id(properties.location.id as i32)?);
        // SAFETY: by the caller's promise.
        unsafe { put(pool, made as *mut c_void) }
    })
}

/// Ends a pool.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemPoolDestroy(pool: *mut c_void) -> Status {
    call("aclrtMemPoolDestroy", || match POOLS.remove(pool as usize) {
        Some(_) => Ok(()),
        None => fail!(code::RT_INVALID_HANDLE, "{pool:?} is not a pool in use"),
    })
}

/// Gives memory of a pool, to be used in the order of a stream.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemPoolMallocAsync(
    address: *mut *mut c_void,
    bytes: usize,
    pool: *mut c_void,
    stream: Stream,
) -> Status {
    call("aclrtMemPoolMallocAsync", || {
        Context::current()?.stream(stream as usize)?;
        let Some(device) = POOLS.get(pool as usize) else {
            fail!(code::RT_INVALID_HANDLE, "{pool:?} is not a pool in use");
        };
        if bytes == 0 || address.is_null() {
            fail!(code::INVALID_PARAM, "asked for {bytes} bytes, to be told at {address:?}");
        }
        let start = device.memory.allocate(bytes, Rounding { padded: true, huge: false })?;
        // SAFETY: by the caller's promise.
        unsafe { put(address, start as *mut c_void) }
    })
}

/// Takes memory back when a stream is here.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemPoolFreeAsync(address: *mut c_void, stream: Stream) -> Status {
    call("aclrtMemPoolFreeAsync", || {
        let (device, start) = (owner(address)?, address as usize);
        Context::current()?
            .stream(stream as usize)?
            .push(Box::new(move || device.memory.free(start).map(drop)));
        Ok(())
    })
}
