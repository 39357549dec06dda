//! Blocks of events that one thread fills while others may read.
//!
//! A slot is claimed and published when a call is entered, so events lie in the order
//! they started and a call that never returns is still seen. Its end is the only word
//! written later, and it is atomic. The filling thread never waits: a push writes a
//! slot, then publishes the new length. Blocks never move or grow, so readers need no
//! lock either.
//!
//! Memory that was never touched costs more than the recording itself, so a few blocks are
//! kept for the next session when the last that could see them is gone.
//!
//! What has no fixed size (names made at run time, arguments) lies in an arena beside the
//! slots, written before the event that points into it is published.

#![expect(unsafe_code, reason = "the one place that shares memory while it is being filled")]

use crate::pack::Packer;
use cresset_dispatch::Device;
use cresset_dispatch::memory::Report;
use cresset_dispatch::observe::{Kind, Sequence};
use parking_lot::Mutex;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, OnceLock};

/// Events per block: 64 KiB of slots.
pub(crate) const CAPACITY: usize = 1024;
/// Usual size of an arena; one that must hold more is made larger.
const ARENA: usize = 48 << 10;

/// How many blocks are kept: at most 3.5 MiB with their arenas.
const POOLED: usize = 32;
static POOL: Mutex<Vec<Arc<Chunk>>> = Mutex::new(Vec::new());

/// What is known when an event starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// In [ticks](crate::clock::ticks).
    pub(crate) start: u64,
    pub(crate) what: What,
}

/// A call with a duration, or a report without.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Call(Call),
    Memory(Report),
    /// Bytes that a kernel copied beside its work.
    Copied(u64),
}

/// A call, as far as it has a fixed size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    pub(crate) device: Option<Device>,
    sequence: u64,
    forward_thread: u32,
    details: u32,
}

/// A name that lives as long as the program, or in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Static(&'static str),
    Packed { at: u32, bytes: u32 },
}

const NOTHING: u32 = u32::MAX;

impl Call {
    /// `details` is where the arena holds the arguments.
    pub(crate) fn new(
        id: u64,
        name: Name,
        kind: Kind,
        device: Option<Device>,
        sequence: Option<Sequence>,
        details: Option<u32>,
    ) -> Call {
        let (sequence, forward_thread) = sequence.map_or((u64::MAX, 0), |s| (s.number, s.forward_thread));
        Call { id, name, kind, device, sequence, forward_thread, details: details.unwrap_or(NOTHING) }
    }

    pub(crate) fn sequence(&self) -> Option<Sequence> {
        let link = Sequence { number: self.sequence, forward_thread: self.forward_thread };
        (self.sequence != u64::MAX).then_some(link)
    }

    pub(crate) fn details(&self) -> Option<u32> {
        (self.details != NOTHING).then_some(self.details)
    }
}

/// How a call ended: when, and whether it failed; one word. Ticks leave the highest bit free
/// for a century.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End(u64);

impl End {
    const FAILED: u64 = 1 << 63;
    const OPEN: End = End(0);

    #[inline]
    pub(crate) fn new(ticks: u64, failed: bool) -> End {
        End(ticks & !End::FAILED | if failed { End::FAILED } else { 0 })
    }

    /// In ticks; 0 while the call runs.
    pub(crate) fn ticks(self) -> u64 {
        self.0 & !End::FAILED
    }

    pub(crate) fn failed(self) -> bool {
        self.0 & End::FAILED != 0
    }
}

struct Slot {
    entry: UnsafeCell<MaybeUninit<Entry>>,
    /// An [`End`].
    end: AtomicU64,
}

const _: () = assert!(size_of::<Slot>() == 64, "a slot is one cache line");

/// A block; what is filled can be read at any time.
pub(crate) struct Chunk {
    slots: Box<[Slot]>,
    filled: AtomicUsize,
    /// Made when first needed: with static names and no arguments it never is.
    arena: OnceLock<Box<[AtomicU8]>>,
}

// SAFETY: entries below `filled` are never written again, entries above are touched only
// by the one `Filler`; `filled` is published with Release and read with Acquire. All else
// is atomic.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// An empty block and the right to fill it.
    pub(crate) fn new() -> (Filler, Arc<Chunk>) {
        let used = POOL.lock().pop();
        let chunk = used.unwrap_or_else(|| {
            let slots = Box::new_zeroed_slice(CAPACITY);
            // SAFETY: a slot is an entry that may be uninitialised and an integer.
            let slots: Box<[Slot]> = unsafe { slots.assume_init() };
            Arc::new(Chunk { slots, filled: AtomicUsize::new(0), arena: OnceLock::new() })
        });
        (Filler { chunk: chunk.clone(), next: 0, packed: 0 }, chunk)
    }

    /// Keeps a block for later if nobody else holds it, and there are not enough already.
    pub(crate) fn recycle(mut chunk: Arc<Chunk>) {
        let Some(own) = Arc::get_mut(&mut chunk) else { return };
        *own.filled.get_mut() = 0;
        // One that was made for something huge is not worth keeping.
        if own.arena.get().is_some_and(|arena| arena.len() > ARENA) {
            own.arena = OnceLock::new();
        }
        let mut pool = POOL.lock();
        if pool.len() < POOLED {
            pool.push(chunk);
        }
    }

    /// The events so far, in the order they started, each with its end.
    pub(crate) fn events(&self) -> impl DoubleEndedIterator<Item = (Entry, End)> {
        let filled = self.filled.load(Acquire);
        self.slots[..filled].iter().map(|slot| {
            // SAFETY: this slot is below `filled`: initialised and no longer written.
            let entry = unsafe { (*slot.entry.get()).assume_init() };
            (entry, End(slot.end.load(Relaxed)))
        })
    }

    /// How many events there are so far.
    pub(crate) fn len(&self) -> usize {
        self.filled.load(Relaxed)
    }

    /// Notes that the event in slot `index` ended. Out of range, nothing happens.
    #[inline]
    pub(crate) fn finish(&self, index: usize, end: End) {
        if let Some(slot) = self.slots.get(index) {
            slot.end.store(end.0, Relaxed);
        }
    }

    /// The arena's bytes from `at` on.
    pub(crate) fn bytes(&self, at: u32) -> impl Iterator<Item = u8> {
        let arena = self.arena.get().map_or(&[][..], |arena| arena);
        arena.get(at as usize..).unwrap_or_default().iter().map(|byte| byte.load(Relaxed))
    }
}

/// The right to fill a [`Chunk`]. Not `Clone`: there is one per block.
pub(crate) struct Filler {
    chunk: Arc<Chunk>,
    next: usize,
    packed: usize,
}

/// The arena had no room; a fresh block must have this much.
pub(crate) struct Full {
    pub(crate) needed: usize,
}

impl Filler {
    /// Appends and publishes `entry`. Returns its slot, or `None` when the block is full.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) -> Option<usize> {
        let index = self.next;
        let slot = self.chunk.slots.get(index)?;
        // SAFETY: `next` is not published yet, so no reader looks at this slot, and
        // `&mut self` on the only filler means no one else writes it.
        unsafe { (*slot.entry.get()).write(entry) };
        slot.end.store(End::OPEN.0, Relaxed);
        self.next = index + 1;
        self.chunk.filled.store(self.next, Release);
        Some(index)
    }

    /// Writes to the arena and returns where.
    #[inline]
    pub(crate) fn pack(&mut self, write: impl FnOnce(&mut Packer<'_>)) -> Result<u32, Full> {
        let arena = self.chunk.arena.get_or_init(|| new_arena(ARENA));
        let mut packer = Packer::new(arena.get(self.packed..).unwrap_or_default());
        write(&mut packer);
        let written = packer.written();
        let at = self.packed;
        if at + written > arena.len() {
            return Err(Full { needed: written });
        }
        self.packed = at + written;
        Ok(at as u32)
    }

    /// Makes sure that the arena of an empty block can hold `bytes`. Returns false if it has
    /// one already that cannot.
    pub(crate) fn reserve(&mut self, bytes: usize) -> bool {
        self.chunk.arena.get_or_init(|| new_arena(bytes.max(ARENA))).len() >= bytes
    }

    /// Whether the next push will fail.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.next == CAPACITY
    }

    #[inline]
    pub(crate) fn chunk(&self) -> &Arc<Chunk> {
        &self.chunk
    }
}

#[cold]
fn new_arena(bytes: usize) -> Box<[AtomicU8]> {
    (0..bytes).map(|_| AtomicU8::new(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: u64) -> Entry {
        let call = Call::new(start, Name::Static("op"), Kind::Operator, None, None, None);
        Entry { start, what: What::Call(call) }
    }

    #[test]
    fn readers_see_a_growing_prefix() {
        let (mut filler, chunk) = Chunk::new();
        let reader = std::thread::spawn(move || {
            while chunk.events().count() < CAPACITY {
                assert!(chunk.events().enumerate().all(|(i, (entry, _))| i as u64 == entry.start));
            }
        });
        assert!((0..CAPACITY).all(|i| filler.push(entry(i as u64)) == Some(i)));
        assert!(filler.is_full());
        assert!(filler.push(entry(0)).is_none());
        reader.join().unwrap();
    }

    #[test]
    fn an_open_event_is_seen_and_ends_later() {
        let (mut filler, chunk) = Chunk::new();
        let slot = filler.push(entry(7)).unwrap();
        assert_eq!(chunk.events().map(|(_, end)| end).collect::<Vec<_>>(), [End::OPEN]);
        let end = End::new(9, true);
        chunk.finish(slot, end);
        chunk.finish(CAPACITY, end);
        assert_eq!(
            chunk.events().map(|(_, end)| (end.ticks(), end.failed())).collect::<Vec<_>>(),
            [(9, true)]
        );
    }

    #[test]
    fn a_block_that_somebody_reads_is_not_used_again() {
        let (mut filler, chunk) = Chunk::new();
        filler.push(entry(7)).unwrap();
        drop(filler);
        let reader = chunk.clone();
        Chunk::recycle(chunk);
        let (mut next, _) = Chunk::new();
        next.push(entry(8)).unwrap();
        assert_eq!(reader.events().map(|(entry, _)| entry.start).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn an_arena_that_is_too_small_says_how_much_it_lacks() {
        let (mut filler, chunk) = Chunk::new();
        let at = filler.pack(|packer| packer.raw(b"abc")).ok().unwrap();
        let long = vec![b'x'; ARENA];
        let needed = filler.pack(|packer| packer.raw(&long)).err().unwrap().needed;
        assert_eq!(needed, ARENA);
        assert_eq!(chunk.bytes(at).take(3).collect::<Vec<_>>(), b"abc");
        let (mut fresh, chunk) = Chunk::new();
        assert!(fresh.reserve(ARENA + 1));
        let at = fresh.pack(|packer| packer.raw(&long)).ok().unwrap();
        assert!(chunk.bytes(at).take(ARENA).all(|byte| byte == b'x'));
    }
}
