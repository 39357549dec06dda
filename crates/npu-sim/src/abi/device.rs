//! Start and end, errors, devices, contexts.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::put;
use crate::config::CONFIG;
use crate::context::Context;
use crate::device::Device;
use crate::error::{self, Result, call, fail};
use cresset_acl::code;
use cresset_acl::types::{Context as ContextHandle, Status, c_char};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often `aclInit` was called.
static USES: AtomicU64 = AtomicU64::new(0);

/// Starts the library. Called again it counts one more use, and says so.
///
/// # Safety
/// `config` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclInit(_config: *const c_char) -> Status {
    call("aclInit", || {
        if USES.fetch_add(1, Ordering::SeqCst) > 0 {
            fail!(code::REPEAT_INITIALIZE, "called before; this counts as one more use");
        }
        Ok(())
    })
}

/// Ends the library: all work is finished, all shared contexts end.
///
/// # Safety
/// No other call is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclFinalize() -> Status {
    call("aclFinalize", || {
        if USES.swap(0, Ordering::SeqCst) == 0 {
            fail!(code::REPEAT_FINALIZE, "not initialised, or finalised before");
        }
        Device::all().iter().try_for_each(Device::close)
    })
}

fn initialized() -> Result {
    if USES.load(Ordering::SeqCst) == 0 {
        fail!(code::UNINITIALIZE, "call aclInit first");
    }
    Ok(())
}

/// Why the last call of this thread failed, once; null if none did.
///
/// # Safety
/// The text is valid until this thread calls again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    error::recent()
}

/// The version of the interface.
///
/// # Safety
/// The pointers are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetVersion(major: *mut i32, minor: *mut i32, patch: *mut i32) -> Status {
    call("aclrtGetVersion", || {
        // SAFETY: by the caller's promise.
        unsafe { put(major, 1).and(put(minor, 13)).and(put(patch, 0)) }
    })
}

/// The name of the chip.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetSocName() -> *const c_char {
    CONFIG.soc.as_ptr()
}

/// How many devices there are.
///
/// # Safety
/// `count` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetDeviceCount(count: *mut u32) -> Status {
    call("aclrtGetDeviceCount", || {
        if CONFIG.devices == 0 {
            fail!(code::RT_NO_DEVICE, "there are no devices");
        }
        // SAFETY: by the caller's promise.
        unsafe { put(count, CONFIG.devices as u32) }
    })
}

/// Lets this thread work on a device, in the context that all threads share.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetDevice(device: i32) -> Status {
    call("aclrtSetDevice", || {
        initialized()?;
        Context::enter(Device::by_id(device)?.open());
        Ok(())
    })
}

/// The device that this thread works on.
///
/// # Safety
/// `device` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetDevice(device: *mut i32) -> Status {
    call("aclrtGetDevice", || {
        let context = Context::current()?;
        // SAFETY: by the caller's promise.
        unsafe { put(device, context.device.id as i32) }
    })
}

/// Undoes one `aclrtSetDevice`; the last one finishes all work of the shared context.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtResetDevice(device: i32) -> Status {
    call("aclrtResetDevice", || Device::by_id(device)?.release())
}

/// Waits for all streams of the device.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeDevice() -> Status {
    call("aclrtSynchronizeDevice", || Context::current()?.device.synchronize(None))
}

/// Waits for all streams of the device, so long and no longer.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeDeviceWithTimeout(milliseconds: i32) -> Status {
    call("aclrtSynchronizeDeviceWithTimeout", || {
        Context::current()?.device.synchronize(deadline(milliseconds)?)
    })
}

/// When a wait of so many milliseconds ends; -1 never does.
pub(super) fn deadline(milliseconds: i32) -> Result<Option<Instant>> {
    match milliseconds {
        -1 => Ok(None),
        0.. => Ok(Some(Instant::now() + Duration::from_millis(milliseconds as u64))),
        _ => fail!(code::RT_PARAM_INVALID, "a timeout of {milliseconds} ms is neither -1 nor positive"),
    }
}

/// Makes a context, with a default stream of its own, and lets this thread work in it.
///
/// # Safety
/// `context` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateContext(context: *mut ContextHandle, device: i32) -> Status {
    call("aclrtCreateContext", || {
        initialized()?;
        let device = Device::by_id(device)?;
        if context.is_null() {
            fail!(code::INVALID_PARAM, "the place for the context is null");
        }
        let handle = Context::create(device);
        Context::enter(handle);
        // SAFETY: by the caller's promise.
        unsafe { put(context, handle as ContextHandle) }
    })
}

/// Finishes the work of a context and ends it.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyContext(context: ContextHandle) -> Status {
    call("aclrtDestroyContext", || {
        let handle = context as usize;
        if Context::by_handle(handle)?.device.is_primary(handle) {
            fail!(code::RT_PARAM_INVALID, "the context of aclrtSetDevice ends with aclrtResetDevice");
        }
        Context::destroy(handle)
    })
}

/// Lets this thread work in a context.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetCurrentContext(context: ContextHandle) -> Status {
    call("aclrtSetCurrentContext", || {
        Context::by_handle(context as usize)?;
        Context::enter(context as usize);
        Ok(())
    })
}

/// The context that this thread works in.
///
/// # Safety
/// `context` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetCurrentContext(context: *mut ContextHandle) -> Status {
    call("aclrtGetCurrentContext", || {
        let handle = Context::current_handle()?;
        // SAFETY: by the caller's promise.
        unsafe { put(context, handle as ContextHandle) }
    })
}

/// Tells that this is the simulator, and which. Not a function of CANN.
#[unsafe(no_mangle)]
pub extern "C" fn cressetSimVersion() -> *const c_char {
    const VERSION: &str = concat!("cresset-npu-sim ", env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
