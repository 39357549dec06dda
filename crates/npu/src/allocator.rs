//! Device memory for tensors and workspaces, cached.
//!
//! Asking the library for memory is slow, so it is asked for segments, which [`Blocks`]
//! cuts up. A block that is dropped can be handed out again at once, though the device may
//! still be at work on it: a stream runs in order, so whatever the next owner queues there
//! comes later. That holds on one stream. A block is therefore handed out again on the
//! stream it was made on only; and if work on another stream used it, that stream is made
//! to wait for the other one first (on the device: the host never waits).
//!
//! Segments go back to the library when the cache is emptied, and when memory runs out,
//! always after the device has finished.

use crate::blocks::{Blocks, GRAIN, Id, Pool};
use crate::event::Event;
use crate::memory::Segment;
use crate::status::{self, AclResult};
use crate::stream::{self, Stream};
use crate::{AclError, device};
use cresset_dispatch::memory::{self, Report};
use cresset_tensor::{Cause, DeviceMemory, Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Kernels may read this far beyond a tensor's last full 32 bytes.
const MARGIN: usize = 32;
const MIB: usize = 1 << 20;
/// Requests up to this share segments of 2 MiB.
const SMALL: usize = MIB;
/// Requests up to this share segments of 20 MiB; larger ones get their own.
const MIDDLE: usize = 10 * MIB;

/// What an allocator has done so far. Bytes are those of blocks: requests, rounded up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Bytes handed out and not yet given back.
    pub allocated: usize,
    /// Bytes held, handed out or cached.
    pub reserved: usize,
    /// The most that was ever handed out.
    pub max_allocated: usize,
    /// The most that was ever held.
    pub max_reserved: usize,
    /// How many blocks were handed out.
    pub allocations: u64,
    /// How many of them came back.
    pub frees: u64,
    /// How often the library was asked for memory.
    pub segments: u64,
}

/// The memory of one device.
pub(crate) struct Allocator {
    device: u8,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    blocks: Blocks,
    segments: HashMap<usize, Segment>,
    stats: MemoryStats,
}

static ALLOCATORS: [OnceLock<Allocator>; 256] = [const { OnceLock::new() }; 256];

/// The allocator of a device.
pub(crate) fn of(device: u8) -> &'static Allocator {
    ALLOCATORS[usize::from(device)].get_or_init(|| Allocator { device, state: Mutex::default() })
}

/// The devices that memory was asked of.
pub(crate) fn in_use() -> impl Iterator<Item = u8> {
    let made = ALLOCATORS.iter().filter_map(OnceLock::get);
    made.filter(|allocator| allocator.stats().allocations > 0).map(|allocator| allocator.device)
}

/// Memory on a device; goes back to its allocator on drop.
pub(crate) struct Block {
    id: Option<Id>,
    address: usize,
    /// The stream that it can be handed out on again.
    home: Stream,
    /// Other streams that work on it.
    guests: Mutex<Vec<Stream>>,
}

impl Block {
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Remembers that work on `stream` uses the block.
    #[inline]
    pub(crate) fn used_on(&self, stream: &Stream) {
        if stream.number() != self.home.number() {
            self.add_guest(stream);
        }
    }

    #[cold]
    fn add_guest(&self, stream: &Stream) {
        let mut guests = self.guests.lock();
        if guests.iter().all(|guest| guest.number() != stream.number()) {
            guests.push(stream.clone());
        }
    }
}

impl DeviceMemory for Block {
    fn address(&self) -> usize {
        self.address
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        for guest in self.guests.get_mut().drain(..) {
            status::keep(follow(&self.home, &guest));
        }
        if let Some(id) = self.id {
            of(self.home.device()).give_back(id, self.address);
        }
    }
}

/// Makes later work of `home` wait for the work of `guest` so far.
fn follow(home: &Stream, guest: &Stream) -> AclResult {
    let event = Event::create(home.device())?;
    event.mark(guest)?;
    home.hold(&event)
}

impl Allocator {
    /// Memory for the stream that this thread fills.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Block> {
        let home = stream::current(self.device);
        if bytes == 0 {
            return Ok(Block { id: None, address: 0, home, guests: Mutex::default() });
        }
        let wanted = block_size(bytes).ok_or_else(|| self.out_of_memory(bytes, None))?;
        let pool = Pool { stream: home.number(), small: wanted <= SMALL };
        let mut state = self.state.lock();
        let taken = match state.blocks.take(pool, wanted) {
            Some(taken) => taken,
            None => {
                state = self.grow(state, pool, wanted).map_err(|error| self.no_segment(bytes, error))?;
                state.blocks.take(pool, wanted).expect("a new segment has room for what it was made for")
            }
        };
        state.stats.take(taken.bytes);
        let stats = state.stats;
        drop(state);
        self.report(taken.address, taken.bytes as i64, stats);
        Ok(Block { id: Some(taken.id), address: taken.address, home, guests: Mutex::default() })
    }

    /// Adds a segment for `wanted` bytes; if there is no memory, frees the cache and tries once more.
    fn grow<'a>(
        &'a self,
        mut state: parking_lot::MutexGuard<'a, State>,
        pool: Pool,
        wanted: usize,
    ) -> AclResult<parking_lot::MutexGuard<'a, State>> {
        let mut bytes = segment_size(wanted);
        let segment = match Segment::new(self.device, bytes) {
            Err(error) if error.is_out_of_memory() => {
                state.free_cache(self.device)?;
                match Segment::new(self.device, bytes) {
                    // Room to spare is a luxury now: what was asked for is enough.
                    Err(error) if error.is_out_of_memory() && wanted < bytes => {
                        bytes = wanted;
                        Segment::new(self.device, bytes)?
                    }
                    segment => segment?,
                }
            }
            segment => segment?,
        };
        state.blocks.add(pool, segment.address(), bytes);
        state.segments.insert(segment.address(), segment);
        state.stats.grow(bytes);
        Ok(state)
    }

    fn give_back(&self, id: Id, address: usize) {
        let mut state = self.state.lock();
        let bytes = state.blocks.give_back(id);
        state.stats.give_back(bytes);
        let stats = state.stats;
        drop(state);
        self.report(address, -(bytes as i64), stats);
    }

    /// Gives segments that nothing is used of back to the library.
    pub(crate) fn empty_cache(&self) -> AclResult {
        self.state.lock().free_cache(self.device)
    }

    /// Lets the default stream have the blocks of a stream that has ended.
    pub(crate) fn inherit(&self, stream: usize) {
        self.state.lock().blocks.inherit(stream, 0);
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        self.state.lock().stats
    }

    /// Forgets the highest values seen so far.
    pub(crate) fn reset_peak(&self) {
        let stats = &mut self.state.lock().stats;
        (stats.max_allocated, stats.max_reserved) = (stats.allocated, stats.reserved);
    }

    fn report(&self, address: usize, bytes: i64, stats: MemoryStats) {
        memory::report(|| Report {
            device: device::device(self.device),
            address,
            bytes,
            allocated: stats.allocated as u64,
            reserved: stats.reserved as u64,
        });
    }

    #[cold]
    fn no_segment(&self, asked: usize, error: AclError) -> Error {
        if error.is_out_of_memory() { self.out_of_memory(asked, Some(error)) } else { error.into() }
    }

    #[cold]
    fn out_of_memory(&self, asked: usize, error: Option<AclError>) -> Error {
        let stats = self.stats();
        self.report(0, 0, stats);
        let (free, total) = device::memory(self.device).unwrap_or_default();
        let text = format!(
            "npu:{} is out of memory: asked for {}, {} of {} are free, {} are cached, {} are allocated; \
             use smaller batches, or drop tensors that are no longer needed",
            self.device,
            Bytes(asked),
            Bytes(free),
            Bytes(total),
            Bytes(stats.reserved - stats.allocated),
            Bytes(stats.allocated),
        );
        match error {
            Some(error) => Error::new(Cause::Memory, "", format_args!("{text} ({error})")),
            None => Error::new(Cause::Memory, "", text),
        }
    }
}

impl State {
    /// Waits for the device, whose queued work may still use cached blocks, then frees them.
    fn free_cache(&mut self, device: u8) -> AclResult {
        let finished = device::synchronize(device);
        for (address, bytes) in self.blocks.remove_unused() {
            self.segments.remove(&address);
            self.stats.reserved -= bytes;
        }
        finished
    }
}

impl MemoryStats {
    fn take(&mut self, bytes: usize) {
        self.allocations += 1;
        self.allocated += bytes;
        self.max_allocated = self.max_allocated.max(self.allocated);
    }

    fn give_back(&mut self, bytes: usize) {
        self.frees += 1;
        self.allocated -= bytes;
    }

    fn grow(&mut self, bytes: usize) {
        self.segments += 1;
        self.reserved += bytes;
        self.max_reserved = self.max_reserved.max(self.reserved);
    }
}

/// The block for a request: rounded to 32 bytes, the margin added, rounded to the grain.
fn block_size(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(MARGIN)?.checked_add(MARGIN)?.checked_next_multiple_of(GRAIN)
}

/// The segment to make for a block.
fn segment_size(block: usize) -> usize {
    if block <= SMALL {
        2 * MIB
    } else if block <= MIDDLE {
        20 * MIB
    } else {
        block.saturating_add(2 * MIB - 1) / (2 * MIB) * (2 * MIB)
    }
}

/// A number of bytes, for people to read.
pub(crate) struct Bytes(pub(crate) usize);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            ..1024 => write!(f, "{} B", self.0),
            1024..MIB => write!(f, "{:.1} KiB", bytes / 1024.0),
            MIB..0x4000_0000 => write!(f, "{:.1} MiB", bytes / MIB as f64),
            _ => write!(f, "{:.1} GiB", bytes / 0x4000_0000 as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_room_for_the_margin() {
        assert_eq!([1, 480, 481, 512].map(block_size), [512, 512, 1024, 1024].map(Some));
        assert_eq!(block_size(usize::MAX), None);
        assert_eq!([512, SMALL, SMALL + 1, MIDDLE].map(segment_size), [2, 2, 20, 20].map(|n| n * MIB));
        assert_eq!(segment_size(MIDDLE + 512), 12 * MIB);
    }
}
