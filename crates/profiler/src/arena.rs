//! Bytes beside the slots of a [`Chunk`](crate::chunk::Chunk): names made at run time, arguments.
//!
//! One thread writes, from the start on, and publishes how far it is (Release); readers look at
//! the length (Acquire) and at nothing beyond. What is published is not written again.

#![expect(unsafe_code, reason = "shares memory while it is being filled")]

use crate::region::Region;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::*};

pub(crate) struct Arena {
    bytes: Region<UnsafeCell<u8>>,
    /// How many are written and can be read.
    filled: AtomicUsize,
}

// SAFETY: bytes below `filled` are never written again, bytes above are touched only by the one
// thread that fills; `filled` is published with Release and read with Acquire.
unsafe impl Sync for Arena {}

impl Arena {
    /// Room for so many bytes, at least one.
    #[cold]
    pub(crate) fn new(bytes: usize) -> Arena {
        // SAFETY: a byte may be zero, in a cell too, and needs no drop.
        let bytes = unsafe { Region::zeroed(bytes) };
        let arena = Arena { bytes, filled: AtomicUsize::new(0) };
        // SAFETY: nobody else has it yet.
        let first = unsafe { arena.free(0) }.first_mut();
        // The first touch takes long: not while a call is being timed.
        *first.expect("an arena has room") = 0;
        arena
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets what was written, now that nobody else can see it.
    pub(crate) fn clear(&mut self) {
        *self.filled.get_mut() = 0;
    }

    /// The bytes from `at` on, to be written.
    ///
    /// # Safety
    /// One thread alone asks, has no earlier answer any more, and `at` is not below what it
    /// [published](Arena::publish).
    #[expect(clippy::mut_from_ref, reason = "the contract makes it the only reference")]
    #[inline]
    pub(crate) unsafe fn free(&self, at: usize) -> &mut [u8] {
        let free = self.bytes.get(at..).unwrap_or_default();
        // SAFETY: these cells are no reader's business yet, and by contract nobody else writes.
        unsafe { std::slice::from_raw_parts_mut(UnsafeCell::raw_get(free.as_ptr()), free.len()) }
    }

    /// Lets others read all bytes before `end`, which are not written again.
    #[inline]
    pub(crate) fn publish(&self, end: usize) {
        debug_assert!(end <= self.len() && self.filled.load(Relaxed) <= end);
        self.filled.store(end, Release);
    }

    /// The bytes from `at` on that can be read.
    pub(crate) fn published(&self, at: usize) -> &[u8] {
        let filled = self.filled.load(Acquire);
        let cells = self.bytes.get(at..filled).unwrap_or_default();
        // SAFETY: below `filled`, bytes are no longer written.
        unsafe { std::slice::from_raw_parts(UnsafeCell::raw_get(cells.as_ptr()), cells.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_see_what_is_published_and_nothing_beyond() {
        let arena = Arena::new(8);
        // SAFETY: this thread alone fills it, and keeps no reference.
        unsafe { arena.free(0)[..3].copy_from_slice(b"abc") };
        assert_eq!(arena.published(0), b"");
        arena.publish(3);
        // SAFETY: the same, beyond what is published.
        unsafe { arena.free(3)[..2].copy_from_slice(b"de") };
        assert_eq!(
            (arena.published(0), arena.published(1), arena.published(9)),
            (&b"abc"[..], &b"bc"[..], &b""[..])
        );
        std::thread::scope(|scope| {
            scope.spawn(|| while arena.published(0) != b"abcde" {});
            arena.publish(5);
        });
    }
}
