//! Host memory that many views share and one at a time may change.

#![expect(unsafe_code, reason = "owns raw memory and lends it under a lock")]

use crate::Element;
use crate::blocks::{Block, Contents};
use parking_lot::{RecursiveRwLock, RecursiveRwLockReadGuard, RecursiveRwLockWriteGuard};
use std::alloc::{self, Layout as Allocation};
use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

/// Memory aligned for any element type.
///
/// Tensors alias buffers freely, so a buffer carries its own lock: any number of
/// readers, or one writer. Memory is always initialised, if only by who had it before.
pub struct Buffer {
    memory: Memory,
    bytes: usize,
    lock: RecursiveRwLock<()>,
}

enum Memory {
    /// A few bytes lie in the buffer itself.
    Here(UnsafeCell<[u128; HERE]>),
    Block(Block),
    /// What a vector had allocated so.
    Vector(NonNull<u8>, Allocation),
    /// What somebody else owns.
    Foreign(Box<dyn Foreign>),
}

/// Host memory that somebody else allocated, and may be at work on: a device that reaches it by itself.
///
/// # Safety
/// `start` is the same each time, aligned to 16 bytes, and leads to as many initialised bytes as the
/// buffer is made with, until the value is dropped. Whoever else touches them begins while the buffer is
/// lent for it, and has ended when `settle` returns: who writes in any case, who reads if `to_write`.
pub unsafe trait Foreign: Any + Send + Sync {
    /// Where the memory starts.
    fn start(&self) -> NonNull<u8>;
    /// Waits for others, so that the memory may be read, or written.
    fn settle(&self, to_write: bool);
}

/// How many times 16 bytes lie in the buffer itself.
const HERE: usize = 4;
/// What any element type asks for.
const ALIGN: usize = align_of::<u128>();

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
    pub fn zeroed(bytes: usize) -> Result<Buffer, AllocationFailed> {
        Buffer::holding(bytes, Contents::Zero)
    }

    /// `bytes` of memory that may hold anything: not for truths, which not every byte is.
    #[inline]
    pub fn uninit(bytes: usize) -> Result<Buffer, AllocationFailed> {
        Buffer::holding(bytes, Contents::Any)
    }

    /// So few `bytes`, zeroed, that they lie in the buffer itself; `None` for more.
    #[inline(always)]
    pub fn here(bytes: usize) -> Option<Buffer> {
        let few = bytes <= HERE * size_of::<u128>();
        few.then(|| Buffer::of(Memory::Here(UnsafeCell::new([0; HERE])), bytes))
    }

    #[inline]
    fn holding(bytes: usize, contents: Contents) -> Result<Buffer, AllocationFailed> {
        let memory = if bytes <= HERE * size_of::<u128>() {
            Memory::Here(UnsafeCell::new([u128::from_ne_bytes([contents.byte(); 16]); HERE]))
        } else {
            Memory::Block(Block::new(bytes, contents).ok_or(AllocationFailed { bytes })?)
        };
        Ok(Buffer::of(memory, bytes))
    }

    #[inline(always)]
    fn of(memory: Memory, bytes: usize) -> Buffer {
        Buffer { memory, bytes, lock: RecursiveRwLock::new(()) }
    }

    /// The memory of a vector, not copied.
    ///
    /// # Errors
    /// The vector, if it is not aligned for any element type.
    pub fn from_vec<T: Element>(elements: Vec<T>) -> Result<Buffer, Vec<T>> {
        let mut elements = ManuallyDrop::new(elements);
        // Of the vector and not of its slice: what it gives back is the whole capacity.
        let start = NonNull::new(elements.as_mut_ptr()).expect("a vector points somewhere").cast::<u8>();
        if !start.as_ptr().addr().is_multiple_of(ALIGN) {
            return Err(ManuallyDrop::into_inner(elements));
        }
        let allocation = Allocation::array::<T>(elements.capacity()).expect("the vector was allocated so");
        let bytes = size_of_val(elements.as_slice());
        Ok(Buffer::of(Memory::Vector(start, allocation), bytes))
    }

    /// The first `bytes` of memory that somebody else owns.
    pub fn foreign(memory: Box<dyn Foreign>, bytes: usize) -> Buffer {
        Buffer { memory: Memory::Foreign(memory), bytes, lock: RecursiveRwLock::new(()) }
    }

    /// The owner of the memory, if it is of this type.
    pub fn owner<F: Foreign>(&self) -> Option<&F> {
        match &self.memory {
            Memory::Foreign(memory) => (&**memory as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// Whether somebody else owns the memory.
    pub fn is_foreign(&self) -> bool {
        matches!(self.memory, Memory::Foreign(_))
    }

    #[inline]
    fn settle(&self, to_write: bool) {
        if let Memory::Foreign(memory) = &self.memory {
            memory.settle(to_write);
        }
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

    /// Where the memory starts, as long as the buffer is not moved: an identity, not to be read through.
    #[inline]
    pub fn address(&self) -> usize {
        self.start() as usize
    }

    #[inline]
    fn start(&self) -> *mut u8 {
        match &self.memory {
            Memory::Here(memory) => memory.get().cast(),
            Memory::Block(block) => block.start().as_ptr(),
            Memory::Vector(start, _) => start.as_ptr(),
            Memory::Foreign(memory) => memory.start().as_ptr(),
        }
    }

    /// The bytes of a buffer that nobody else has yet.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.settle(true);
        // SAFETY: initialised memory of this length, borrowed from its only owner.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.bytes) }
    }

    /// Waits until nobody writes, then lends the bytes. A thread may read twice at once.
    #[inline]
    pub fn read(&self) -> Reading<'_> {
        let lock = self.lock.read();
        self.settle(false);
        Reading { _lock: lock, buffer: self }
    }

    /// Waits until nobody reads or writes, then lends the bytes for change.
    #[inline]
    pub fn write(&self) -> Writing<'_> {
        let lock = self.lock.write();
        self.settle(true);
        Writing { _lock: lock, buffer: self }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Memory::Vector(start, allocation) = self.memory
            && allocation.size() > 0
        {
            // SAFETY: allocated by a vector with this very layout; views borrow the buffer, so
            // none is left.
            unsafe { alloc::dealloc(start.as_ptr(), allocation) };
        }
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
        unsafe { std::slice::from_raw_parts(self.buffer.start(), self.buffer.bytes) }
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
        unsafe { std::slice::from_raw_parts_mut(self.buffer.start(), self.buffer.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zeroed_aligned_and_shared_by_readers() {
        let buffer = Buffer::zeroed(100).unwrap();
        assert_eq!(buffer.address() % ALIGN, 0);
        let (one, two) = (buffer.read(), buffer.read());
        assert!(one.bytes() == [0; 100] && two.bytes().len() == 100);
    }

    #[test]
    fn a_writer_changes_what_readers_see_next() {
        let buffer = Buffer::zeroed(4).unwrap();
        buffer.write().bytes().copy_from_slice(&[1, 2, 3, 4]);
        assert_eq!(buffer.read().bytes(), [1, 2, 3, 4]);
    }

    #[test]
    fn a_vector_becomes_a_buffer_where_it_lies() {
        // Allocators align more than floats need; Miri's does so by chance.
        let (address, buffer) = std::iter::repeat_with(|| {
            let mut elements = Vec::with_capacity(1000);
            elements.extend([1.5f32, 2.5]);
            (elements.as_ptr() as usize, Buffer::from_vec(elements))
        })
        .find_map(|(address, buffer)| Some((address, buffer.ok()?)))
        .unwrap();
        assert_eq!((buffer.address(), buffer.len()), (address, 8));
        assert_eq!(buffer.read().bytes()[4..], 2.5f32.to_le_bytes());
        // An empty vector owns nothing, and points nowhere.
        let empty = Buffer::from_vec(Vec::<f64>::new());
        assert!(empty.map_or_else(|vector| vector.is_empty(), |buffer| buffer.is_empty()));
    }

    #[test]
    fn memory_of_others_is_waited_for_before_it_is_lent() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        struct Counted(Box<UnsafeCell<[u128; 2]>>, Arc<[AtomicUsize; 2]>);
        // SAFETY: the memory is reached through the buffer alone.
        unsafe impl Send for Counted {}
        // SAFETY: as above.
        unsafe impl Sync for Counted {}
        // SAFETY: aligned and initialised memory of its own, that nobody else touches.
        unsafe impl Foreign for Counted {
            fn start(&self) -> NonNull<u8> {
                NonNull::from(&*self.0).cast()
            }

            fn settle(&self, to_write: bool) {
                self.1[usize::from(to_write)].fetch_add(1, Relaxed);
            }
        }
        let waits = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let memory = Counted(Box::new(UnsafeCell::new([0; 2])), waits.clone());
        let buffer = Buffer::foreign(Box::new(memory), 20);
        buffer.write().bytes()[19] = 7;
        assert_eq!((buffer.read().bytes()[19], buffer.len()), (7, 20));
        assert_eq!([&waits[0], &waits[1]].map(|count| count.load(Relaxed)), [1, 1]);
        assert!(
            buffer.owner::<Counted>().is_some() && Buffer::zeroed(4).unwrap().owner::<Counted>().is_none()
        );
    }

    #[test]
    fn too_much_is_an_error_and_nothing_is_fine() {
        assert_eq!(Buffer::zeroed(usize::MAX).err(), Some(AllocationFailed { bytes: usize::MAX }));
        assert!(Buffer::zeroed(0).unwrap().is_empty());
    }
}
