//! Whether this process is a forked child: devices do not come along.
//!
//! The library's threads exist in the parent only, and its locks may be held by one of them. A child
//! must not call it, not even to free something.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FORKED: AtomicBool = AtomicBool::new(false);
/// What is set in a child besides.
static TOLD: OnceLock<&'static AtomicBool> = OnceLock::new();

/// Whether this process was forked from one that uses the devices.
#[inline]
pub(crate) fn is_forked() -> bool {
    FORKED.load(Relaxed)
}

/// Notices forks from now on; `told` is set in the child.
pub(crate) fn watch(told: &'static AtomicBool) {
    if TOLD.set(told).is_ok() {
        // SAFETY: the handler only stores to atomics, which is allowed after a fork.
        unsafe { libc::pthread_atfork(None, None, Some(forked)) };
    }
}

extern "C" fn forked() {
    FORKED.store(true, Relaxed);
    if let Some(told) = TOLD.get() {
        told.store(true, Relaxed);
    }
}
