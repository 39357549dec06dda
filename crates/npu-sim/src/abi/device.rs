//! Start and end, errors, devices, contexts.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::put;
use crate::config::CONFIG;
use crate::context::Context;
use crate::device::Device;
use crate::error::{self, Result, call, fail};
use crate::{objects, pace, process};
use cresset_acl::code;
use cresset_acl::types::{Context as ContextHandle, Status, Stream, c_char};
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
        process::expect_no_fork()?;
        process::watch();
        pace::prepare();
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
        end()
    })
}

/// Undoes one `aclInit`; the last one ends the library.
///
/// # Safety
/// `uses` is null or may be written; no other call is under way when the last use ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclFinalizeReference(uses: *mut u64) -> Status {
    call("aclFinalizeReference", || {
        let less = |uses: u64| uses.checked_sub(1);
        let Ok(before) = USES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) else {
            fail!(code::REPEAT_FINALIZE, "not initialised, or finalised before");
        };
        if before == 1 {
            end()?;
        }
        // SAFETY: by the caller's promise; it need not want to know.
        if uses.is_null() { Ok(()) } else { unsafe { put(uses, before - 1) } }
    })
}

fn end() -> Result {
    process::expect_no_fork()?;
    Device::all().iter().try_for_each(Device::close)?;
    objects::tell_leaks("at aclFinalize");
    Ok(())
}

fn initialized() -> Result {
    if USES.load(Ordering::SeqCst) == 0 {
        fail!(code::UNINITIALIZE, "call aclInit first");
    }
    Ok(())
}

/// The code of this thread's last failure.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtPeekAtLastError(level: i32) -> Status {
    if level == 0 { error::last() } else { code::INVALID_PARAM }
}

/// The code of this thread's last failure, once.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetLastError(level: i32) -> Status {
    if level == 0 { error::take_last() } else { code::INVALID_PARAM }
}

/// Why the last call of this thread failed, once; null if none did.
///
/// # Safety
/// The text is valid until this thread calls again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetRecentErrMsg() -> *const c_char {
    error::recent()
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
        process::expect_no_fork()?;
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

/// Ends the shared context however often it is in use.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtResetDeviceForce(device: i32) -> Status {
    call("aclrtResetDeviceForce", || {
        let device = Device::by_id(device)?;
        if !device.is_open() {
            fail!(code::RT_CONTEXT_NULL, "device {} is not set", device.id);
        }
        device.close()
    })
}

/// Gives up all work of a device that waits.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDeviceTaskAbort(device: i32, _milliseconds: u32) -> Status {
    call("aclrtDeviceTaskAbort", || {
        Device::by_id(device)?.abort();
        Ok(())
    })
}

/// Whether a device can reach the memory of another: all can.
///
/// # Safety
/// `can` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) -> Status {
    call("aclrtDeviceCanAccessPeer", || {
        let (device, peer) = (Device::by_id(device)?, Device::by_id(peer)?);
        // SAFETY: by the caller's promise.
        unsafe { put(can, (device.id != peer.id) as i32) }
    })
}

/// Lets the current device reach the memory of another.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDeviceEnablePeerAccess(peer: i32, flags: u32) -> Status {
    call("aclrtDeviceEnablePeerAccess", || {
        if flags != 0 {
            fail!(code::RT_PARAM_INVALID, "flags {flags:#x} are not known");
        }
        Context::current()?.device.enable_peer(Device::by_id(peer)?)
    })
}

/// Undoes `aclrtDeviceEnablePeerAccess`.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDeviceDisablePeerAccess(peer: i32) -> Status {
    call("aclrtDeviceDisablePeerAccess", || Context::current()?.device.disable_peer(Device::by_id(peer)?))
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

/// The stream that null stands for on this thread.
///
/// # Safety
/// `stream` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCtxGetCurrentDefaultStream(stream: *mut Stream) -> Status {
    call("aclrtCtxGetCurrentDefaultStream", || {
        let handle = Context::current()?.default_stream();
        // SAFETY: by the caller's promise.
        unsafe { put(stream, handle as Stream) }
    })
}

/// Whether the shared context of a device is in use.
///
/// # Safety
/// `flags` and `active` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetPrimaryCtxState(device: i32, flags: *mut u32, active: *mut i32) -> Status {
    call("aclrtGetPrimaryCtxState", || {
        let open = Device::by_id(device)?.is_open();
        if !flags.is_null() {
            // SAFETY: by the caller's promise.
            unsafe { put(flags, 0) }?;
        }
        // SAFETY: by the caller's promise.
        unsafe { put(active, open as i32) }
    })
}
