//! Slots that one thread fills while others read: the memory order of a [`Chunk`](super::chunk::Chunk).
//!
//! A slot is written, then published by the new length (Release); a reader looks at the length
//! (Acquire) and at nothing beyond. The one word that changes later is atomic.
//!
//! This file is compiled twice: as part of the crate, and in `tests/model.rs` with the types of
//! loom, which tries out every order that threads and memory can take.

#![allow(unsafe_code, reason = "the one place that writes what others may read")]

use super::sync::{AtomicU64, AtomicUsize, Region, UnsafeCell};
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A place for a `T`, and a word that may change afterwards.
pub(crate) struct Slot<T> {
    value: UnsafeCell<MaybeUninit<T>>,
    end: AtomicU64,
}

/// A fixed number of slots, filled from the first on.
pub(crate) struct Slots<T> {
    slots: Region<Slot<T>>,
    filled: AtomicUsize,
}

// SAFETY: values below `filled` are never written again, values above are touched only by the one
// thread that pushes; `filled` is published with Release and read with Acquire. All else is atomic.
unsafe impl<T: Send + Sync> Sync for Slots<T> {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl<T: Send> Send for Slots<T> {}

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot { value: UnsafeCell::new(MaybeUninit::uninit()), end: AtomicU64::new(0) }
    }
}

impl<T: Copy> Slots<T> {
    pub(crate) fn new(slots: Region<Slot<T>>) -> Slots<T> {
        Slots { slots, filled: AtomicUsize::new(0) }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// How many are filled so far.
    pub(crate) fn len(&self) -> usize {
        self.filled.load(Relaxed)
    }

    /// Empties all slots, now that nobody else can see them.
    pub(crate) fn clear(&mut self) {
        self.filled.store(0, Relaxed);
    }

    /// Fills slot `at` and publishes it. Returns false if there is no such slot.
    ///
    /// # Safety
    /// One thread alone pushes, and `at` rises by one from 0.
    #[inline]
    pub(crate) unsafe fn push(&self, at: usize, value: T) -> bool {
        let Some(slot) = self.slots.get(at) else { return false };
        // SAFETY: `at` is not published yet, so no reader looks at this slot, and by contract no
        // one else writes it.
        slot.value.with_mut(|place| unsafe { (*place).write(value) });
        slot.end.store(0, Relaxed);
        self.filled.store(at + 1, Release);
        true
    }

    /// Sets the word of slot `at`. Out of range, nothing happens.
    #[inline]
    pub(crate) fn end(&self, at: usize, word: u64) {
        if let Some(slot) = self.slots.get(at) {
            slot.end.store(word, Relaxed);
        }
    }

    /// What is filled so far: values with their words, 0 if not set.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (T, u64)> {
        let filled = self.filled.load(Acquire);
        self.slots[..filled].iter().map(|slot| {
            // SAFETY: this slot is below `filled`: initialised and no longer written.
            let value = slot.value.with(|place| unsafe { (*place).assume_init() });
            (value, slot.end.load(Relaxed))
        })
    }
}
