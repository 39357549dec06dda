//! The process: a fork of one that uses the device cannot use it, as its streams have no threads.

#![expect(unsafe_code, reason = "asks the system to be told of forks and of the end")]

use crate::config::CONFIG;
use crate::error::{Result, fail};
use crate::objects;
use cresset_acl::code;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// Starts to watch for forks and for the end of the process. Called with every `aclInit`.
pub(crate) fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        extern "C" fn forked() {
            FORKED.store(true, Ordering::Relaxed);
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
