//! Device memory for tensors and workspaces, cached.
//!
//! Asking the library for memory is slow, so it is asked for segments, which [`blocks`]
//! cuts up. A block that is dropped can be handed out again at once, though the device may
//! still be at work on it: a stream runs in order, so whatever the next owner queues there
//! comes later. That holds on one stream. A block is therefore handed out again on the
//! stream it was made on only; and if work on other streams used it, not before these are
//! past it ([`pending`]).
//!
//! Segments go back to the library when the cache is emptied, and when memory runs out,
//! always after the device has finished.

mod block;
mod blocks;
mod free;
mod pending;
mod snapshot;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use block::Block;
pub use snapshot::{BlockState, MemoryBlock, MemorySegment};
pub use stats::{MemoryStats, Pools, Stat};

use crate::AclError;
use crate::device;
use crate::memory::Segment;
use crate::status::AclResult;
use crate::stream::{self, Stream};
use blocks::{Blocks, GRAIN, Id, Pool, Taken};
use cresset_dispatch::memory::{self, Report};
use cresset_tensor::{Cause, Error, Result};
use free::SMALL_SEGMENT;
use parking_lot::Mutex;
use pending::Pending;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Kernels may read this far beyond a tensor's last full 32 bytes.
const MARGIN: usize = 32;
const MIB: usize = 1 << 20;
/// Requests up to this share segments of [`SMALL_SEGMENT`].
const SMALL: usize = MIB;
/// Requests up to this share segments of 20 MiB; larger ones get their own.
const MIDDLE: usize = 10 * MIB;

/// The memory of one device.
pub(crate) struct Allocator {
    device: u8,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    blocks: Blocks,
    segments: HashMap<usize, Segment>,
    pending: Pending,
    /// The most bytes that may be held.
    limit: Option<usize>,
}

/// Why there is no more memory.
enum Refused {
    /// The library has none, or failed.
    Library(AclError),
    /// It would be more than this process may have.
    Limit,
}

impl Refused {
    fn is_out_of_memory(&self) -> bool {
        match self {
            Refused::Library(error) => error.is_out_of_memory(),
            Refused::Limit => true,
        }
    }
}

impl From<AclError> for Refused {
    fn from(error: AclError) -> Refused {
        Refused::Library(error)
    }
}

static ALLOCATORS: [OnceLock<Allocator>; 256] = [const { OnceLock::new() }; 256];

/// The allocator of a device.
pub(crate) fn of(device: u8) -> &'static Allocator {
    ALLOCATORS[usize::from(device)].get_or_init(|| Allocator { device, state: Mutex::default() })
}

/// The devices that memory was asked of.
pub(crate) fn in_use() -> impl Iterator<Item = u8> {
    let made = ALLOCATORS.iter().filter_map(OnceLock::get);
    made.filter(|allocator| allocator.stats().num_device_alloc > 0).map(|allocator| allocator.device)
}

impl Allocator {
    /// Memory for the stream that this thread fills.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Block> {
        let home = stream::current(self.device)?;
        if bytes == 0 {
            return Ok(Block::empty(home));
        }
        let wanted = block_size(bytes).ok_or_else(|| self.out_of_memory(bytes, None))?;
        let pool = Pool { stream: home.number(), small: wanted <= SMALL };
        let mut state = self.state.lock();
        if !state.pending.is_empty() {
            state.reclaim()?;
        }
        let taken = match state.blocks.take(pool, wanted, bytes) {
            Some(taken) => taken,
            None => match self.grown(&mut state, pool, wanted, bytes) {
                Ok(taken) => taken,
                Err(refused) => {
                    drop(state);
                    return Err(self.refused(bytes, refused));
                }
            },
        };
        let totals = state.totals();
        drop(state);
        self.report(taken.address, taken.bytes as i64, totals);
        Ok(Block::new(taken.id, taken.address, home))
    }

    /// A block of a new segment, or of what can be had by freeing the cache.
    #[cold]
    fn grown(
        &self,
        state: &mut State,
        pool: Pool,
        wanted: usize,
        requested: usize,
    ) -> Result<Taken, Refused> {
        let bytes = segment_size(wanted);
        let first = match state.add_segment(self.device, pool, bytes) {
            Ok(()) => return Ok(state.take_new(pool, wanted, requested)),
            Err(error) if error.is_out_of_memory() => error,
            Err(error) => return Err(error),
        };
        state.blocks.counters.0.num_alloc_retries += 1;
        state.free_cache(self.device)?;
        if let Some(taken) = state.blocks.take(pool, wanted, requested) {
            return Ok(taken);
        }
        // Room to spare is a luxury now: what was asked for is enough.
        for bytes in [bytes, wanted] {
            match state.add_segment(self.device, pool, bytes) {
                Ok(()) => return Ok(state.take_new(pool, wanted, requested)),
                Err(error) if error.is_out_of_memory() => {}
                Err(error) => return Err(error),
            }
        }
        state.blocks.counters.0.num_ooms += 1;
        Err(first)
    }

    /// Takes back a block that only its own stream has used.
    fn give_back(&self, id: Id, address: usize) {
        let mut state = self.state.lock();
        let bytes = state.blocks.give_back(id);
        let totals = state.totals();
        drop(state);
        self.report(address, -(bytes as i64), totals);
    }

    /// Takes back a block that these streams have used too.
    fn park(&self, id: Id, address: usize, guests: &[Stream]) -> AclResult {
        let mut state = self.state.lock();
        let bytes = state.blocks.park(id);
        let parked = state.pending.add(self.device, id, guests);
        let totals = state.totals();
        drop(state);
        self.report(address, -(bytes as i64), totals);
        parked
    }

    /// Gives segments that nothing is used of back to the library.
    pub(crate) fn empty_cache(&self) -> AclResult {
        self.state.lock().free_cache(self.device)
    }

    /// Lets the default stream have the blocks of a stream that has ended.
    pub(crate) fn inherit(&self, stream: usize, to: usize) {
        self.state.lock().blocks.inherit(stream, to);
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        self.state.lock().blocks.counters.0
    }

    pub(crate) fn reset_peak(&self) {
        self.state.lock().blocks.counters.reset_peak();
    }

    pub(crate) fn reset_accumulated(&self) {
        self.state.lock().blocks.counters.reset_accumulated();
    }

    /// The most bytes to hold from now on.
    pub(crate) fn set_limit(&self, limit: Option<usize>) {
        self.state.lock().limit = limit;
    }

    fn report(&self, address: usize, bytes: i64, (allocated, reserved): (u64, u64)) {
        memory::report(|| Report {
            device: device::device(self.device),
            address,
            bytes,
            allocated,
            reserved,
        });
    }

    #[cold]
    fn refused(&self, asked: usize, refused: Refused) -> Error {
        match refused {
            Refused::Library(error) if !error.is_out_of_memory() => error.into(),
            Refused::Library(error) => self.out_of_memory(asked, Some(error)),
            Refused::Limit => self.out_of_memory(asked, None),
        }
    }

    #[cold]
    fn out_of_memory(&self, asked: usize, error: Option<AclError>) -> Error {
        let (stats, limit, largest, totals) = {
            let state = self.state.lock();
            (state.blocks.counters.0, state.limit, state.blocks.largest_free(), state.totals())
        };
        self.report(0, 0, totals);
        let (free, total) = device::memory(self.device).unwrap_or_default();
        let bytes = |number: u64| Bytes(number as usize);
        let (allocated, reserved) = (stats.allocated_bytes.all.current, stats.reserved_bytes.all.current);
        let limit = limit.map_or_else(String::new, |limit| format!(" of a limit of {}", Bytes(limit)));
        let text = format!(
            "npu:{} is out of memory: asked for {}, {} of {} are free, {} are cached with {} in one piece, \
             {} are allocated{limit}; use smaller batches, or drop tensors that are no longer needed",
            self.device,
            Bytes(asked),
            Bytes(free),
            Bytes(total),
            bytes(reserved - allocated),
            Bytes(largest),
            bytes(allocated),
        );
        match error {
            Some(error) => Error::new(Cause::Memory, "", format_args!("{text} ({error})")),
            None => Error::new(Cause::Memory, "", text),
        }
    }
}

impl State {
    fn totals(&self) -> (u64, u64) {
        let stats = &self.blocks.counters.0;
        (stats.allocated_bytes.all.current, stats.reserved_bytes.all.current)
    }

    fn take_new(&mut self, pool: Pool, wanted: usize, requested: usize) -> Taken {
        let taken = self.blocks.take(pool, wanted, requested);
        taken.expect("a new segment has room for what it was made for")
    }

    fn add_segment(&mut self, device: u8, pool: Pool, bytes: usize) -> Result<(), Refused> {
        let (_, reserved) = self.totals();
        if self.limit.is_some_and(|limit| (reserved as usize).saturating_add(bytes) > limit) {
            return Err(Refused::Limit);
        }
        let segment = Segment::new(device, bytes)?;
        self.blocks.add(pool, segment.address(), bytes);
        self.segments.insert(segment.address(), segment);
        Ok(())
    }

    /// Frees blocks that streams are done with.
    fn reclaim(&mut self) -> AclResult {
        let State { blocks, pending, .. } = self;
        pending.take_done(|id| blocks.free(id))
    }

    /// Waits for the device, whose queued work may still use cached blocks, then frees them.
    fn free_cache(&mut self, device: u8) -> AclResult {
        self.blocks.counters.0.num_sync_all_streams += 1;
        let finished = device::synchronize(device);
        self.reclaim()?;
        for (address, _) in self.blocks.remove_unused() {
            self.segments.remove(&address);
        }
        finished
    }
}

/// The block for a request: rounded to 32 bytes, the margin added, rounded to the grain.
fn block_size(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(MARGIN)?.checked_add(MARGIN)?.checked_next_multiple_of(GRAIN)
}

/// The segment to make for a block.
fn segment_size(block: usize) -> usize {
    if block <= SMALL {
        SMALL_SEGMENT
    } else if block < MIDDLE {
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
