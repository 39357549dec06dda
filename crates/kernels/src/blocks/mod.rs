//! Blocks of host memory that are used again.
//!
//! Fresh memory is dear: the system clears each page when it is first touched, which takes longer
//! than most kernels need to fill it. So a block that is given up waits for the next request of its
//! size. What waits and what is in use together stay near the most that was ever in use at once.
//!
//! Memory is always initialised, as Rust asks: by the system, by this module, or by whoever had it.

#![expect(unsafe_code, reason = "owns raw memory")]

mod pages;

use parking_lot::Mutex;
use std::alloc::{self, Layout as Allocation};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Alignment of all blocks: a cache line, and the widest vector.
const ALIGN: usize = 64;
/// Smaller blocks come from the allocator each time, which is quick, and are cleared.
const SMALL: usize = 1024;
/// From here on blocks are pages that come from the system, cleared.
const PAGES: usize = 1 << 15;
/// From here on a block that is too large is better than a fresh one.
const LARGE: usize = 1 << 20;
/// What may wait even if little is in use.
const SLACK: usize = 64 << 20;

/// Sizes of blocks: four for every doubling.
const CLASSES: usize = 4 * 48;

static WAITING: [Mutex<Vec<Idle>>; CLASSES] = [const { Mutex::new(Vec::new()) }; CLASSES];
/// Bytes of blocks in use, the most there ever were, and bytes of blocks that wait; without small ones.
static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static IDLE: AtomicUsize = AtomicUsize::new(0);

/// What a new block holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Contents {
    Zero,
    /// Whatever is there.
    Any,
}

impl Contents {
    /// What memory is filled with that holds nothing yet.
    #[inline]
    pub(crate) fn byte(self) -> u8 {
        match self {
            // No number that a kernel computes by chance: tests notice one that does not fill its output.
            Contents::Any if cfg!(debug_assertions) => 0xFF,
            _ => 0,
        }
    }
}

/// Memory of at least the size that was asked for.
pub(crate) struct Block {
    start: NonNull<u8>,
    class: Class,
}

// SAFETY: a block owns its memory, which may be reached from any thread.
unsafe impl Send for Block {}
// SAFETY: as above; what it hands out is a pointer.
unsafe impl Sync for Block {}

/// The start of a block that nobody uses.
struct Idle(NonNull<u8>);

// SAFETY: nobody else knows the memory.
unsafe impl Send for Idle {}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Class {
    number: usize,
    size: usize,
}

impl Class {
    /// The smallest with `bytes`; `None` beyond what can be addressed.
    fn of(bytes: usize) -> Option<Class> {
        let bytes = bytes.max(ALIGN);
        // 2^power < bytes <= 2^(power + 1)
        let power = (bytes - 1).ilog2();
        let step = 1usize << (power - 2);
        let size = bytes.checked_next_multiple_of(step)?;
        let number = (power as usize - 5) * 4 + size / step - 5;
        (number < CLASSES).then_some(Class { number, size })
    }

    /// The next larger one.
    fn next(self) -> Option<Class> {
        Class::of(self.size + 1)
    }

    fn allocation(self) -> Allocation {
        Allocation::from_size_align(self.size, ALIGN).expect("a class is not too large")
    }
}

impl Block {
    /// A block of `bytes`; `None` if there is not enough memory.
    pub(crate) fn new(bytes: usize, contents: Contents) -> Option<Block> {
        let class = Class::of(bytes)?;
        if class.size < SMALL {
            let block = Block { start: fresh(class)?, class };
            block.fill(contents.byte());
            return Some(block);
        }
        if let Some(block) = waiting(class) {
            if contents.byte() != 0 || contents == Contents::Zero {
                block.fill(contents.byte());
            }
            return Some(block);
        }
        let start = fresh(class).or_else(|| {
            release_idle_memory();
            fresh(class)
        })?;
        count_use(class.size);
        let block = Block { start, class };
        if class.size < PAGES || contents.byte() != 0 {
            block.fill(contents.byte());
        }
        Some(block)
    }

    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn fill(&self, byte: u8) {
        // SAFETY: the block owns this memory.
        unsafe { self.start.as_ptr().write_bytes(byte, self.class.size) };
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let size = self.class.size;
        if size < SMALL {
            // SAFETY: `fresh` allocated it as a block of this class.
            return unsafe { give_back(self.start, self.class) };
        }
        USED.fetch_sub(size, Relaxed);
        IDLE.fetch_add(size, Relaxed);
        WAITING[self.class.number].lock().push(Idle(self.start));
        let (used, most) = (USED.load(Relaxed), PEAK.load(Relaxed));
        let room = (most + most / 2 + SLACK).saturating_sub(used);
        if IDLE.load(Relaxed) > room {
            shrink(room, self.class.number);
        }
    }
}

fn count_use(size: usize) {
    let used = USED.fetch_add(size, Relaxed) + size;
    if used > PEAK.load(Relaxed) {
        PEAK.fetch_max(used, Relaxed);
    }
}

/// A block that waits. Large ones may be up to twice as large as asked for: that wastes less than
/// fresh pages cost.
fn waiting(class: Class) -> Option<Block> {
    let tries = if class.size < LARGE { 1 } else { 4 };
    std::iter::successors(Some(class), |class| class.next()).take(tries).find_map(|class| {
        let Idle(start) = WAITING[class.number].lock().pop()?;
        IDLE.fetch_sub(class.size, Relaxed);
        count_use(class.size);
        Some(Block { start, class })
    })
}

/// Gives blocks that wait back to the system until no more than `room` bytes do: large ones first,
/// and those of the class `spared` last, for they were needed just now.
#[cold]
fn shrink(room: usize, spared: usize) {
    let others = (0..CLASSES).rev().filter(|&number| number != spared);
    for number in others.chain([spared]) {
        while IDLE.load(Relaxed) > room {
            let Some(Idle(start)) = WAITING[number].lock().pop() else { break };
            let class = numbered(number);
            IDLE.fetch_sub(class.size, Relaxed);
            // SAFETY: it stood among the blocks of this class, and nobody uses it.
            unsafe { give_back(start, class) };
        }
    }
}

fn numbered(number: usize) -> Class {
    let step = 1 << (number / 4 + 3);
    Class { number, size: (number % 4 + 5) * step }
}

/// Gives all memory back to the system that waits to be used again.
pub fn release_idle_memory() {
    shrink(0, 0);
}

/// Bytes of host memory that wait to be used again.
pub fn idle_memory() -> usize {
    IDLE.load(Relaxed)
}

/// Memory for a block; cleared if it is pages.
fn fresh(class: Class) -> Option<NonNull<u8>> {
    if class.size >= PAGES {
        return pages::map(class.size);
    }
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { alloc::alloc(class.allocation()) })
}

/// # Safety
/// `start` came from `fresh` for the same class, and nobody uses it.
unsafe fn give_back(start: NonNull<u8>, class: Class) {
    if class.size >= PAGES {
        // SAFETY: the caller's promise.
        unsafe { pages::unmap(start, class.size) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { alloc::dealloc(start.as_ptr(), class.allocation()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_close_and_in_order() {
        let mut last = Class { number: 2, size: 0 };
        for bytes in (1..if cfg!(miri) { 2_000 } else { 100_000 }).chain([1 << 30, (1 << 40) + 1]) {
            let class = Class::of(bytes).unwrap();
            assert!(class.size >= bytes && (class.size <= bytes.max(48) * 5 / 4 + 16), "{bytes}: {class:?}");
            assert_eq!(class, numbered(class.number));
            assert!(class == last || class.number > last.number && class.size > last.size);
            last = class;
        }
        assert_eq!(Class::of(usize::MAX), None);
    }

    #[test]
    fn what_is_given_up_is_used_again_and_cleared_if_asked() {
        // A size that no other test has.
        let bytes = 5_000_123;
        let block = Block::new(bytes, Contents::Any).unwrap();
        let start = block.start();
        block.fill(7);
        drop(block);
        let again = Block::new(bytes - 1000, Contents::Zero).unwrap();
        assert_eq!(again.start(), start);
        // SAFETY: the block is as long, and nobody else has it.
        let held = unsafe { std::slice::from_raw_parts(again.start().as_ptr(), bytes - 1000) };
        assert!(held.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn all_blocks_are_aligned_and_too_much_is_refused() {
        for bytes in [0, 1, 100, 1000, 5000, 70_000, 3_000_000] {
            let block = Block::new(bytes, Contents::Zero).unwrap();
            assert_eq!(block.start().as_ptr() as usize % ALIGN, 0);
        }
        assert!(Block::new(usize::MAX, Contents::Any).is_none());
        // Miri has no limit, and would try.
        if !cfg!(miri) {
            assert!(Block::new(1 << 46, Contents::Any).is_none());
        }
    }
}
