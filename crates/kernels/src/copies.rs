//! How many bytes kernels copied beside their work.

use std::cell::Cell;

thread_local! {
    static COPIED: Cell<u64> = const { Cell::new(0) };
}

/// Counts elements that were copied only because of how they lay, or of what type they were.
pub fn count_copy(bytes: usize) {
    COPIED.set(COPIED.get() + bytes as u64);
}

/// Bytes that kernels called from this thread copied beside their work since the last time.
pub fn take_copied() -> u64 {
    COPIED.take()
}
