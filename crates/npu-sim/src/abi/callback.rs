//! Functions of the client that run in the order of a stream.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::device::deadline;
use crate::context::Context;
use crate::error::{Result, call, fail};
use crate::report::{self, Report};
use cresset_acl::types::{Callback, Status, Stream, c_void};
use cresset_acl::{code, constant};

fn report_of(callback: Option<Callback>, data: *mut c_void) -> Result<Report> {
    match callback {
        Some(callback) => Ok(Report::new(callback, data)),
        None => fail!(code::INVALID_PARAM, "the function is null"),
    }
}

/// Lets a thread run the callbacks of a stream.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSubscribeReport(thread: u64, stream: Stream) -> Status {
    call("aclrtSubscribeReport", || {
        report::subscribe(thread, Context::current()?.stream(stream as usize)?.id)
    })
}

/// Undoes `aclrtSubscribeReport`.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtUnSubscribeReport(thread: u64, stream: Stream) -> Status {
    call("aclrtUnSubscribeReport", || {
        report::unsubscribe(thread, Context::current()?.stream(stream as usize)?.id)
    })
}

/// Hands a function to the thread that subscribed, once the stream is here.
///
/// # Safety
/// The function may be called with `data` from that thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtLaunchCallback(
    callback: Option<Callback>,
    data: *mut c_void,
    block: i32,
    stream: Stream,
) -> Status {
    call("aclrtLaunchCallback", || {
        let report = report_of(callback, data)?;
        let stream = Context::current()?.stream(stream as usize)?;
        let blocks = match block {
            constant::callback::NO_BLOCK => false,
            constant::callback::BLOCK => true,
            _ => fail!(code::INVALID_PARAM, "there is no way {block} to block"),
        };
        let inbox = report::inbox(stream.id)?;
        stream.push(Box::new(move || {
            inbox.deliver(report, blocks);
            Ok(())
        }));
        Ok(())
    })
}

/// Runs one callback on this thread; waits for one so long and no longer.
///
/// # Safety
/// None: the functions come from `aclrtLaunchCallback`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtProcessReport(milliseconds: i32) -> Status {
    call("aclrtProcessReport", || report::process(deadline(milliseconds)?))
}

/// Runs a function when the stream is here, on a thread of the library; the stream waits for it.
///
/// # Safety
/// The function may be called with `data` from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtLaunchHostFunc(
    stream: Stream,
    callback: Option<Callback>,
    data: *mut c_void,
) -> Status {
    call("aclrtLaunchHostFunc", || {
        let report = report_of(callback, data)?;
        Context::current()?.stream(stream as usize)?.push(Box::new(move || {
            report.run();
            Ok(())
        }));
        Ok(())
    })
}
