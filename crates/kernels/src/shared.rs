//! Shared ownership of what comes and goes with every call.
//!
//! [`Shared`] counts its owners as `Arc` does. Two things are cheaper, and small tensors notice: memory that
//! is given up waits on its thread for the next of its size, and the last owner learns from a plain load that
//! it is the last.

#![expect(unsafe_code, reason = "owns raw memory and counts who shares it")]

use crate::sync::{AtomicUsize, Ordering, fence};
use crate::waiting::{give_back, take};
use std::alloc::Layout as Allocation;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

/// A value with any number of owners, on any threads.
pub struct Shared<T> {
    counted: NonNull<Counted<T>>,
    _owns: PhantomData<Counted<T>>,
}

struct Counted<T> {
    owners: AtomicUsize,
    /// How many watch, and one for all owners together; 0 if nobody ever did.
    watchers: AtomicUsize,
    value: ManuallyDrop<T>,
}

/// Leads to a value that others own, for as long as they do.
pub struct Watcher<T> {
    counted: NonNull<Counted<T>>,
}

// SAFETY: owners on several threads see the value at once, and any of them may be the one to drop it.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above; from a reference another owner can be made.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}
// SAFETY: as above: of a watcher an owner can be made.
unsafe impl<T: Send + Sync> Send for Watcher<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Watcher<T> {}

impl<T> Shared<T> {
    /// A value with one owner.
    #[inline]
    pub fn new(value: T) -> Shared<T> {
        Shared::with(|| value)
    }

    /// A value with one owner, made where it stays: large ones need not be moved there.
    #[inline(always)]
    pub fn with(make: impl FnOnce() -> T) -> Shared<T> {
        let counted = take::<Counted<T>>();
        let place = counted.as_ptr();
        // SAFETY: memory for just this, and nobody else knows it. A panic of `make` gives it up for good.
        unsafe {
            (&raw mut (*place).owners).write(AtomicUsize::new(1));
            (&raw mut (*place).watchers).write(AtomicUsize::new(0));
            (&raw mut (*place).value).write(ManuallyDrop::new(make()));
        }
        Shared { counted, _owns: PhantomData }
    }

    #[inline]
    fn counted(&self) -> &Counted<T> {
        // SAFETY: it lives as long as it has an owner, and this is one.
        unsafe { self.counted.as_ref() }
    }

    /// How many owners there are; others may come and go meanwhile.
    #[inline]
    pub fn count(this: &Shared<T>) -> usize {
        this.counted().owners.load(Ordering::Acquire)
    }

    /// Whether this is the only owner, and nobody ever watched. Then it stays so for as long as nobody
    /// clones it.
    #[inline]
    pub fn is_unique(this: &Shared<T>) -> bool {
        // In this order: who made a watcher was an owner, so if the others are gone, it is seen.
        Shared::count(this) == 1 && this.counted().watchers.load(Ordering::Relaxed) == 0
    }

    /// The value, if nobody else owns it.
    #[inline]
    pub fn get_mut(this: &mut Shared<T>) -> Option<&mut T> {
        // SAFETY: what former owners did is seen, and a new one would need the owner borrowed here.
        Shared::is_unique(this).then(|| unsafe { &mut *this.counted.as_mut().value })
    }

    /// Whether both own the same value.
    #[inline]
    pub fn ptr_eq(this: &Shared<T>, other: &Shared<T>) -> bool {
        this.counted == other.counted
    }

    /// Where the value is: an identity, not to be read through.
    #[inline]
    pub fn address(this: &Shared<T>) -> usize {
        this.counted.as_ptr() as usize
    }

    /// What leads to the value without owning it.
    pub fn watch(this: &Shared<T>) -> Watcher<T> {
        let more = |watchers| Some(if watchers == 0 { 2 } else { watchers + 1 });
        let counted = this.counted();
        let _ = counted.watchers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        Watcher { counted: this.counted }
    }
}

impl<T> Watcher<T> {
    /// The counts of owners and watchers, and no look at the value: the last owner may be dropping it.
    fn counts(&self) -> [&AtomicUsize; 2] {
        let counted = self.counted.as_ptr();
        // SAFETY: the memory stays until owners and watchers are gone, and this is one.
        unsafe { [&(*counted).owners, &(*counted).watchers] }
    }

    /// An owner of the value; `None` if the last one went.
    pub fn owner(&self) -> Option<Shared<T>> {
        let more = |owners| (owners > 0).then(|| owners + 1);
        let [owners, _] = self.counts();
        owners.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).ok()?;
        Some(Shared { counted: self.counted, _owns: PhantomData })
    }
}

impl<T> Drop for Watcher<T> {
    fn drop(&mut self) {
        let [_, watchers] = self.counts();
        if watchers.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            // SAFETY: the owners counted as one, which went after the value was dropped.
            unsafe { give_back(self.counted.cast(), Allocation::new::<Counted<T>>()) };
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.counted().value
    }
}

impl<T> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Shared<T> {
        let before = self.counted().owners.fetch_add(1, Ordering::Relaxed);
        if before > isize::MAX as usize {
            // Owners that are forgotten again and again would wrap around to none.
            std::process::abort();
        }
        Shared { counted: self.counted, _owns: PhantomData }
    }
}

impl<T> Drop for Shared<T> {
    #[inline]
    fn drop(&mut self) {
        if Shared::is_unique(self) {
            // SAFETY: the last owner goes, what the others did is seen, and nobody watches.
            unsafe { end(self.counted, false) };
        } else if self.counted().owners.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            let watched = self.counted().watchers.load(Ordering::Relaxed) != 0;
            // SAFETY: as above; watchers make no owners any more.
            unsafe { end(self.counted, watched) };
        }
    }
}

/// Drops the value, and gives its memory up unless a watcher is left to do that.
///
/// # Safety
/// Nobody owns it any more; nobody watches if it is not `watched`.
unsafe fn end<T>(counted: NonNull<Counted<T>>, watched: bool) {
    // SAFETY: the caller's promise; it was initialised when it was made. Watchers look at the counts
    // meanwhile, so that the value alone is borrowed.
    unsafe { ManuallyDrop::drop(&mut (*counted.as_ptr()).value) };
    if watched {
        drop(Watcher { counted });
    } else {
        // SAFETY: it was taken for this type, and nothing is in it any more.
        unsafe { give_back(counted.cast(), Allocation::new::<Counted<T>>()) };
    }
}
