//! Zeroed memory for slots and arenas, in huge pages where they are large enough.
//!
//! A page that was never touched costs as much as recording sixty calls; a huge page costs little
//! more and lasts five hundred times as long.

#![expect(unsafe_code, reason = "memory from the system, shared as atomics and cells")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;

/// Bytes of a huge page.
pub(crate) const HUGE: usize = 2 << 20;

/// A list of values that all began as zeroes.
pub(crate) struct Region<T> {
    start: NonNull<T>,
    len: usize,
    /// `None` if it came from the allocator.
    mapping: Option<Mapping>,
}

/// Pages from the system, and where the first huge one begins.
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    aligned: NonNull<u8>,
}

// SAFETY: a region owns its values, like a boxed slice.
unsafe impl<T: Send> Send for Region<T> {}
// SAFETY: the same.
unsafe impl<T: Sync> Sync for Region<T> {}

impl<T> Region<T> {
    /// A region of `len` values, at least one.
    ///
    /// # Safety
    /// A `T` of zeroes must be valid, and need no drop.
    pub(crate) unsafe fn zeroed(len: usize) -> Region<T> {
        let layout = layout::<T>(len);
        if layout.size() >= HUGE
            && let Some(mapping) = map(layout.size())
        {
            return Region { start: mapping.aligned.cast(), len, mapping: Some(mapping) };
        }
        // SAFETY: the layout is not empty.
        let block = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(block) else { handle_alloc_error(layout) };
        Region { start: start.cast(), len, mapping: None }
    }
}

impl<T> Deref for Region<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values lie there until the drop, valid from the start by the contract of
        // `zeroed`; nobody has them mutably.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for Region<T> {
    fn drop(&mut self) {
        match &self.mapping {
            Some(mapping) => unmap(mapping),
            // SAFETY: it came from `alloc_zeroed` with this layout.
            None => unsafe { dealloc(self.start.as_ptr().cast(), layout::<T>(self.len)) },
        }
    }
}

fn layout<T>(len: usize) -> Layout {
    let layout = Layout::array::<T>(len).expect("a region is far smaller than memory");
    assert!(layout.size() > 0, "a region holds something");
    layout
}

/// So many bytes of zeroes from the start of a huge page on.
#[cfg(target_os = "linux")]
fn map(bytes: usize) -> Option<Mapping> {
    // What lies before the first huge page is never touched, so it costs addresses alone.
    let mapped = bytes + HUGE;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a mapping at an address of the system's choice replaces nothing.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, access, kind, -1, 0) };
    let start = NonNull::new(start).filter(|start| start.as_ptr() != libc::MAP_FAILED)?.cast::<u8>();
    let skipped = start.as_ptr().align_offset(HUGE);
    // SAFETY: less than a huge page is skipped, and there is one more than asked for.
    let aligned = unsafe { start.add(skipped) };
    // Miri knows no such advice.
    if !cfg!(miri) {
        // SAFETY: the range lies in the mapping, and advice changes no content. Without huge pages it
        // is only slower, so a refusal is no matter.
        unsafe { libc::madvise(aligned.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    Some(Mapping { start, bytes: mapped, aligned })
}

#[cfg(not(target_os = "linux"))]
fn map(_: usize) -> Option<Mapping> {
    None
}

#[cfg(target_os = "linux")]
fn unmap(mapping: &Mapping) {
    // SAFETY: the mapping is the region's own, and this is its drop.
    unsafe { libc::munmap(mapping.start.as_ptr().cast(), mapping.bytes) };
}

#[cfg(not(target_os = "linux"))]
fn unmap(_: &Mapping) {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn regions_of_all_sizes_are_zeroes_that_can_be_shared() {
        for len in [1, 1000, HUGE / 8, HUGE / 8 * 3 + 1] {
            // SAFETY: a number of zeroes is 0.
            let region = unsafe { Region::<AtomicU64>::zeroed(len) };
            assert_eq!(region.len(), len);
            assert!(region.iter().all(|word| word.load(Relaxed) == 0));
            std::thread::scope(|scope| {
                scope.spawn(|| region.iter().for_each(|word| word.store(7, Relaxed)));
            });
            assert!(region.iter().all(|word| word.load(Relaxed) == 7));
        }
    }
}
