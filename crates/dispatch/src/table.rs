//! One operator's kernels, one slot per backend.

use crate::Key;
use std::sync::OnceLock;

/// A table of kernels of type `F`, a plain `fn` pointer.
///
/// Slots are written once, by the crate that owns the backend, and read on every call.
pub struct Table<F> {
    slots: [OnceLock<F>; Key::BACKENDS],
}

impl<F: Copy> Table<F> {
    /// An empty table.
    #[expect(clippy::new_without_default, reason = "const, for statics")]
    pub const fn new() -> Self {
        Table { slots: [const { OnceLock::new() }; Key::BACKENDS] }
    }

    /// Fills the slot of `backend`. Returns false if it was filled before, when the first one
    /// stays, or if the key is no backend.
    pub fn register(&self, backend: Key, kernel: F) -> bool {
        backend.is_backend() && self.slots[backend.slot()].set(kernel).is_ok()
    }

    /// The kernel of `backend`, if one is registered.
    #[inline]
    pub fn get(&self, backend: Key) -> Option<F> {
        self.slots[backend.slot()].get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_from_outside_fills_its_slot_once() {
        static TABLE: Table<fn(i32) -> i32> = Table::new();
        let device = Key::claim("table-test").expect("a slot is free");
        assert!(TABLE.get(device).is_none());
        assert!(TABLE.register(device, |x| x + 1));
        assert!(!TABLE.register(device, |x| x - 1));
        assert_eq!(TABLE.get(device).map(|kernel| kernel(1)), Some(2));
        assert!(TABLE.get(Key::CPU).is_none());
        assert!(!TABLE.register(Key::AUTOGRAD, |x| x));
    }
}
