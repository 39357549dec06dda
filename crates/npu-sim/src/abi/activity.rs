//! The tracing library's functions.
#![allow(non_snake_case, reason = "the names are those of C")]

use crate::buffers::{self, Client};
use crate::{calls, fault, marker, trace};
use cresset_acl::record::result;
use cresset_acl::types::{ActivityCallback, BufferCompleted, BufferRequested, c_char, c_void};
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

static SUBSCRIBED: AtomicBool = AtomicBool::new(false);
/// What a subscriber gets as its handle: only one exists.
const SUBSCRIBER: usize = 0x0a00_0000_0000_0001;

/// Runs the body of the C function `name`, unless it is to fail, come late or be lost.
fn call(name: &str, body: impl FnOnce() -> i32) -> i32 {
    calls::count(name);
    let Some(fault) = fault::injected(name) else { return body() };
    let mut code = result::SUCCESS;
    let outcome = fault.around(|| {
        code = body();
        Ok(())
    });
    outcome.map_or_else(|failure| failure.code, |()| code)
}

/// Starts the one subscription there is. The callback is never called.
///
/// # Safety
/// `subscriber` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiSubscribe(
    subscriber: *mut *mut c_void,
    _callback: ActivityCallback,
    _data: *mut c_void,
) -> i32 {
    call("msptiSubscribe", || {
        if subscriber.is_null() {
            return result::INVALID_PARAMETER;
        }
        if SUBSCRIBED.swap(true, Ordering::SeqCst) {
            return result::MULTIPLE_SUBSCRIBERS;
        }
        // SAFETY: not null, so the caller vouches for it.
        unsafe { subscriber.write(SUBSCRIBER as *mut c_void) };
        result::SUCCESS
    })
}

/// Ends the subscription.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiUnsubscribe(subscriber: *mut c_void) -> i32 {
    call("msptiUnsubscribe", || {
        if subscriber as usize != SUBSCRIBER || !SUBSCRIBED.swap(false, Ordering::SeqCst) {
            return result::INVALID_PARAMETER;
        }
        result::SUCCESS
    })
}

/// Says where buffers come from, and where they go.
///
/// # Safety
/// The functions give and take back memory as the tracing library asks, from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityRegisterCallbacks(
    requested: BufferRequested,
    completed: BufferCompleted,
) -> i32 {
    call("msptiActivityRegisterCallbacks", || {
        buffers::register(Client { requested, completed });
        result::SUCCESS
    })
}

/// Starts to collect a kind of records. Somebody must be subscribed.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityEnable(kind: u32) -> i32 {
    call("msptiActivityEnable", || {
        if !SUBSCRIBED.load(Ordering::SeqCst) {
            return result::INVALID_PARAMETER;
        }
        trace::enable(kind)
    })
}

/// Stops collecting a kind of records.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityDisable(kind: u32) -> i32 {
    call("msptiActivityDisable", || trace::disable(kind))
}

/// Whether a kind of records is collected.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityIsEnabled(kind: u32) -> bool {
    kind < 32 && trace::wants(kind)
}

/// Hands over records every so often: here they are when a buffer is nearly full, and when asked for.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityFlushPeriod(_milliseconds: u32) -> i32 {
    result::SUCCESS
}

/// Collects markers of a domain.
///
/// # Safety
/// `name` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityEnableMarkerDomain(name: *const c_char) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { listen(name, true) }
}

/// Collects no more markers of a domain.
///
/// # Safety
/// `name` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityDisableMarkerDomain(name: *const c_char) -> i32 {
    // SAFETY: by the caller's promise.
    unsafe { listen(name, false) }
}

/// # Safety
/// `name` is null or text ended by a zero byte.
unsafe fn listen(name: *const c_char, wanted: bool) -> i32 {
    if name.is_null() {
        return result::INVALID_PARAMETER;
    }
    // SAFETY: not null, so the caller vouches for it.
    marker::listen(unsafe { CStr::from_ptr(name) }, wanted);
    result::SUCCESS
}

/// Calls the subscriber at calls of one function: never here, so it is refused.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiEnableCallback(
    _enable: u32,
    _subscriber: *mut c_void,
    _domain: i32,
    _id: u32,
) -> i32 {
    result::WITHOUT_LD_PRELOAD
}

/// Calls the subscriber at calls of many functions: never here, so it is refused.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiEnableDomain(_enable: u32, _subscriber: *mut c_void, _domain: i32) -> i32 {
    result::WITHOUT_LD_PRELOAD
}

/// The next record of a buffer, counted per thread.
///
/// # Safety
/// `valid` bytes at `buffer` came from a completed buffer; `record` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityGetNextRecord(
    buffer: *mut u8,
    valid: usize,
    record: *mut *mut u8,
) -> i32 {
    call("msptiActivityGetNextRecord", || {
        if buffer.is_null() || record.is_null() {
            return result::INVALID_PARAMETER;
        }
        // SAFETY: by the caller's promise.
        match unsafe { buffers::next(buffer, valid) } {
            Ok(next) => {
                // SAFETY: not null, so the caller vouches for it.
                unsafe { record.write(next) };
                result::SUCCESS
            }
            Err(result) => result,
        }
    })
}

/// Hands over all records of work that is done.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityFlushAll(_flag: u32) -> i32 {
    call("msptiActivityFlushAll", || {
        buffers::flush();
        result::SUCCESS
    })
}

/// Ties the launches that follow to an id.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityPushExternalCorrelationId(kind: u32, id: u64) -> i32 {
    call("msptiActivityPushExternalCorrelationId", || trace::push(kind, id))
}

/// Undoes the last push.
///
/// # Safety
/// `last` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msptiActivityPopExternalCorrelationId(kind: u32, last: *mut u64) -> i32 {
    call("msptiActivityPopExternalCorrelationId", || {
        if last.is_null() {
            return result::INVALID_PARAMETER;
        }
        let Some(id) = trace::pop(kind) else { return result::INVALID_PARAMETER };
        // SAFETY: not null, so the caller vouches for it.
        unsafe { last.write(id) };
        result::SUCCESS
    })
}
