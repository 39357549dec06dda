//! What each thread wrote down: its chunks, and who it is.

use crate::chunk::{Chunk, End, Filler};
use crate::clock;
use crate::host;
use crate::stream;
use cresset_dispatch::thread;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

/// One thread's chunks, oldest first, shared with the sessions that read them.
pub(crate) struct ThreadLog {
    /// The number calls know the thread by.
    pub(crate) number: u32,
    /// The operating system's number.
    pub(crate) tid: u32,
    pub(crate) name: Option<String>,
    chunks: Mutex<Chunks>,
    /// How many chunks a writer is done with.
    written: AtomicU64,
    /// When the thread ended, in ticks; 0 while it lives.
    exited: AtomicU64,
    /// How many sessions asked for this thread in particular.
    wanted: AtomicU32,
}

#[derive(Default)]
struct Chunks {
    /// How many there were before the first.
    before: u64,
    list: Vec<Arc<Chunk>>,
}

static LOGS: Mutex<Vec<Arc<ThreadLog>>> = Mutex::new(Vec::new());

impl ThreadLog {
    fn new() -> Arc<ThreadLog> {
        let log = Arc::new(ThreadLog {
            number: thread::number(),
            tid: host::thread(),
            name: std::thread::current().name().map(str::to_owned),
            chunks: Mutex::default(),
            written: AtomicU64::new(0),
            exited: AtomicU64::new(0),
            wanted: AtomicU32::new(0),
        });
        LOGS.lock().push(log.clone());
        log
    }

    /// A log that comes from a file.
    pub(crate) fn replayed(
        number: u32,
        tid: u32,
        name: Option<String>,
        chunks: Vec<Arc<Chunk>>,
        exited: u64,
    ) -> Arc<ThreadLog> {
        Arc::new(ThreadLog {
            number,
            tid,
            name,
            chunks: Mutex::new(Chunks { before: 0, list: chunks }),
            written: AtomicU64::new(0),
            exited: AtomicU64::new(exited),
            wanted: AtomicU32::new(0),
        })
    }

    /// The thread's chunks so far, oldest first.
    pub(crate) fn chunks(&self) -> Vec<Arc<Chunk>> {
        self.chunks.lock().list.clone()
    }

    /// The chunks from this number on.
    pub(crate) fn chunks_from(&self, number: u64) -> Vec<Arc<Chunk>> {
        let chunks = self.chunks.lock();
        let skipped = number.saturating_sub(chunks.before) as usize;
        chunks.list.get(skipped..).unwrap_or_default().to_vec()
    }

    /// The number of the first chunk that is still there.
    pub(crate) fn first_chunk(&self) -> u64 {
        self.chunks.lock().before
    }

    /// Notes that a writer is done with all chunks before this number.
    pub(crate) fn written(&self, number: u64) {
        self.written.fetch_max(number, Relaxed);
    }

    /// How many full chunks no writer is done with.
    pub(crate) fn unwritten(&self) -> usize {
        let chunks = self.chunks.lock();
        let end = chunks.before + chunks.list.len() as u64;
        end.saturating_sub(self.written.load(Relaxed).max(chunks.before)) as usize
    }

    /// When the thread ended, in ticks.
    pub(crate) fn exited(&self) -> Option<u64> {
        Some(self.exited.load(Acquire)).filter(|&ticks| ticks != 0)
    }

    /// Records this thread for one more session, or for one less.
    pub(crate) fn want(&self, wanted: bool) {
        if wanted {
            self.wanted.fetch_add(1, Relaxed)
        } else {
            self.wanted.fetch_sub(1, Relaxed)
        };
    }

    #[inline]
    fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed) != 0
    }

    /// Frees the chunks in which all events started before `ticks`, but for the one that is
    /// being filled. Returns whether the log itself is still of use.
    fn forget(&self, ticks: u64) -> bool {
        let Chunks { before, list: chunks } = &mut *self.chunks.lock();
        let first = |chunk: &Arc<Chunk>| chunk.events().next().map_or(u64::MAX, |(entry, _)| entry.start);
        let old = (1..chunks.len()).take_while(|&i| first(&chunks[i]) <= ticks).count();
        *before += old as u64;
        chunks.drain(..old).for_each(Chunk::recycle);
        self.exited().is_none_or(|exited| exited >= ticks)
    }
}

/// The logs of all threads that recorded something, in the order they first did.
pub(crate) fn all() -> Vec<Arc<ThreadLog>> {
    LOGS.lock().clone()
}

/// Frees what nobody can see any more, but for the few blocks that are kept for later. `since` tells from when on a log is still looked at.
pub(crate) fn forget(since: impl Fn(&ThreadLog) -> u64) {
    LOGS.lock().retain(|log| log.forget(since(log)));
}

/// This thread's log.
pub(crate) fn mine() -> Arc<ThreadLog> {
    // A thread that is being torn down has no log any more; an empty one does no harm.
    with(|local| local.log().clone()).unwrap_or_else(ThreadLog::new)
}

/// What a thread knows of its own recording. Only that thread touches it.
pub(crate) struct Local {
    log: Option<Arc<ThreadLog>>,
    filler: Option<Filler>,
    /// Counts this thread's chunks; the one being filled has this number.
    chunk: u32,
    /// Calls in the chunk being filled that have not ended.
    open: u32,
    /// Chunks that are full but have calls that have not ended.
    older: Vec<Older>,
}

struct Older {
    number: u32,
    open: u32,
    chunk: Arc<Chunk>,
}

thread_local! {
    static LOCAL: RefCell<Local> =
        const { RefCell::new(Local { log: None, filler: None, chunk: 0, open: 0, older: Vec::new() }) };
}

/// Lends out this thread's recording. `None` while the thread is being torn down, and
/// inside another `with`: what a call does while it describes itself is not recorded.
#[inline]
pub(crate) fn with<R>(body: impl FnOnce(&mut Local) -> R) -> Option<R> {
    LOCAL.try_with(|local| local.try_borrow_mut().ok().map(|mut local| body(&mut local))).ok().flatten()
}

impl Local {
    fn log(&mut self) -> &Arc<ThreadLog> {
        self.log.get_or_insert_with(ThreadLog::new)
    }

    /// Whether a session asked for this thread in particular.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_wanted())
    }

    /// The filler of a chunk with a free slot.
    #[inline]
    pub(crate) fn filler(&mut self) -> &mut Filler {
        if self.filler.as_ref().is_none_or(Filler::is_full) {
            self.renew(0);
        }
        self.filler.as_mut().expect("a chunk is being filled from here on")
    }

    /// Begins a chunk whose arena has room for `arena` bytes.
    #[cold]
    pub(crate) fn renew(&mut self, arena: usize) {
        let (mut filler, mut chunk) = Chunk::new(self.chunk);
        // A block that was used before may have too small an arena: it goes, the next comes.
        while arena > 0 && !filler.reserve(arena) {
            (filler, chunk) = Chunk::new(self.chunk);
        }
        let log = self.log();
        log.chunks.lock().list.push(chunk);
        stream::chunk_is_full(log);
        if let Some(full) = self.filler.replace(filler).filter(|_| self.open > 0) {
            self.older.push(Older { number: self.chunk, open: self.open, chunk: full.chunk().clone() });
        }
        self.chunk = self.chunk.wrapping_add(1);
        self.open = 0;
    }

    /// Counts the call in `slot` as open and returns the token that ends it, never 0.
    #[inline]
    pub(crate) fn opened(&mut self, slot: usize) -> u64 {
        self.open += 1;
        u64::from(self.chunk) << 32 | (slot as u64 + 1)
    }

    /// Ends the call with this token. One whose chunk is gone is left alone.
    #[inline]
    pub(crate) fn finish(&mut self, token: u64, end: End) {
        let (number, slot) = ((token >> 32) as u32, (token as u32 as usize).wrapping_sub(1));
        match &self.filler {
            Some(filler) if number == self.chunk => {
                filler.chunk().finish(slot, end);
                self.open -= 1;
            }
            _ => self.finish_older(number, slot, end),
        }
    }

    #[cold]
    fn finish_older(&mut self, number: u32, slot: usize, end: End) {
        let Some(i) = self.older.iter().rposition(|older| older.number == number) else { return };
        let older = &mut self.older[i];
        older.chunk.finish(slot, end);
        older.open -= 1;
        if older.open == 0 {
            self.older.remove(i);
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            log.exited.store(clock::ticks(), Release);
        }
    }
}
