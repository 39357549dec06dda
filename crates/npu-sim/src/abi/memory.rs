//! Memory.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::put;
use crate::blocks::Rounding;
use crate::context::Context;
use crate::device::Device;
use crate::error::{Result, call, fail};
use crate::memory::Span;
use crate::trace::{self, Launch};
use crate::{pinned, process};
use cresset_acl::structure::{Location, MallocConfig, MemoryUsage, PointerAttributes};
use cresset_acl::types::{Status, c_char, c_void};
use cresset_acl::{code, constant, record};
use std::ffi::CStr;

/// # Safety
/// `address` is null or may be written.
unsafe fn allocate(
    function: &'static CStr,
    address: *mut *mut c_void,
    bytes: usize,
    rounding: Rounding,
) -> Result {
    if address.is_null() || bytes == 0 {
        fail!(code::INVALID_PARAM, "asked for {bytes} bytes, to be told at {address:?}");
    }
    let device = Context::current()?.device;
    let launch = Launch::without_work(function);
    let start = device
        .memory
        .allocate(bytes, rounding)
        .map_err(|failure| failure.of(&format!("device {}", device.id)))?;
    trace::memory(&launch, record::memory::ALLOCATION, device.id, start, bytes);
    // SAFETY: by the caller's promise.
    unsafe { put(address, start as *mut c_void) }
}

/// How a policy rounds: all but one take huge pages where they can.
fn rounding(policy: i32, padded: bool) -> Rounding {
    Rounding { padded, huge: policy & 0xff != constant::malloc::NORMAL_ONLY }
}

fn release(function: &'static CStr, address: *mut c_void, wait: bool) -> Result {
    process::expect_no_fork()?;
    if address.is_null() {
        fail!(code::INVALID_PARAM, "the address is null");
    }
    let Some(device) = Device::owner(address as usize) else {
        fail!(code::RT_PARAM_INVALID, "{address:?} is not device memory");
    };
    if wait {
        device.synchronize(None)?;
    }
    let launch = Launch::without_work(function);
    let bytes = device.memory.free(address as usize)?;
    trace::memory(&launch, record::memory::RELEASE, device.id, address as usize, bytes);
    Ok(())
}

/// Gives device memory.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMalloc(address: *mut *mut c_void, bytes: usize, policy: i32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtMalloc", || unsafe { allocate(c"aclrtMalloc", address, bytes, rounding(policy, true)) })
}

/// Gives device memory without room behind it.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocAlign32(address: *mut *mut c_void, bytes: usize, policy: i32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtMallocAlign32", || unsafe {
        allocate(c"aclrtMallocAlign32", address, bytes, rounding(policy, false))
    })
}

/// Gives device memory that a cache knows.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocCached(address: *mut *mut c_void, bytes: usize, policy: i32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtMallocCached", || unsafe {
        allocate(c"aclrtMallocCached", address, bytes, rounding(policy, true))
    })
}

/// Gives device memory. What is wished besides changes nothing here.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocWithCfg(
    address: *mut *mut c_void,
    bytes: usize,
    policy: i32,
    _config: *mut MallocConfig,
) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtMallocWithCfg", || unsafe {
        allocate(c"aclrtMallocWithCfg", address, bytes, rounding(policy, true))
    })
}

/// Takes back device memory. Needs no context, as on hardware.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtFree(address: *mut c_void) -> Status {
    call("aclrtFree", || release(c"aclrtFree", address, false))
}

/// Waits for all work of the device, and takes back memory.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtFreeWithDevSync(address: *mut c_void) -> Status {
    call("aclrtFreeWithDevSync", || release(c"aclrtFreeWithDevSync", address, true))
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

/// Gives host memory that the device reaches by itself. What is wished besides changes nothing here.
///
/// # Safety
/// `address` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMallocHostWithCfg(
    address: *mut *mut c_void,
    bytes: u64,
    _config: *mut MallocConfig,
) -> Status {
    call("aclrtMallocHostWithCfg", || {
        Context::current()?;
        // SAFETY: by the caller's promise.
        unsafe { put(address, pinned::allocate(bytes as usize)? as *mut c_void) }
    })
}

/// Waits for all work of the device, and takes back memory of `aclrtMallocHost`.
///
/// # Safety
/// The caller has no references to the memory left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtFreeHostWithDevSync(address: *mut c_void) -> Status {
    call("aclrtFreeHostWithDevSync", || {
        Context::current()?.device.synchronize(None)?;
        pinned::free(address as usize)
    })
}

/// Lets the device reach host memory by itself, and gives an address for kernels.
///
/// # Safety
/// None: kernels cannot reach host memory here, so this is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtHostRegister(
    _address: *mut c_void,
    _bytes: u64,
    _kind: i32,
    _device: *mut *mut c_void,
) -> Status {
    call("aclrtHostRegister", || {
        fail!(code::RT_FEATURE_NOT_SUPPORT, "kernels cannot reach host memory on this device")
    })
}

/// Lets the device copy from and to host memory by itself.
///
/// # Safety
/// The memory stays where it is until `aclrtHostUnregister`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtHostRegisterV2(address: *mut c_void, bytes: u64, flags: u32) -> Status {
    call("aclrtHostRegisterV2", || {
        Context::current()?;
        if flags & constant::register::MAPPED != 0 {
            fail!(code::RT_FEATURE_NOT_SUPPORT, "kernels cannot reach host memory on this device");
        }
        pinned::register(Span { start: address as usize, bytes: bytes as usize })
    })
}

/// The address by which kernels reach host memory.
///
/// # Safety
/// None: they cannot here, so this is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtHostGetDevicePointer(
    _address: *mut c_void,
    _device: *mut *mut c_void,
    _flags: u32,
) -> Status {
    call("aclrtHostGetDevicePointer", || {
        fail!(code::RT_FEATURE_NOT_SUPPORT, "kernels cannot reach host memory on this device")
    })
}

/// Undoes `aclrtHostRegisterV2`.
///
/// # Safety
/// No copy from or to the memory is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtHostUnregister(address: *mut c_void) -> Status {
    call("aclrtHostUnregister", || pinned::unregister(address as usize))
}

/// What an address belongs to.
///
/// # Safety
/// `attributes` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtPointerGetAttributes(
    address: *const c_void,
    attributes: *mut PointerAttributes,
) -> Status {
    call("aclrtPointerGetAttributes", || {
        use constant::location::{DEVICE, HOST, UNREGISTERED};
        let span = Span { start: address as usize, bytes: 1 };
        let location = match Device::owner(span.start) {
            Some(device) => Location { id: device.id as u32, kind: DEVICE },
            None if pinned::contains(span) => Location { id: 0, kind: HOST },
            None => Location { id: 0, kind: UNREGISTERED },
        };
        // SAFETY: by the caller's promise.
        unsafe { put(attributes, PointerAttributes { location, page: 4096, reserved: [0; 4] }) }
    })
}

/// What this program uses of a device: one line for all of it.
///
/// # Safety
/// `usage` is null or has so many places; `count` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetMemUsageInfo(
    device: i32,
    usage: *mut MemoryUsage,
    places: usize,
    count: *mut usize,
) -> Status {
    call("aclrtGetMemUsageInfo", || {
        if places == 0 {
            fail!(code::INVALID_PARAM, "there is no place for an answer");
        }
        let (current, peak) = Device::by_id(device)?.memory.usage();
        let mut name = [0; 32];
        for (to, from) in name.iter_mut().zip(b"SIMULATED") {
            *to = *from as c_char;
        }
        let line = MemoryUsage { name, current: current as u64, peak: peak as u64, reserved: [0; 8] };
        // SAFETY: by the caller's promise.
        unsafe { put(usage, line).and(put(count, 1)) }
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
