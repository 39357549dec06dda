//! Streams and events.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::device::deadline;
use super::put;
use crate::context::Context;
use crate::error::{Failure, Result, call};
use crate::event::{EVENTS, Event};
use cresset_acl::types::{Event as EventHandle, Status, Stream as StreamHandle};
use cresset_acl::{code, constant};
use std::sync::Arc;

fn event_of(handle: EventHandle) -> Result<Arc<Event>> {
    EVENTS.get(handle as usize).ok_or_else(|| unknown(handle))
}

fn unknown(handle: EventHandle) -> Failure {
    Failure::new(code::RT_INVALID_HANDLE, format!("{handle:?} is not an event in use"))
}

/// Makes a stream in the context of this thread.
///
/// # Safety
/// `stream` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStream(stream: *mut StreamHandle) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtCreateStream", || unsafe { put(stream, Context::current()?.new_stream() as StreamHandle) })
}

/// Makes a stream. Priority and flags change nothing here.
///
/// # Safety
/// `stream` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateStreamWithConfig(
    stream: *mut StreamHandle,
    _priority: u32,
    _flags: u32,
) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtCreateStreamWithConfig", || unsafe {
        put(stream, Context::current()?.new_stream() as StreamHandle)
    })
}

/// Finishes the work of a stream and ends it.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyStream(stream: StreamHandle) -> Status {
    call("aclrtDestroyStream", || Context::current()?.end_stream(stream as usize))
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

/// Makes later work of a stream wait for an event. Does not wait itself.
///
/// # Safety
/// None: handles are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamWaitEvent(stream: StreamHandle, event: EventHandle) -> Status {
    call("aclrtStreamWaitEvent", || event_of(event)?.hold(&*Context::current()?.stream(stream as usize)?))
}

/// Makes an event that streams can wait for and that takes the time.
///
/// # Safety
/// `event` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEvent(event: *mut EventHandle) -> Status {
    let flags = constant::event::SYNC | constant::event::TIME_LINE;
    // SAFETY: by the caller's promise.
    call("aclrtCreateEvent", || unsafe { create_event(event, flags) })
}

/// Makes an event that does what its flags say.
///
/// # Safety
/// `event` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEventExWithFlag(event: *mut EventHandle, flags: u32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtCreateEventExWithFlag", || unsafe { create_event(event, flags) })
}

/// # Safety
/// `to` is null or may be written.
unsafe fn create_event(to: *mut EventHandle, flags: u32) -> Result {
    Context::current()?;
    let event = Event::new(flags)?;
    // SAFETY: by the caller's promise.
    unsafe { put(to, EVENTS.insert(event) as EventHandle) }
}

/// Ends an event. Work that waits for it goes on waiting.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtDestroyEvent(event: EventHandle) -> Status {
    call("aclrtDestroyEvent", || EVENTS.remove(event as usize).map(drop).ok_or_else(|| unknown(event)))
}

/// Lets an event stand for all work of a stream so far.
///
/// # Safety
/// None: handles are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtRecordEvent(event: EventHandle, stream: StreamHandle) -> Status {
    call("aclrtRecordEvent", || {
        event_of(event)?.record(&*Context::current()?.stream(stream as usize)?);
        Ok(())
    })
}

/// Whether an event was reached.
///
/// # Safety
/// `status` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtQueryEventStatus(event: EventHandle, status: *mut i32) -> Status {
    call("aclrtQueryEventStatus", || {
        let complete = event_of(event)?.is_complete();
        use constant::event::{RECORDED_COMPLETE, RECORDED_NOT_READY};
        // SAFETY: by the caller's promise.
        unsafe { put(status, if complete { RECORDED_COMPLETE } else { RECORDED_NOT_READY }) }
    })
}

/// Waits for an event.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeEvent(event: EventHandle) -> Status {
    call("aclrtSynchronizeEvent", || {
        event_of(event)?.synchronize();
        Ok(())
    })
}

/// Milliseconds from one event to another.
///
/// # Safety
/// `milliseconds` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtEventElapsedTime(
    milliseconds: *mut f32,
    start: EventHandle,
    end: EventHandle,
) -> Status {
    call("aclrtEventElapsedTime", || {
        let elapsed = event_of(start)?.until(&*event_of(end)?)?;
        // SAFETY: by the caller's promise.
        unsafe { put(milliseconds, elapsed) }
    })
}
