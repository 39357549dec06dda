//! A few watchers, and a mask of those that want to hear: the cheap half of every channel.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// How many watchers one channel can have.
pub(crate) const SLOTS: usize = 4;

/// The watchers of one channel. They are statics: they outlive everything they see.
pub(crate) struct Slots<T: ?Sized + 'static> {
    watchers: [OnceLock<&'static T>; SLOTS],
    /// Bit `i` is set while `watchers[i]` wants to hear.
    active: AtomicU8,
}

impl<T: ?Sized> Slots<T> {
    pub(crate) const fn new() -> Self {
        Slots { watchers: [const { OnceLock::new() }; SLOTS], active: AtomicU8::new(0) }
    }

    /// Takes a free slot for `watcher`, inactive at first. `None` when all are taken.
    pub(crate) fn claim(&self, watcher: &'static T) -> Option<u8> {
        (0..SLOTS).find(|&i| self.watchers[i].set(watcher).is_ok()).map(|i| 1 << i)
    }

    pub(crate) fn set_active(&self, slot: u8, active: bool) {
        if active {
            self.active.fetch_or(slot, Relaxed);
        } else {
            self.active.fetch_and(!slot, Relaxed);
        }
    }

    /// Which watchers want to hear: the one load a silent channel pays.
    #[inline]
    pub(crate) fn active(&self) -> u8 {
        self.active.load(Relaxed)
    }

    /// Visits the watchers in `mask`. Most often it is one, so bits are counted, not slots.
    #[inline]
    pub(crate) fn each(&self, mut mask: u8, mut visit: impl FnMut(usize, &'static T)) {
        while mask != 0 {
            let i = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            if let Some(watcher) = self.watchers.get(i).and_then(OnceLock::get) {
                visit(i, *watcher);
            }
        }
    }
}
