//! A finished recording in a file, and how it comes back.

use super::activity::{Batch, decode, range};
use super::block::{Decoder, Part, Text, Whole};
use super::{Contents, Thread};
use crate::chunk::{Chunk, End, Entry, Filler, Name, What};
use crate::error::{Error, Result};
use crate::log::ThreadLog;
use crate::metadata::Metadata;
use crate::stack;
use crate::trace::{Carry, Material, Piece, Trace, build};
use cresset_dispatch::activity::Activity;
use parking_lot::Mutex;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Events in a piece, about: 25 MB of memory.
const PIECE: u64 = 100_000;

/// A recording in a file.
pub(crate) struct Streamed {
    file: Mutex<File>,
    path: PathBuf,
    contents: Contents,
    material: Option<Material>,
    /// All of it, once someone wanted that.
    whole: OnceCell<Trace>,
    /// Stacks are looked up when pieces are read.
    _stacks: Option<stack::Kept>,
}

impl Streamed {
    pub(super) fn new(file: File, path: PathBuf, contents: Contents) -> Streamed {
        let (file, whole) = (Mutex::new(file), OnceCell::new());
        Streamed { file, path, contents, material: None, whole, _stacks: None }
    }

    /// With everything that is known beside the events.
    pub(crate) fn with(mut self, material: Material) -> Streamed {
        self._stacks = material.wants.stack.then(stack::keep);
        self.material = Some(material);
        self
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What users added to its head, as often as it is kept.
    pub(crate) fn metadata(&mut self) -> impl Iterator<Item = &mut Metadata> {
        let whole = self.whole.get_mut().map(|trace| &mut trace.about.metadata);
        self.material.as_mut().map(|material| &mut material.about.metadata).into_iter().chain(whole)
    }

    /// All of it at once.
    pub(crate) fn trace(&self) -> Result<&Trace> {
        if self.whole.get().is_none() {
            let trace = self.piece((0, u64::MAX), self.steps_apart()?, &mut self.context())?;
            // Nobody else can have set it meanwhile.
            let _ = self.whole.set(trace);
        }
        self.whole.get().ok_or_else(|| self.fault(io::ErrorKind::NotFound.into()))
    }

    /// All of it at once, for keeps.
    pub(crate) fn into_trace(mut self) -> Result<Trace> {
        self.trace()?;
        self.whole.take().ok_or_else(|| self.fault(io::ErrorKind::NotFound.into()))
    }

    /// One piece after the other; what one needs to know of those before is handed on.
    pub(crate) fn pieces(&self) -> Result<impl Iterator<Item = Result<Trace>>> {
        let steps_apart = self.steps_apart()?;
        let mut context = self.context();
        let borders = self.borders();
        let count = borders.len();
        let piece = move |i: usize| self.piece((borders[i - 1], borders[i]), steps_apart, &mut context);
        Ok((1..count).map(piece))
    }

    fn fault(&self, source: io::Error) -> Error {
        Error::Read { path: self.path.clone(), source }
    }

    fn context(&self) -> Context {
        let open = vec![Vec::new(); self.contents.threads.len()];
        Context { open, carry: Carry::new(self.contents.totals.iter().copied()) }
    }

    /// Ticks between which pieces lie: at the starts of steps if there are any, so that what belongs
    /// together stays together.
    fn borders(&self) -> Vec<u64> {
        let blocks = self.contents.threads.iter().flat_map(|thread| &thread.blocks);
        let mut parts: Vec<(u64, u32)> = blocks.map(|block| (block.first, block.events)).collect();
        if let Some(scale) = self.material.as_ref().map(Material::scale) {
            let batches = self.contents.launches.iter();
            parts.extend(batches.map(|batch| (scale.ticks(*batch.starts.start()), batch.count)));
        }
        parts.sort_unstable();
        let steps = self.material.as_ref().map_or(&[][..], |material| &material.steps.starts);
        let mut borders = vec![0];
        let mut events = 0;
        for (first, count) in parts {
            if events >= PIECE {
                let begun = steps.partition_point(|&start| start <= first);
                let step = begun.checked_sub(1).map(|i| steps[i]);
                let last = borders.last().copied().unwrap_or(0);
                let border = step.filter(|&start| start > last).unwrap_or(first);
                if border > last {
                    borders.push(border);
                    events = 0;
                }
            }
            events += u64::from(count);
        }
        borders.push(u64::MAX);
        borders
    }

    /// Whether a call lies across the end of a step, so that steps cannot be shown around calls.
    fn steps_apart(&self) -> Result<bool> {
        let Some(material) = self.material.as_ref().filter(|material| material.steps.shown) else {
            return Ok(false);
        };
        let Some(thread) = self.contents.threads.iter().find(|one| one.number == material.steps.thread)
        else {
            return Ok(false);
        };
        let crossing = material.crossing();
        let mut apart = false;
        self.each(thread, (0, u64::MAX), |whole| {
            if let Part::Call { .. } = whole.what {
                apart |= crossing.is_crossed(whole.start, whole.end.ticks());
            }
        })
        .map_err(|source| self.fault(source))?;
        Ok(apart)
    }

    fn piece(&self, range: (u64, u64), steps_apart: bool, context: &mut Context) -> Result<Trace> {
        let fault = |source| self.fault(source);
        let material = self.material.as_ref().ok_or_else(|| fault(io::ErrorKind::NotFound.into()))?;
        let mut logs = Vec::new();
        for (thread, open) in self.contents.threads.iter().zip(&mut context.open) {
            logs.push(self.replay(thread, range, open).map_err(fault)?);
        }
        let scale = material.scale();
        let nanos = |ticks: u64| match ticks {
            0 | u64::MAX => ticks,
            ticks => scale.nanos(ticks),
        };
        let activities = self.activities(nanos(range.0), nanos(range.1)).map_err(fault)?;
        let (from_zero, (from, to)) = (self.contents.from_zero.clone(), range);
        let piece = Some(Piece { from, to, steps_apart, from_zero });
        Ok(build(Material { logs, activities, piece, ..material.clone() }, &mut context.carry))
    }

    /// What was launched from one moment to another, in nanoseconds since 1970, and work of that time
    /// that no known launch caused.
    fn activities(&self, from: u64, to: u64) -> io::Result<Vec<Activity>> {
        let span = from..to;
        let overlaps = |batch: &Batch| *batch.starts.start() < to && *batch.starts.end() >= from;
        let mut activities = Vec::new();
        for batch in self.contents.launches.iter().filter(|batch| overlaps(batch)) {
            let bytes = self.read(batch.offset, batch.bytes)?;
            activities.extend(decode(&bytes, &self.contents.tables).filter(|a| span.contains(&a.start)));
        }
        let launched: HashSet<u64> = activities.iter().map(|launch| launch.correlation).collect();
        let wanted = range(launched.iter().copied());
        let mut strays = Vec::new();
        for batch in self.contents.work.iter().filter(|batch| batch.may_have(&wanted) || overlaps(batch)) {
            let bytes = self.read(batch.offset, batch.bytes)?;
            for work in decode(&bytes, &self.contents.tables) {
                if launched.contains(&work.correlation) {
                    activities.push(work);
                } else if span.contains(&work.start) {
                    strays.push(work);
                }
            }
        }
        self.forget_launched(&mut strays)?;
        activities.append(&mut strays);
        Ok(activities)
    }

    /// Leaves work that no launch in the file caused.
    fn forget_launched(&self, strays: &mut Vec<Activity>) -> io::Result<()> {
        let wanted = range(strays.iter().map(|work| work.correlation));
        for batch in self.contents.launches.iter().filter(|batch| batch.may_have(&wanted)) {
            let bytes = self.read(batch.offset, batch.bytes)?;
            let launched: HashSet<u64> =
                decode(&bytes, &self.contents.tables).map(|launch| launch.correlation).collect();
            strays.retain(|work| !launched.contains(&work.correlation));
        }
        Ok(())
    }

    /// A thread's log as it was, from one tick to another, and after the calls that were `open` then.
    fn replay(
        &self,
        thread: &Thread,
        (from, to): (u64, u64),
        open: &mut Vec<Whole>,
    ) -> io::Result<Arc<ThreadLog>> {
        let mut chunks = Refill::default();
        open.iter().for_each(|whole| chunks.push(whole));
        self.each(thread, (from, to), |whole| {
            chunks.push(&whole);
            if whole.is_open_at(to) {
                open.push(whole);
            }
        })?;
        open.retain(|whole| whole.is_open_at(to));
        let exited = thread.exited.unwrap_or(0);
        Ok(ThreadLog::replayed(thread.number, thread.tid, thread.name.clone(), chunks.chunks, exited))
    }

    /// Visits the events of a thread that began from one tick to another.
    fn each(&self, thread: &Thread, (from, to): (u64, u64), mut visit: impl FnMut(Whole)) -> io::Result<()> {
        for block in thread.blocks.iter().filter(|block| block.first < to && block.last >= from) {
            let bytes = self.read(block.offset, block.bytes)?;
            let mut late = block.late.clone();
            late.sort_unstable_by_key(|(place, _)| *place);
            let mut late = late.into_iter().peekable();
            for (place, mut whole) in (0..).zip(Decoder::new(&bytes, &self.contents.tables)) {
                if let Some((_, end)) = late.next_if(|(at, _)| *at == place) {
                    whole.end = end;
                }
                if (from..to).contains(&whole.start) {
                    visit(whole);
                }
            }
        }
        Ok(())
    }

    fn read(&self, offset: u64, length: u32) -> io::Result<Vec<u8>> {
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; length as usize];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Whole {
    fn is_open_at(&self, tick: u64) -> bool {
        matches!(self.what, Part::Call { .. }) && (self.end == End::OPEN || self.end.ticks() > tick)
    }
}

/// What is handed from one piece to the next.
struct Context {
    /// Calls of each thread that go on in the next piece.
    open: Vec<Vec<Whole>>,
    carry: Carry,
}

/// Fills chunks with events that come from a file.
#[derive(Default)]
struct Refill {
    chunks: Vec<Arc<Chunk>>,
    filler: Option<Filler>,
}

impl Refill {
    fn push(&mut self, whole: &Whole) {
        let mut arena = 0;
        loop {
            if self.filler.as_ref().is_none_or(Filler::is_full) || arena > 0 {
                let (mut filler, mut chunk) = Chunk::new(self.chunks.len() as u32);
                while arena > 0 && !filler.reserve(arena) {
                    (filler, chunk) = Chunk::new(self.chunks.len() as u32);
                }
                self.filler = Some(filler);
                self.chunks.push(chunk);
            }
            let Some(filler) = &mut self.filler else { return };
            match place(filler, whole) {
                Ok(what) => {
                    if let Some(slot) = filler.push(Entry { start: whole.start, what }) {
                        filler.chunk().finish(slot, whole.end);
                    }
                    return;
                }
                Err(needed) => arena += needed,
            }
        }
    }
}

fn place(filler: &mut Filler, whole: &Whole) -> std::result::Result<What, usize> {
    let (call, name, details) = match &whole.what {
        Part::Other(what) => return Ok(*what),
        Part::Call { call, name, details } => (call, name, details),
    };
    let mut pack = |bytes: &[u8]| filler.pack(|packer| packer.raw(bytes)).map_err(|full| full.needed);
    let name = match name {
        Text::Static(name) => Name::Static(name),
        Text::Own(bytes) => Name::Packed { at: pack(bytes)?, bytes: bytes.len() as u32 },
    };
    let details = details.as_deref().map(pack).transpose()?;
    Ok(What::Call(call.with(name, details)))
}

impl Drop for Streamed {
    fn drop(&mut self) {
        // The file is the session's own: what is to be kept is exported.
        let _ = std::fs::remove_file(&self.path);
    }
}
