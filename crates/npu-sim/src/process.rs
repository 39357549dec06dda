//! The process: a fork of one that uses the device cannot use it, as its streams have no threads.

#![expect(unsafe_code, reason = "asks the system to be told of forks and of the end")]

use crate::config::CONFIG;
use crate::error::{Result, fail};
use crate::objects;
use cresset_acl::code;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);
/// The number of this process once somebody asked for it, or 0.
static ID: AtomicU32 = AtomicU32::new(0);

/// The system's number of this process; asking for it each time would cost more than a record.
pub(crate) fn id() -> u32 {
    match ID.load(Ordering::Relaxed) {
        0 => {
            let id = std::process::id();
            ID.store(id, Ordering::Relaxed);
            id
        }
        id => id,
    }
}

/// Starts to watch for forks and for the end of the process. Called with every `aclInit`.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        extern "C" fn forked() {
            FORKED.store(true, Ordering::Relaxed);
            ID.store(0, Ordering::Relaxed);
        }
        extern "C" fn ends() {
            objects::tell_leaks("at exit");
        }
        // SAFETY: the functions live as long as the process: this library is never unloaded.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
        if CONFIG.leaks {
            // SAFETY: as above.
            unsafe { libc::atexit(ends) };
        }
    });
}

/// Fails in a process that was forked from one that used the device.
#[inline]
pub(crate) fn expect_no_fork() -> Result {
    if FORKED.load(Ordering::Relaxed) {
        fail!(
            code::RT_LOST_HEARTBEAT,
            "this process was forked from one that uses the device: start it anew instead, by exec"
        );
    }
    Ok(())
}
