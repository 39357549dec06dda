//! Blocks of events that one thread fills while others may read.
//!
//! A slot is claimed and published when a call is entered, so events lie in the order
//! they started and a call that never returns is still seen. Its end is the only word
//! written later, and it is atomic. The filling thread never waits: a push writes a
//! slot, then publishes the new length ([`slots`](crate::slots)). Blocks never move or grow, so
//! readers need no lock either.
//!
//! Memory that was never touched costs as much as the recording itself. So a thread that records
//! much gets blocks of whole huge pages, which are touched before the clock is read; and a few
//! blocks are kept for the next session when the last that could see them is gone.
//!
//! What has no fixed size (names made at run time, arguments) lies in an [`arena`](crate::arena)
//! beside the slots, written before the event that points into it is published.

#![expect(unsafe_code, reason = "shares memory while it is being filled")]

use crate::arena::Arena;
use crate::pack::Packer;
use crate::region::{HUGE, Region};
use crate::slots::{Slot, Slots};
use cresset_dispatch::Device;
use cresset_dispatch::memory::Report;
use cresset_dispatch::observe::{Kind, Sequence};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// Events in a thread's first block, its second, and all others: 64 KiB, 256 KiB, a huge page.
const CAPACITIES: [usize; 3] = [1024, 4096, HUGE / size_of::<Slot<Entry>>()];
/// Usual bytes of an arena per event; one that must hold more is made larger.
const ARENA: usize = 48;

/// How many events the blocks that are kept can hold: 8 MiB of slots, and as much of arenas.
const POOLED: usize = 4 * CAPACITIES[2];
static POOL: Mutex<Vec<Arc<Chunk>>> = Mutex::new(Vec::new());

/// What is known when an event starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// In [ticks](crate::clock::ticks).
    pub(crate) start: u64,
    pub(crate) what: What,
}

impl Entry {
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.what, What::Call(_))
    }
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

    /// The same call with another name and other details.
    pub(crate) fn with(self, name: Name, details: Option<u32>) -> Call {
        Call { name, details: details.unwrap_or(NOTHING), ..self }
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
    /// It has not ended.
    pub(crate) const OPEN: End = End(0);

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

const _: () = assert!(size_of::<Slot<Entry>>() == 64, "a slot is one cache line");

/// A block; what is filled can be read at any time.
pub(crate) struct Chunk {
    slots: Slots<Entry>,
    /// Made when first needed: with static names and no arguments it never is.
    arena: OnceLock<Arena>,
}

impl Chunk {
    /// An empty block and the right to fill it; `number` counts those that a thread had before.
    pub(crate) fn new(number: u32) -> (Filler, Arc<Chunk>) {
        let capacity = CAPACITIES[CAPACITIES.len().min(number as usize + 1) - 1];
        let mut pool = POOL.lock();
        let used = pool.iter().rposition(|chunk| chunk.slots.capacity() == capacity);
        let used = used.map(|at| pool.swap_remove(at));
        drop(pool);
        let chunk = used.unwrap_or_else(|| {
            // SAFETY: a slot is an entry that may be uninitialised and an integer.
            let slots = Slots::new(unsafe { Region::zeroed(capacity) });
            // The first touch takes long: not while a call is being timed.
            slots.end(0, End::OPEN.0);
            Arc::new(Chunk { slots, arena: OnceLock::new() })
        });
        (Filler { chunk: chunk.clone(), next: 0, packed: 0 }, chunk)
    }

    /// Keeps a block for later if nobody else holds it, and there are not enough already.
    pub(crate) fn recycle(mut chunk: Arc<Chunk>) {
        let Some(own) = Arc::get_mut(&mut chunk) else { return };
        own.slots.clear();
        let usual = own.arena_size();
        match own.arena.get_mut() {
            // One that was made for something huge is not worth keeping.
            Some(arena) if arena.len() > usual => own.arena = OnceLock::new(),
            Some(arena) => arena.clear(),
            None => {}
        }
        let mut pool = POOL.lock();
        let kept: usize = pool.iter().map(|chunk| chunk.slots.capacity()).sum();
        if kept + chunk.slots.capacity() <= POOLED {
            pool.push(chunk);
        }
    }

    /// The events so far, in the order they started, each with its end.
    pub(crate) fn events(&self) -> impl DoubleEndedIterator<Item = (Entry, End)> {
        self.slots.iter().map(|(entry, end)| (entry, End(end)))
    }

    /// How many events there are so far.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Notes that the event in slot `index` ended. Out of range, nothing happens.
    #[inline]
    pub(crate) fn finish(&self, index: usize, end: End) {
        self.slots.end(index, end.0);
    }

    /// The packed record at `at`, its length before it.
    pub(crate) fn packed(&self, at: u32) -> &[u8] {
        let bytes = self.bytes(at);
        let length = bytes.first_chunk().map_or(0, |&head| u32::from_le_bytes(head)) as usize;
        bytes.get(..4 + length).unwrap_or(bytes)
    }

    #[inline]
    fn arena(&self) -> &Arena {
        self.arena.get_or_init(|| Arena::new(self.arena_size()))
    }

    /// What an arena has room for, if nothing asks for more.
    fn arena_size(&self) -> usize {
        ARENA * self.slots.capacity()
    }

    /// The arena's bytes from `at` on.
    pub(crate) fn bytes(&self, at: u32) -> &[u8] {
        self.arena.get().map_or(&[], |arena| arena.published(at as usize))
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
        // SAFETY: this is the only filler, and it has filled all slots before this one.
        let pushed = unsafe { self.chunk.slots.push(index, entry) };
        self.next += usize::from(pushed);
        pushed.then_some(index)
    }

    /// Writes to the arena and returns where.
    #[inline]
    pub(crate) fn pack(&mut self, write: impl FnOnce(&mut Packer<'_>)) -> Result<u32, Full> {
        let (arena, at) = (self.chunk.arena(), self.packed);
        // SAFETY: this is the only filler, and it has published nothing from `at` on.
        let mut packer = Packer::new(unsafe { arena.free(at) });
        write(&mut packer);
        let written = packer.written();
        if at + written > arena.len() {
            return Err(Full { needed: written });
        }
        self.packed = at + written;
        arena.publish(self.packed);
        Ok(at as u32)
    }

    /// Makes sure that the arena of an empty block can hold `bytes`. Returns false if it has
    /// one already that cannot.
    pub(crate) fn reserve(&mut self, bytes: usize) -> bool {
        self.chunk.arena.get_or_init(|| Arena::new(bytes.max(self.chunk.arena_size()))).len() >= bytes
    }

    /// Whether the next push will fail.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.next == self.chunk.slots.capacity()
    }

    #[inline]
    pub(crate) fn chunk(&self) -> &Arc<Chunk> {
        &self.chunk
    }
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
        let (mut filler, chunk) = Chunk::new(0);
        let reader = std::thread::spawn(move || {
            while chunk.events().count() < CAPACITIES[0] {
                assert!(chunk.events().enumerate().all(|(i, (entry, _))| i as u64 == entry.start));
            }
        });
        assert!((0..CAPACITIES[0]).all(|i| filler.push(entry(i as u64)) == Some(i)));
        assert!(filler.is_full());
        assert!(filler.push(entry(0)).is_none());
        reader.join().unwrap();
    }

    #[test]
    fn an_open_event_is_seen_and_ends_later() {
        let (mut filler, chunk) = Chunk::new(0);
        let slot = filler.push(entry(7)).unwrap();
        assert_eq!(chunk.events().map(|(_, end)| end).collect::<Vec<_>>(), [End::OPEN]);
        let end = End::new(9, true);
        chunk.finish(slot, end);
        chunk.finish(CAPACITIES[0], end);
        assert_eq!(
            chunk.events().map(|(_, end)| (end.ticks(), end.failed())).collect::<Vec<_>>(),
            [(9, true)]
        );
    }

    #[test]
    fn a_block_that_somebody_reads_is_not_used_again() {
        let (mut filler, chunk) = Chunk::new(0);
        filler.push(entry(7)).unwrap();
        drop(filler);
        let reader = chunk.clone();
        Chunk::recycle(chunk);
        let (mut next, _) = Chunk::new(0);
        next.push(entry(8)).unwrap();
        assert_eq!(reader.events().map(|(entry, _)| entry.start).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn an_arena_that_is_too_small_says_how_much_it_lacks() {
        let (mut filler, chunk) = Chunk::new(0);
        let at = filler.pack(|packer| packer.raw(b"abc")).ok().unwrap();
        let long = vec![b'x'; ARENA * CAPACITIES[0]];
        let needed = filler.pack(|packer| packer.raw(&long)).err().unwrap().needed;
        assert_eq!(needed, long.len());
        assert_eq!(chunk.bytes(at), b"abc");
        let (mut fresh, chunk) = Chunk::new(0);
        assert!(fresh.reserve(long.len() + 1));
        let at = fresh.pack(|packer| packer.raw(&long)).ok().unwrap();
        assert_eq!(chunk.bytes(at), long);
    }
}
