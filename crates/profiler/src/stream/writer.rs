//! The thread that writes a session's full blocks to its file.

use super::activity::{BATCH, Batch, Pending, range};
use super::block::Encoder;
use super::{Block, Contents, Streamed, Thread};
use crate::chunk::{Chunk, End};
use crate::clock::Anchor;
use crate::device::Tap;
use crate::error::{Error, Result};
use crate::log::ThreadLog;
use crate::recorder::{self, View};
use cresset_dispatch::activity::Activity;
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How many sessions stream.
static STREAMS: AtomicU32 = AtomicU32::new(0);
/// Counts the rounds of all writers, and wakes them.
static WAKE: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());
/// Wakes threads that wait for a writer.
static DONE: Condvar = Condvar::new();

/// How often devices are asked what they did.
const POLL: Duration = Duration::from_millis(100);

/// Blocks that one thread may be ahead of the file.
const AHEAD: usize = 8;

/// Tells writers that a thread has filled one more of its blocks. One that is far ahead of the file
/// waits for it, so that memory stays bounded.
#[inline]
pub(crate) fn chunk_is_full(log: &ThreadLog) {
    if STREAMS.load(Relaxed) > 0 {
        tell(log);
    }
}

#[cold]
fn tell(log: &ThreadLog) {
    let (lock, wake) = &WAKE;
    let mut rounds = lock.lock();
    wake.notify_all();
    let from = *rounds;
    // Two rounds of writing, or a writer that hangs, are enough to wait for.
    while log.unwritten() > AHEAD && *rounds < from + 2 && STREAMS.load(Relaxed) > 0 {
        if DONE.wait_for(&mut rounds, Duration::from_secs(1)).timed_out() {
            break;
        }
    }
}

/// A session's writer, at work until it is finished or dropped.
pub(crate) struct Writer {
    thread: Option<JoinHandle<Work>>,
    stop: Arc<AtomicU32>,
    path: PathBuf,
}

impl Writer {
    /// Begins to write what `view` and `tap` show to `path`, which must be free: it is removed in the
    /// end.
    pub(crate) fn start(path: &Path, view: View, tap: Option<Arc<Tap>>) -> Result<Writer> {
        let fault = |source| Error::Write { path: path.to_owned(), source };
        let file = File::options().read(true).write(true).create_new(true).open(path).map_err(fault)?;
        let stop = Arc::new(AtomicU32::new(0));
        let work = Work::new(file, view, tap);
        let stopped = stop.clone();
        STREAMS.fetch_add(1, Relaxed);
        let thread =
            std::thread::Builder::new().name("cresset-stream".to_owned()).spawn(move || work.run(&stopped));
        let thread = thread.map_err(|source| {
            STREAMS.fetch_sub(1, Relaxed);
            fault(source)
        })?;
        Ok(Writer { thread: Some(thread), stop, path: path.to_owned() })
    }

    /// Writes the rest, up to `stop`, and the last that devices did. The recording is there also when the
    /// disk was full: up to then.
    pub(crate) fn finish(mut self, stop: Anchor, drained: Vec<Activity>) -> (Option<Streamed>, Result<()>) {
        let Some(mut work) = self.join() else { return (None, Ok(())) };
        work.round(Some(stop.ticks));
        work.activities.add(drained);
        work.write_activities(1);
        let fault = work.fault.take();
        let outcome = fault.map_or(Ok(()), |source| Err(Error::Write { path: self.path.clone(), source }));
        let mut threads: Vec<Thread> = work.threads.into_values().map(|lane| lane.thread).collect();
        threads.sort_by_key(|thread| thread.number);
        let totals = work.encoder.totals();
        let from_zero = work.activities.from_zero;
        let contents = Contents { threads, tables: work.encoder.tables, from_zero, totals, ..work.contents };
        (Some(Streamed::new(work.file, self.path.clone(), contents)), outcome)
    }

    fn join(&mut self) -> Option<Work> {
        let thread = self.thread.take()?;
        self.stop.store(1, Relaxed);
        WAKE.1.notify_all();
        let work = thread.join().ok();
        STREAMS.fetch_sub(1, Relaxed);
        DONE.notify_all();
        work
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.join();
    }
}

/// What the thread works on.
struct Work {
    file: File,
    offset: u64,
    view: View,
    encoder: Encoder,
    threads: HashMap<u32, Lane>,
    tap: Option<Arc<Tap>>,
    activities: Pending,
    polled: Instant,
    /// The batches so far.
    contents: Contents,
    fault: Option<io::Error>,
}

/// A thread, and how far it is written.
struct Lane {
    thread: Thread,
    /// The number of the next block.
    next: u64,
    open: Vec<Unended>,
}

/// A block with calls that had not ended.
struct Unended {
    block: usize,
    chunk: Arc<Chunk>,
    /// Where they are in chunk and block.
    places: Vec<(u32, u32)>,
}

impl Work {
    fn new(file: File, view: View, tap: Option<Arc<Tap>>) -> Work {
        Work {
            file,
            offset: 0,
            view,
            encoder: Encoder::default(),
            threads: HashMap::new(),
            tap,
            activities: Pending::default(),
            polled: Instant::now(),
            contents: Contents::default(),
            fault: None,
        }
    }

    fn run(mut self, stop: &AtomicU32) -> Work {
        let (lock, wake) = &WAKE;
        while stop.load(Relaxed) == 0 {
            self.round(None);
            self.poll();
            let mut rounds = lock.lock();
            *rounds += 1;
            DONE.notify_all();
            if stop.load(Relaxed) == 0 {
                wake.wait_for(&mut rounds, Duration::from_millis(100));
            }
        }
        self
    }

    /// Writes all blocks that are full; at the `stop`, all there are.
    fn round(&mut self, stop: Option<u64>) {
        let mut wrote = false;
        for log in self.view.logs() {
            wrote |= self.log(&log, stop);
        }
        if wrote && stop.is_none() {
            recorder::forget();
        }
    }

    /// Asks devices what they did, and writes it once it is worth it.
    fn poll(&mut self) {
        let Some(tap) = self.tap.as_ref().filter(|_| self.polled.elapsed() >= POLL) else { return };
        let activities = tap.poll();
        self.polled = Instant::now();
        self.activities.add(activities);
        self.write_activities(BATCH);
    }

    /// Writes launches and work, if there are as many as `enough`.
    fn write_activities(&mut self, enough: usize) {
        if self.activities.launches.len() >= enough {
            let launches = std::mem::take(&mut self.activities.launches);
            let batches = self.batches(&launches);
            self.contents.launches.extend(batches);
        }
        if self.activities.work.len() >= enough {
            let work = std::mem::take(&mut self.activities.work);
            let batches = self.batches(&work);
            self.contents.work.extend(batches);
        }
    }

    fn batches(&mut self, activities: &[Activity]) -> Vec<Batch> {
        let mut batches = Vec::new();
        for some in activities.chunks(BATCH) {
            let bytes = self.activities.encode(some, &mut self.encoder.tables);
            let Some(offset) = self.append(&bytes) else { break };
            let starts = range(some.iter().map(|activity| activity.start));
            let correlations = range(some.iter().map(|activity| activity.correlation));
            let (bytes, count) = (bytes.len() as u32, some.len() as u32);
            batches.push(Batch { offset, bytes, count, starts, correlations });
        }
        batches
    }

    /// Where `bytes` are in the file now. What comes after the disk was full is lost, and said to be.
    fn append(&mut self, bytes: &[u8]) -> Option<u64> {
        if self.fault.is_none() {
            self.fault = self.file.write_all(bytes).err();
        }
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        self.fault.is_none().then_some(offset)
    }

    fn log(&mut self, log: &ThreadLog, stop: Option<u64>) -> bool {
        let mut lane = self.threads.remove(&log.number).unwrap_or_else(|| Lane::new(log));
        // Asked first: a thread that has ended fills nothing more.
        lane.thread.exited = log.exited();
        let is_last = stop.is_some() || lane.thread.exited.is_some();
        let mut chunks = log.chunks_from(lane.next);
        let current = if is_last { None } else { chunks.pop() };
        let wrote = !chunks.is_empty();
        for chunk in chunks {
            self.chunk(&mut lane, chunk, stop.unwrap_or(u64::MAX));
            lane.next += 1;
        }
        lane.look_for_ends();
        let next = current.and_then(|chunk| chunk.events().next().map(|(entry, _)| entry.start));
        if let Some(tick) = next.or(lane.thread.exited.map(|_| u64::MAX)) {
            self.view.progress.set(log.number, tick);
            log.written(lane.next);
        }
        self.threads.insert(log.number, lane);
        wrote
    }

    fn chunk(&mut self, lane: &mut Lane, chunk: Arc<Chunk>, stop: u64) {
        let (mut last, mut open) = (0, Vec::new());
        for (place, (entry, end)) in (0..).zip(chunk.events()) {
            if (self.view.start..=stop).contains(&entry.start) {
                if end == End::OPEN && entry.is_call() {
                    open.push((place, self.encoder.events));
                }
                self.encoder.push(&chunk, &entry, end);
                last = entry.start;
            }
        }
        let (events, first) = (self.encoder.events, self.encoder.first);
        let bytes = self.encoder.take();
        if events == 0 {
            return;
        }
        let Some(offset) = self.append(&bytes) else { return };
        let block = Block { offset, bytes: bytes.len() as u32, first, last, events, late: Vec::new() };
        lane.thread.blocks.push(block);
        if !open.is_empty() {
            lane.open.push(Unended { block: lane.thread.blocks.len() - 1, chunk, places: open });
        }
    }
}

impl Lane {
    fn new(log: &ThreadLog) -> Lane {
        let thread = Thread {
            number: log.number,
            tid: log.tid,
            name: log.name.clone(),
            exited: None,
            blocks: Vec::new(),
        };
        Lane { thread, next: log.first_chunk(), open: Vec::new() }
    }

    /// Takes down the ends that have come since.
    fn look_for_ends(&mut self) {
        let blocks = &mut self.thread.blocks;
        self.open.retain_mut(|Unended { block, chunk, places }| {
            let ends: Vec<End> = chunk.events().map(|(_, end)| end).collect();
            places.retain(|&(place, event)| {
                let end = ends.get(place as usize).copied().unwrap_or(End::OPEN);
                if end != End::OPEN {
                    blocks[*block].late.push((event, end));
                }
                end == End::OPEN
            });
            !places.is_empty()
        });
    }
}
