//! Host memory that many views share and one at a time may change.

#![expect(unsafe_code, reason = "owns raw memory and lends it under a lock")]

use parking_lot::{RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockWriteGuard};
use std::alloc::{self, Layout as Allocation};
use std::fmt;
use std::ptr::NonNull;

/// Memory aligned for any element type.
///
/// Tensors alias buffers freely, so a buffer carries its own lock: any number of
/// readers, or one writer. Memory is always initialised: fresh blocks come zeroed, which
/// for large ones the operating system has done already.
pub struct Buffer {
    start: NonNull<u8>,
    bytes: usize,
    lock: RecursiveRwLock<()>,
}

/// What allocators give without asking. More would cost: an allocator that knows fresh pages
/// to be zero forgets it when asked for more alignment.
const ALIGN: usize = 16;

fn allocation(bytes: usize) -> Option<Allocation> {
    Allocation::from_size_align(bytes.max(1), ALIGN).ok()
}

// SAFETY: the memory is owned, and reached only through `Reading` and `Writing`, which
// hold the lock.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

/// There is not enough host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationFailed {
    /// How much was asked for.
    pub bytes: usize,
}

impl fmt::Display for AllocationFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot allocate {} bytes of host memory", self.bytes)
    }
}

impl std::error::Error for AllocationFailed {}

impl Buffer {
    /// `bytes` of memory, zeroed.
    pub fn new(bytes: usize) -> Result<Buffer, AllocationFailed> {
        let failed = AllocationFailed { bytes };
        let allocation = allocation(bytes).ok_or(failed)?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(allocation) }).ok_or(failed)?;
        Ok(Buffer { start, bytes, lock: RecursiveRwLock::new(()) })
    }

    /// How many bytes there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Where the memory starts: an identity, not to be read through.
    #[inline]
    pub fn address(&self) -> usize {
        self.start.as_ptr() as usize
    }

    /// Waits until nobody writes, then lends the bytes. A thread may read twice at once.
    #[inline]
    pub fn read(&self) -> Reading<'_> {
        Reading { _lock: self.lock.read(), buffer: self }
    }

    /// Waits until nobody reads or writes, then lends the bytes for change.
    #[inline]
    pub fn write(&self) -> Writing<'_> {
        Writing { _lock: self.lock.write(), buffer: self }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let allocation = allocation(self.bytes).expect("`new` made this layout");
        // SAFETY: allocated by `new` with this very layout; views borrow the buffer, so
        // none is left.
        unsafe { alloc::dealloc(self.start.as_ptr(), allocation) };
    }
}

/// The right to read a [`Buffer`]; others may read too.
pub struct Reading<'a> {
    _lock: RecursiveRwLockReadGuard<'a, ()>,
    buffer: &'a Buffer,
}

impl Reading<'_> {
    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: initialised memory of this length, and nobody writes while the shared
        // lock is held.
        unsafe { std::slice::from_raw_parts(self.buffer.start.as_ptr(), self.buffer.bytes) }
    }
}

/// The right to change a [`Buffer`]; nobody else has any right meanwhile.
pub struct Writing<'a> {
    _lock: RecursiveRwLockWriteGuard<'a, ()>,
    buffer: &'a Buffer,
}

impl Writing<'_> {
    /// The bytes.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: initialised memory of this length, and the lock is held exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.buffer.start.as_ptr(), self.buffer.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_shared_by_readers() {
        let buffer = Buffer::new(100).unwrap();
        assert_eq!(buffer.address() % ALIGN, 0);
        let (one, two) = (buffer.read(), buffer.read());
        assert!(one.bytes() == [0; 100] && two.bytes().len() == 100);
    }

    #[test]
    fn a_writer_changes_what_readers_see_next() {
        let buffer = Buffer::new(4).unwrap();
        buffer.write().bytes().copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(buffer.read().bytes(), [1, 2, 3, 4]);
    }

    #[test]
    fn too_much_is_an_error_and_nothing_is_fine() {
        assert_eq!(Buffer::new(usize::MAX).err(), Some(AllocationFailed { bytes: usize::MAX }));
        assert!(Buffer::new(0).unwrap().is_empty());
    }
}
