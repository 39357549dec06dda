//! Events.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::device::deadline;
use super::put;
use crate::context::Context;
use crate::error::{Failure, Result, call, fail};
use crate::event::{self, EVENTS, Event, Family};
use cresset_acl::types::{Event as EventHandle, Status, Stream as StreamHandle};
use cresset_acl::{code, constant};
use std::sync::Arc;
use std::time::Duration;

fn event_of(handle: EventHandle) -> Result<Arc<Event>> {
    EVENTS.get(handle as usize).ok_or_else(|| unknown(handle))
}

fn unknown(handle: EventHandle) -> Failure {
    Failure::new(code::RT_INVALID_HANDLE, format!("{handle:?} is not an event in use"))
}

/// Makes later work of a stream wait for an event. Does not wait itself.
///
/// # Safety
/// None: handles are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamWaitEvent(stream: StreamHandle, event: EventHandle) -> Status {
    call("aclrtStreamWaitEvent", || {
        event_of(event)?.hold(&*Context::current()?.stream(stream as usize)?, None)
    })
}

/// Makes an event that streams can wait for and that takes the time.
///
/// # Safety
/// `event` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEvent(event: *mut EventHandle) -> Status {
    let flags = constant::event::SYNC | constant::event::TIME_LINE;
    // SAFETY: by the caller's promise.
    call("aclrtCreateEvent", || unsafe { create_event(event, flags, Family::Plain) })
}

/// Makes an event that does what its flags say.
///
/// # Safety
/// `event` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEventExWithFlag(event: *mut EventHandle, flags: u32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtCreateEventExWithFlag", || unsafe { create_event(event, flags, Family::Extended) })
}

/// Makes an event that does what its flags say, and can be reset.
///
/// # Safety
/// `event` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtCreateEventWithFlag(event: *mut EventHandle, flags: u32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtCreateEventWithFlag", || unsafe { create_event(event, flags, Family::Flagged) })
}

/// # Safety
/// `to` is null or may be written.
unsafe fn create_event(to: *mut EventHandle, flags: u32, family: Family) -> Result {
    Context::current()?;
    if to.is_null() {
        fail!(code::INVALID_PARAM, "the place for the event is null");
    }
    if EVENTS.alive().1 >= event::MOST {
        fail!(code::RT_NO_EVENT_RESOURCE, "there are {} events, and no more", event::MOST);
    }
    let event = Event::new(flags, family)?;
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
    call("aclrtSynchronizeEvent", || event_of(event)?.synchronize(None))
}

/// Waits for an event, so long and no longer.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSynchronizeEventWithTimeout(event: EventHandle, milliseconds: i32) -> Status {
    call("aclrtSynchronizeEventWithTimeout", || event_of(event)?.synchronize(deadline(milliseconds)?))
}

/// Makes later work of a stream wait for an event, so many seconds and no longer; 0 for ever.
///
/// # Safety
/// None: handles are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtStreamWaitEventWithTimeout(
    stream: StreamHandle,
    event: EventHandle,
    seconds: i32,
) -> Status {
    call("aclrtStreamWaitEventWithTimeout", || {
        let Ok(seconds) = u64::try_from(seconds) else {
            fail!(code::RT_PARAM_INVALID, "{seconds} seconds are no time to wait");
        };
        let most = (seconds > 0).then(|| Duration::from_secs(seconds));
        event_of(event)?.hold(&*Context::current()?.stream(stream as usize)?, most)
    })
}

/// Takes back that an event was recorded.
///
/// # Safety
/// None: handles are checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtResetEvent(event: EventHandle, stream: StreamHandle) -> Status {
    call("aclrtResetEvent", || {
        Context::current()?.stream(stream as usize)?;
        event_of(event)?.reset()
    })
}

/// Whether an event of the older kinds was reached.
///
/// # Safety
/// `status` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtQueryEvent(event: EventHandle, status: *mut i32) -> Status {
    call("aclrtQueryEvent", || {
        let event = event_of(event)?;
        event.expect_old()?;
        use constant::event::{COMPLETE, NOT_READY};
        // SAFETY: by the caller's promise.
        unsafe { put(status, if event.is_complete() { COMPLETE } else { NOT_READY }) }
    })
}

/// Whether every stream that waited for an event of the older kinds has gone on.
///
/// # Safety
/// `status` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtQueryEventWaitStatus(event: EventHandle, status: *mut i32) -> Status {
    call("aclrtQueryEventWaitStatus", || {
        let event = event_of(event)?;
        event.expect_old()?;
        use constant::event::{WAIT_COMPLETE, WAIT_NOT_READY};
        // SAFETY: by the caller's promise.
        unsafe { put(status, if event.is_passed() { WAIT_COMPLETE } else { WAIT_NOT_READY }) }
    })
}

/// Microseconds from the start of the device to an event.
///
/// # Safety
/// `microseconds` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtEventGetTimestamp(event: EventHandle, microseconds: *mut u64) -> Status {
    call("aclrtEventGetTimestamp", || {
        let time = event_of(event)?.timestamp()?;
        // SAFETY: by the caller's promise.
        unsafe { put(microseconds, time) }
    })
}

/// The small number of an event.
///
/// # Safety
/// `id` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetEventId(event: EventHandle, id: *mut u32) -> Status {
    call("aclrtGetEventId", || {
        let number = event_of(event)?.id;
        // SAFETY: by the caller's promise.
        unsafe { put(id, number) }
    })
}

/// How many events can still be made.
///
/// # Safety
/// `count` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetEventAvailNum(count: *mut u32) -> Status {
    call("aclrtGetEventAvailNum", || {
        Context::current()?;
        // SAFETY: by the caller's promise.
        unsafe { put(count, event::MOST.saturating_sub(EVENTS.alive().1) as u32) }
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
