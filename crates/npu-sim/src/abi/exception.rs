//! Who wants to hear of tasks that fail, and what there is to hear.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::put;
use crate::error::call;
use crate::exception::{self, Exception};
use cresset_acl::types::{Callback, Status, c_void};

/// Calls a function of the client for every task that fails, on the thread of its stream.
///
/// # Safety
/// `callback` is null, or may be called from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtSetExceptionInfoCallback(callback: Option<Callback>) -> Status {
    call("aclrtSetExceptionInfoCallback", || {
        exception::listen(callback);
        Ok(())
    })
}

/// The number of the task that this thread gave to a stream last.
///
/// # Safety
/// `task` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtGetThreadLastTaskId(task: *mut u32) -> Status {
    // SAFETY: by the caller's promise.
    call("aclrtGetThreadLastTaskId", || unsafe { put(task, exception::last_task()) })
}

/// One function per thing that a client may ask about a task that failed.
macro_rules! told {
    ($($(#[$doc:meta])* $name:ident = $field:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `info` is null, or what the client's function was just given.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(info: *const c_void) -> u32 {
            // SAFETY: by the caller's promise.
            unsafe { info.cast::<Exception>().as_ref() }.map_or(u32::MAX, |exception| exception.$field)
        }
    )*};
}

told! {
    /// The device of a task that failed.
    aclrtGetDeviceIdFromExceptionInfo = device;
    /// The stream of a task that failed.
    aclrtGetStreamIdFromExceptionInfo = stream;
    /// The number of a task that failed among those of its stream.
    aclrtGetTaskIdFromExceptionInfo = task;
}
