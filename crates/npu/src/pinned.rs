//! Host memory that devices reach by themselves, cached.
//!
//! A copy between such memory and a device goes on while the host does other things. The memory
//! remembers the copies under way: whoever reads it waits for those that write it, whoever writes it
//! waits for all. A block that is given up with copies under way waits in the cache for them.

use crate::device;
use crate::event::{self, Event};
use crate::status::{self, AclResult};
use crate::stream::Stream;
use crate::sys::call;
use cresset_tensor::backend::Foreign;
use parking_lot::Mutex;
use std::ffi::c_void;
use std::ptr::{self, NonNull};

/// A block of host memory from the library, of some power of two of bytes.
pub(crate) struct Pinned {
    start: NonNull<u8>,
    class: u32,
    under_way: Mutex<UnderWay>,
}

/// Copies that may still be under way, by the points in streams behind them.
#[derive(Default)]
struct UnderWay {
    /// To devices.
    reads: Vec<Event>,
    /// From devices.
    writes: Vec<Event>,
}

// SAFETY: the memory is reached through a buffer, which locks it, or by devices between calls of `settle`.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

/// The smallest blocks have this many bytes, as a power of two.
const LEAST: u32 = 9;

/// Blocks that nobody has, by the power of two of their size.
static CACHE: Mutex<Vec<Pinned>> = Mutex::new(Vec::new());

impl Pinned {
    /// A block of at least so many bytes, contents undefined, that `device` is known to reach.
    pub(crate) fn new(bytes: usize, device: u8) -> AclResult<Pinned> {
        let class = bytes.max(1).next_power_of_two().ilog2().max(LEAST);
        if let Some(cached) = Pinned::cached(class) {
            return Ok(cached);
        }
        match Pinned::from_library(class, device) {
            Err(_) if Pinned::empty_cache() => Pinned::from_library(class, device),
            made => made,
        }
    }

    /// A block of the cache with no copies under way. One whose device was lost stays where it is.
    fn cached(class: u32) -> Option<Pinned> {
        let mut cache = CACHE.lock();
        let is_free = |block: &Pinned| block.class == class && block.is_settled().unwrap_or(false);
        let at = cache.iter().position(is_free)?;
        Some(cache.swap_remove(at))
    }

    fn from_library(class: u32, device: u8) -> AclResult<Pinned> {
        device::bind(device)?;
        let mut start = ptr::null_mut();
        // SAFETY: the result has a place.
        unsafe { call!(aclrtMallocHost(&mut start, 1usize << class)) }?;
        let start = NonNull::new(start.cast()).expect("memory that was given is somewhere");
        Ok(Pinned { start, class, under_way: Mutex::default() })
    }

    /// Gives the blocks that nobody has back to the library. False if there are none.
    fn empty_cache() -> bool {
        let blocks = std::mem::take(&mut *CACHE.lock());
        let any = !blocks.is_empty();
        for block in blocks {
            block.settle(true);
            block.free();
        }
        any
    }

    fn free(self) {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: allocated by `from_library`, with no copies under way, and freed once: it is not dropped.
        status::keep(unsafe { call!(aclrtFreeHost(this.start.as_ptr().cast::<c_void>())) });
    }

    fn is_settled(&self) -> AclResult<bool> {
        let mut under_way = self.under_way.lock();
        let UnderWay { reads, writes } = &mut *under_way;
        for events in [reads, writes] {
            while let Some(event) = events.last() {
                if !event.is_reached()? {
                    return Ok(false);
                }
                events.pop().into_iter().for_each(event::spare);
            }
        }
        Ok(true)
    }

    /// Remembers that `stream` was given a copy from this memory, or `to` it.
    pub(crate) fn used_by(&self, stream: &Stream, is_written: bool) -> AclResult {
        let event = event::untimed(stream.device_index())?;
        event.mark(stream)?;
        let mut under_way = self.under_way.lock();
        if is_written {
            under_way.writes.push(event)
        } else {
            under_way.reads.push(event)
        }
        Ok(())
    }

    pub(crate) fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

// SAFETY: the library aligns memory to 64 bytes and keeps it until it is freed, which waits until no copy
// is under way; every copy is known to `settle` before the buffer is lent again. What the library gives
// counts as initialised, as all that comes from outside of Rust.
unsafe impl Foreign for Pinned {
    fn start(&self) -> NonNull<u8> {
        self.start
    }

    fn settle(&self, to_write: bool) {
        if device::is_forked() {
            return;
        }
        let mut under_way = self.under_way.lock();
        let UnderWay { reads, writes } = &mut *under_way;
        let waited = if to_write { [Some(writes), Some(reads)] } else { [Some(writes), None] };
        for event in waited.into_iter().flatten().flat_map(|events| events.drain(..)) {
            status::keep(event.reach());
            event::spare(event);
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let under_way = std::mem::take(self.under_way.get_mut());
        let kept = Pinned { start: self.start, class: self.class, under_way: Mutex::new(under_way) };
        if device::is_forked() {
            return std::mem::forget(kept);
        }
        CACHE.lock().push(kept);
    }
}
