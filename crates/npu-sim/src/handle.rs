//! Handles: numbers that look like pointers to C, and lead to values only here.
//!
//! A handle holds its kind, a generation and a place in a table. It is never followed as a
//! pointer, so a destroyed, invented or mistaken handle is found out instead of trusted;
//! and as its top byte makes it no valid address, a client that looks inside one faults.

use parking_lot::Mutex;
use std::sync::Arc;

const PLACE_BITS: u32 = 24;
const GENERATION_BITS: u32 = 32;

/// The values that handles of one kind lead to.
pub(crate) struct Handles<T> {
    kind: u8,
    /// What one is called.
    name: &'static str,
    table: Mutex<Table<T>>,
}

struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    /// Grows with every reuse, so that old handles to this place are known as such.
    generation: u32,
    value: Option<Arc<T>>,
}

impl<T> Handles<T> {
    /// `kind` is the first byte of each handle: not zero, below 128.
    pub(crate) const fn new(kind: u8, name: &'static str) -> Handles<T> {
        assert!(kind > 0 && kind < 128);
        Handles { kind, name, table: Mutex::new(Table { slots: Vec::new(), free: Vec::new() }) }
    }

    /// Keeps a value that may want to know its handle.
    pub(crate) fn insert_with(&self, value: impl FnOnce(usize) -> T) -> usize {
        let mut table = self.table.lock();
        let place = table.free.pop().unwrap_or_else(|| {
            table.slots.push(Slot { generation: 0, value: None });
            table.slots.len() as u32 - 1
        });
        assert!(place < 1 << PLACE_BITS, "too many objects are alive");
        let slot = &mut table.slots[place as usize];
        slot.generation = slot.generation.wrapping_add(1);
        let kind = (self.kind as usize) << (PLACE_BITS + GENERATION_BITS);
        let handle = kind | (slot.generation as usize) << PLACE_BITS | place as usize;
        slot.value = Some(Arc::new(value(handle)));
        handle
    }

    /// Keeps a value.
    pub(crate) fn insert(&self, value: T) -> usize {
        self.insert_with(|_| value)
    }

    /// The value of a live handle.
    pub(crate) fn get(&self, handle: usize) -> Option<Arc<T>> {
        let table = self.table.lock();
        let slot = table.slots.get(self.place(handle)?)?;
        (slot.generation == generation(handle)).then(|| slot.value.clone()).flatten()
    }

    /// Ends a handle; gives its value if it was alive.
    pub(crate) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        let mut table = self.table.lock();
        let place = self.place(handle)?;
        let slot = table.slots.get_mut(place)?;
        if slot.generation != generation(handle) {
            return None;
        }
        let value = slot.value.take()?;
        table.free.push(place as u32);
        Some(value)
    }

    /// Whether a handle is alive.
    pub(crate) fn holds(&self, handle: usize) -> bool {
        self.get(handle).is_some()
    }

    /// Puts another value behind a live handle; false if it is not alive.
    pub(crate) fn replace(&self, handle: usize, value: T) -> bool {
        let mut table = self.table.lock();
        let slot = self.place(handle).and_then(|place| table.slots.get_mut(place));
        let Some(slot) = slot.filter(|slot| slot.generation == generation(handle)) else { return false };
        let alive = slot.value.is_some();
        if alive {
            slot.value = Some(Arc::new(value));
        }
        alive
    }

    /// All values.
    pub(crate) fn values(&self) -> Vec<Arc<T>> {
        self.table.lock().slots.iter().filter_map(|slot| slot.value.clone()).collect()
    }

    /// What one is called, and how many are alive.
    pub(crate) fn alive(&self) -> (&'static str, usize) {
        let table = self.table.lock();
        (self.name, table.slots.len() - table.free.len())
    }

    fn place(&self, handle: usize) -> Option<usize> {
        let kind = handle >> (PLACE_BITS + GENERATION_BITS);
        (kind == self.kind as usize).then_some(handle & ((1 << PLACE_BITS) - 1))
    }
}

fn generation(handle: usize) -> u32 {
    (handle >> PLACE_BITS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_handle_leads_nowhere_even_when_its_place_is_taken_again() {
        let handles = Handles::new(1, "letter");
        let old = handles.insert('a');
        assert_eq!(handles.remove(old).as_deref(), Some(&'a'));
        let new = handles.insert('b');
        assert_ne!(old, new);
        assert!(handles.get(old).is_none() && handles.remove(old).is_none());
        assert_eq!(handles.get(new).as_deref(), Some(&'b'));
    }

    #[test]
    fn kinds_do_not_mix() {
        let (one, two) = (Handles::new(1, "one"), Handles::new(2, "two"));
        let handle = one.insert(());
        two.insert(());
        assert!(two.get(handle).is_none() && one.get(0).is_none() && one.get(usize::MAX).is_none());
    }
}
