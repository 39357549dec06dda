//! Streams.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::device::deadline;
use super::put;
use crate::context::Context;
use crate::error::{Result, call, fail};
use crate::stream::{self, Stream};
use cresset_acl::structure::{StreamAttribute, StreamConfig};
use cresset_acl::types::{Status, Stream as StreamHandle, StreamCallback, c_char, c_void};
use cresset_acl::{code, constant};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How urgent work can be; more is less urgent.
const PRIORITIES: std::ops::RangeInclusive<u32> = 0..=7;

fn stream_of(handle: StreamHandle) -> Result<Arc<Stream>> {
    Context::current()?.stream(handle as usize)
}

/// # Safety
/// `to` is null or may be written.
unsafe fn create(to: *mut StreamHandle, priority: u32, flags: u32) -> Result {
    if !PRIORITIES.contains(&priority) || flags & !0x3f != 0 {
        fail!(code::RT_PARAM_INVALID, "priority {priority} and flags {flags:#x} make no stream");
    }
    let context = Context::current()?;
    if to.is_null() {
        fail!(code::INVALID_PARAM, "the place for the stream is null");
    }
    // SAFETY: by the caller's promise.
    unsafe { put(to, context.new_stream(priority, flags)? as StreamHandle) }
}

/// Makes a stream in the context of this thread.
///
/// # Safety
/// `stream` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStream(stream: *mut StreamHandle) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtCreateStream", || unsafe { create(stream, 0, 0) })
}

/// Makes a stream. Priority and flags are remembered and change nothing else here.
///
/// # Safety
/// `stream` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStreamWithConfig(
    stream: *mut StreamHandle,
    priority: u32,
    flags: u32,
) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtCreateStreamWithConfig", || unsafe { create(stream, priority, flags) })
}

/// Makes a stream as a configuration says.
///
/// # Safety
/// `stream` is null or may be written, `config` is null or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStreamV2(
    stream: *mut StreamHandle,
    config: *const StreamConfig,
) -> Status {
    call("aclrtCreateStreamV2", || {
        // SAFETY: by the caller's promise.
        let Some(config) = (unsafe { config.as_ref() }) else {
            fail!(code::INVALID_PARAM, "the configuration is null");
        };
        // SAFETY: by the caller's promise.
        unsafe { create(stream, config.priority, config.flags as u32) }
    })
}

/// Finishes the work of a stream and ends it.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyStream(stream: StreamHandle) -> Status {
    call("aclrtDestroyStream", || Context::current()?.end_stream(stream as usize, true))
}

/// Ends a stream and gives up its work.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyStreamForce(stream: StreamHandle) -> Status {
    call("aclrtDestroyStreamForce", || Context::current()?.end_stream(stream as usize, false))
}

/// Gives up the work of a stream that waits.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamAbort(stream: StreamHandle) -> Status {
    call("aclrtStreamAbort", || {
        stream_of(stream)?.abort(code::RT_STREAM_ABORT);
        Ok(())
    })
}

/// Waits for a stream, and tells what failed in it.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeStream(stream: StreamHandle) -> Status {
    call("aclrtSynchronizeStream", || Context::current()?.stream(stream as usize)?.synchronize(None))
}

/// Waits for a stream, so long and no longer, and tells what failed in it.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeStreamWithTimeout(
    stream: StreamHandle,
    milliseconds: i32,
) -> Status {
    call("aclrtSynchronizeStreamWithTimeout", || {
        Context::current()?.stream(stream as usize)?.synchronize(deadline(milliseconds)?)
    })
}

/// Whether a stream has work left.
///
/// # Safety
/// `status` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamQuery(stream: StreamHandle, status: *mut i32) -> Status {
    call("aclrtStreamQuery", || {
        let complete = Context::current()?.stream(stream as usize)?.is_complete();
        let answer = if complete { constant::stream::COMPLETE } else { constant::stream::NOT_READY };
        // SAFETY: by the caller's promise.
        unsafe { put(status, answer) }
    })
}

/// The small number of a stream, as in activity records.
///
/// # Safety
/// `id` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamGetId(stream: StreamHandle, id: *mut i32) -> Status {
    call("aclrtStreamGetId", || {
        let stream = Context::current()?.stream(stream as usize)?;
        // SAFETY: by the caller's promise.
        unsafe { put(id, stream.id) }
    })
}

/// How urgent the work of a stream is.
///
/// # Safety
/// `priority` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamGetPriority(stream: StreamHandle, priority: *mut u32) -> Status {
    call("aclrtStreamGetPriority", || {
        let value = stream_of(stream)?.priority.load(Ordering::Relaxed);
        // SAFETY: by the caller's promise.
        unsafe { put(priority, value) }
    })
}

/// What a stream was made with.
///
/// # Safety
/// `flags` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamGetFlags(stream: StreamHandle, flags: *mut u32) -> Status {
    call("aclrtStreamGetFlags", || {
        let value = stream_of(stream)?.flags;
        // SAFETY: by the caller's promise.
        unsafe { put(flags, value) }
    })
}

/// The least and the most urgent priority.
///
/// # Safety
/// `least` and `greatest` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) -> Status {
    call("aclrtDeviceGetStreamPriorityRange", || {
        Context::current()?;
        // SAFETY: by the caller's promise.
        unsafe { put(least, *PRIORITIES.end() as i32).and(put(greatest, *PRIORITIES.start() as i32)) }
    })
}

/// How many streams can still be made.
///
/// # Safety
/// `count` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetStreamAvailableNum(count: *mut u32) -> Status {
    call("aclrtGetStreamAvailableNum", || {
        let left = stream::MOST.saturating_sub(Context::current()?.device.stream_count());
        // SAFETY: by the caller's promise.
        unsafe { put(count, left as u32) }
    })
}

/// Says whether a stream goes on after a failure.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetStreamFailureMode(stream: StreamHandle, mode: u64) -> Status {
    call("aclrtSetStreamFailureMode", || stream_of(stream)?.set_failure_mode(mode))
}

/// Says whether a stream looks for overflows: remembered, without effect.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetStreamOverflowSwitch(stream: StreamHandle, flag: u32) -> Status {
    call("aclrtSetStreamOverflowSwitch", || {
        stream_of(stream)?.overflow_switch.store(flag, Ordering::Relaxed);
        Ok(())
    })
}

/// Whether a stream was told to look for overflows.
///
/// # Safety
/// `flag` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetStreamOverflowSwitch(stream: StreamHandle, flag: *mut u32) -> Status {
    call("aclrtGetStreamOverflowSwitch", || {
        let value = stream_of(stream)?.overflow_switch.load(Ordering::Relaxed);
        // SAFETY: by the caller's promise.
        unsafe { put(flag, value) }
    })
}

/// Tells a stream one of several things.
///
/// # Safety
/// `value` is null or may be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetStreamAttribute(
    stream: StreamHandle,
    attribute: i32,
    value: *mut StreamAttribute,
) -> Status {
    call("aclrtSetStreamAttribute", || {
        use constant::stream_attribute::{
            CACHE_OPERATOR, CUSTOM_TAG, FAILURE_MODE, OVERFLOW_SWITCH, PRIORITY,
        };
        let stream = stream_of(stream)?;
        if value.is_null() {
            fail!(code::INVALID_PARAM, "the value is null");
        }
        // SAFETY: not null, so the caller vouches for it; any bits are a number.
        let (long, short) = unsafe { ((*value).failure_mode, (*value).priority) };
        match attribute {
            FAILURE_MODE => stream.set_failure_mode(long)?,
            OVERFLOW_SWITCH => stream.overflow_switch.store(short, Ordering::Relaxed),
            PRIORITY => stream.priority.store(short, Ordering::Relaxed),
            CUSTOM_TAG | CACHE_OPERATOR => {}
            _ => fail!(code::RT_PARAM_INVALID, "there is no attribute {attribute}"),
        }
        Ok(())
    })
}

/// What a stream was told.
///
/// # Safety
/// `value` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetStreamAttribute(
    stream: StreamHandle,
    attribute: i32,
    value: *mut StreamAttribute,
) -> Status {
    call("aclrtGetStreamAttribute", || {
        use constant::stream_attribute::{
            CACHE_OPERATOR, CUSTOM_TAG, FAILURE_MODE, OVERFLOW_SWITCH, PRIORITY,
        };
        let stream = stream_of(stream)?;
        let number = match attribute {
            FAILURE_MODE => stream.failure_mode() as u32,
            OVERFLOW_SWITCH => stream.overflow_switch.load(Ordering::Relaxed),
            PRIORITY => stream.priority.load(Ordering::Relaxed),
            CUSTOM_TAG | CACHE_OPERATOR => 0,
            _ => fail!(code::RT_PARAM_INVALID, "there is no attribute {attribute}"),
        };
        // SAFETY: by the caller's promise.
        unsafe { put(value, StreamAttribute { reserved: [number, 0, 0, 0] }) }
    })
}

/// Wants to hear of streams that come and go: remembered by nobody, since no client needs it here.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtRegStreamStateCallback(
    _name: *const c_char,
    _callback: Option<StreamCallback>,
    _data: *mut c_void,
) -> Status {
    call("aclrtRegStreamStateCallback", || {
        fail!(code::RT_FEATURE_NOT_SUPPORT, "nobody is told of streams that come and go")
    })
}
