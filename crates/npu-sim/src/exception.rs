//! Tasks that failed, as a client hears of them that asked to.

#![expect(unsafe_code, reason = "calls functions of the client")]

use cresset_acl::types::{Callback, c_void};
use parking_lot::Mutex;
use std::cell::Cell;

/// What a client may ask about a task that failed.
pub(crate) struct Exception {
    pub(crate) device: u32,
    pub(crate) stream: u32,
    /// Its number among the tasks of its stream.
    pub(crate) task: u32,
}

static LISTENER: Mutex<Option<Callback>> = Mutex::new(None);

thread_local!(static LAST_TASK: Cell<u32> = const { Cell::new(0) });

/// Whom to tell from now on.
pub(crate) fn listen(listener: Option<Callback>) {
    *LISTENER.lock() = listener;
}

/// Remembers the task that this thread gave to a stream last.
#[inline]
pub(crate) fn gave(task: u32) {
    LAST_TASK.set(task);
}

/// The task that this thread gave to a stream last; 0 before it gave any.
pub(crate) fn last_task() -> u32 {
    LAST_TASK.get()
}

impl Exception {
    /// Tells the listener, if there is one, on this thread.
    pub(crate) fn tell(mut self) {
        let listener = *LISTENER.lock();
        if let Some(listener) = listener {
            // SAFETY: the client's own function, given what it may ask about until it returns.
            unsafe { listener((&raw mut self).cast::<c_void>()) };
        }
    }
}
