//! Memory for what comes and goes with every call: what is given up waits on its thread for the next of its
//! size.

#![expect(unsafe_code, reason = "hands out raw memory")]

use std::alloc::{self, Layout as Allocation};
use std::cell::Cell;
use std::ptr::NonNull;

/// Sizes of memory that waits are multiples of this.
pub(crate) const STEP: usize = 32;
/// How many sizes wait; what is larger does not.
pub(crate) const SIZES: usize = 16;
/// How many of one size wait on a thread.
pub(crate) const MOST: usize = 64;
/// What the memory is aligned to.
const ALIGN: usize = align_of::<u128>();

/// Memory of one size that waits: each holds the address of the next.
struct List {
    first: Cell<Option<NonNull<Next>>>,
    len: Cell<usize>,
}

struct Next(Option<NonNull<Next>>);

/// The lists of a thread, by size.
struct Lists([List; SIZES]);

thread_local! {
    static LISTS: Lists =
        const { Lists([const { List { first: Cell::new(None), len: Cell::new(0) } }; SIZES]) };
}

/// Which list has memory of this size and alignment, if any has.
#[inline(always)]
const fn list_of(value: Allocation) -> Option<usize> {
    let list = value.size().div_ceil(STEP).saturating_sub(1);
    if list < SIZES && value.align() <= ALIGN { Some(list) } else { None }
}

/// How memory for a value is allocated.
const fn allocation(value: Allocation) -> Allocation {
    match list_of(value) {
        Some(list) => sized(list),
        None => value,
    }
}

/// How memory of a list is allocated.
const fn sized(list: usize) -> Allocation {
    match Allocation::from_size_align((list + 1) * STEP, ALIGN) {
        Ok(allocation) => allocation,
        Err(_) => panic!("sizes are small and the alignment is a power of two"),
    }
}

/// Memory for a `T`.
#[inline]
pub(crate) fn take<T>() -> NonNull<T> {
    let waiting = match const { list_of(Allocation::new::<T>()) } {
        Some(list) => LISTS.try_with(|lists| lists.0[list].pop()).ok().flatten(),
        None => None,
    };
    waiting.map_or_else(|| fresh(const { allocation(Allocation::new::<T>()) }).cast(), NonNull::cast)
}

#[cold]
fn fresh(allocation: Allocation) -> NonNull<u8> {
    if allocation.size() == 0 {
        return NonNull::without_provenance(
            std::num::NonZero::new(allocation.align()).expect("no alignment is 0"),
        );
    }
    // SAFETY: the size is not zero.
    let start = unsafe { alloc::alloc(allocation) };
    NonNull::new(start).unwrap_or_else(|| alloc::handle_alloc_error(allocation))
}

/// Keeps memory for the next value of this size, or gives it back to the system.
///
/// # Safety
/// It came from [`take`] for a type of this size and alignment, and nobody uses it.
#[inline(always)]
pub(crate) unsafe fn give_back(memory: NonNull<u8>, value: Allocation) {
    if let Some(list) = list_of(value) {
        // SAFETY: the caller's promise. A thread that ends has no lists any more.
        let kept = LISTS.try_with(|lists| unsafe { lists.0[list].push(memory.cast()) });
        if kept == Ok(true) {
            return;
        }
    }
    // SAFETY: `take` allocated it so.
    unsafe { release(memory, allocation(value)) };
}

/// # Safety
/// `fresh` allocated it so, and nobody uses it.
#[cold]
unsafe fn release(memory: NonNull<u8>, allocation: Allocation) {
    if allocation.size() > 0 {
        // SAFETY: the caller's promise.
        unsafe { alloc::dealloc(memory.as_ptr(), allocation) };
    }
}

impl List {
    #[inline]
    fn pop(&self) -> Option<NonNull<Next>> {
        let first = self.first.get()?;
        // SAFETY: it waits in this list, so `push` wrote it and nobody else knows it.
        self.first.set(unsafe { first.read() }.0);
        self.len.set(self.len.get() - 1);
        Some(first)
    }

    /// Whether there was room.
    ///
    /// # Safety
    /// The memory is of this list's size, and nobody uses it.
    #[inline]
    unsafe fn push(&self, memory: NonNull<Next>) -> bool {
        if self.len.get() == MOST {
            return false;
        }
        // SAFETY: the caller's promise; every size has room for an address.
        unsafe { memory.write(Next(self.first.get())) };
        self.first.set(Some(memory));
        self.len.set(self.len.get() + 1);
        true
    }
}

impl Drop for Lists {
    fn drop(&mut self) {
        for (number, list) in self.0.iter().enumerate() {
            while let Some(memory) = list.pop() {
                // SAFETY: it waited among those of this size, and nobody uses it.
                unsafe { release(memory.cast(), sized(number)) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shared;

    #[test]
    fn memory_waits_for_the_next_of_its_size() {
        std::thread::spawn(|| {
            let first = Shared::new([1u64; 9]);
            let address = Shared::address(&first);
            drop(first);
            let other_size = Shared::new([1u64; 30]);
            assert_ne!(Shared::address(&other_size), address);
            let again = Shared::new([2u64; 8]);
            assert_eq!(Shared::address(&again), address);
            assert_eq!(*again, [2; 8]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn more_than_may_wait_and_more_than_any_size_are_fine() {
        let many: Vec<_> = (0..3 * MOST).map(|i| Shared::new([i; 4])).collect();
        assert!(many.iter().enumerate().all(|(i, shared)| **shared == [i; 4]));
        drop(many);
        let large = Shared::new([3u8; 2 * SIZES * STEP]);
        assert!(large.iter().all(|&byte| byte == 3));
        #[repr(align(64))]
        struct Aligned(u8);
        let aligned = Shared::new(Aligned(5));
        assert_eq!((&raw const *aligned as usize % 64, aligned.0), (0, 5));
    }
}
