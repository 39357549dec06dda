//! A finished recording in a file, and how it comes back.

use super::block::{Decoder, Part, Text, Whole};
use super::{Block, Tables, Thread};
use crate::chunk::{Chunk, End, Entry, Filler, Name, What};
use crate::error::{Error, Result};
use crate::log::ThreadLog;
use crate::stack;
use crate::trace::{Material, Seen, Trace, build};
use parking_lot::Mutex;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;

/// Events in a piece, about: 25 MB of memory.
const PIECE: u64 = 100_000;

/// A recording in a file.
pub(crate) struct Streamed {
    file: Mutex<File>,
    path: PathBuf,
    threads: Vec<Thread>,
    tables: Tables,
    material: Option<Material>,
    /// Stacks are looked up when pieces are read.
    _stacks: Option<stack::Kept>,
}

impl Streamed {
    pub(super) fn new(file: File, path: PathBuf, mut threads: Vec<Thread>, tables: Tables) -> Streamed {
        threads.sort_by_key(|thread| thread.number);
        Streamed { file: Mutex::new(file), path, threads, tables, material: None, _stacks: None }
    }

    /// With everything that is known beside the events.
    pub(crate) fn with(mut self, material: Material) -> Streamed {
        self._stacks = material.wants.stack.then(stack::keep);
        self.material = Some(material);
        self
    }

    pub(crate) fn material_mut(&mut self) -> Option<&mut Material> {
        self.material.as_mut()
    }

    /// All of it at once.
    pub(crate) fn load(&self) -> Result<Trace> {
        let mut context = Context::new(self.threads.len());
        self.piece((0, u64::MAX), &mut context)
    }

    /// One piece after the other; what one needs to know of those before is handed on.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Result<Trace>> {
        let mut context = Context::new(self.threads.len());
        let borders = self.borders();
        (1..borders.len()).map(move |i| self.piece((borders[i - 1], borders[i]), &mut context))
    }

    /// Ticks between which pieces lie: at the starts of steps if there are any, so that what belongs
    /// together stays together.
    fn borders(&self) -> Vec<u64> {
        let mut blocks: Vec<&Block> = self.threads.iter().flat_map(|thread| &thread.blocks).collect();
        blocks.sort_by_key(|block| block.first);
        let steps = self.material.as_ref().map_or(&[][..], |material| &material.steps.starts);
        let mut borders = vec![0];
        let mut events = 0;
        for block in blocks {
            if events >= PIECE {
                let begun = steps.partition_point(|&start| start <= block.first);
                let step = begun.checked_sub(1).map(|i| steps[i]);
                let last = borders.last().copied().unwrap_or(0);
                let border = step.filter(|&start| start > last).unwrap_or(block.first);
                if border > last {
                    borders.push(border);
                    events = 0;
                }
            }
            events += u64::from(block.events);
        }
        borders.push(u64::MAX);
        borders
    }

    fn piece(&self, range: (u64, u64), context: &mut Context) -> Result<Trace> {
        let fault = |source| Error::Read { path: self.path.clone(), source };
        let mut logs = Vec::new();
        for (thread, open) in self.threads.iter().zip(&mut context.open) {
            logs.push(self.replay(thread, range, open).map_err(fault)?);
        }
        let material = self.material.as_ref().ok_or_else(|| fault(io::ErrorKind::NotFound.into()))?;
        let mut trace = build(Material { logs, piece: Some(range), ..material.clone() });
        trace.memory.keep_seen(&mut context.seen);
        Ok(trace)
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
        for block in thread.blocks.iter().filter(|block| block.first < to && block.last >= from) {
            let bytes = self.read(block)?;
            let mut late = block.late.clone();
            late.sort_unstable_by_key(|(place, _)| *place);
            let mut late = late.into_iter().peekable();
            for (place, mut whole) in (0..).zip(Decoder::new(&bytes, &self.tables)) {
                if let Some((_, end)) = late.next_if(|(at, _)| *at == place) {
                    whole.end = end;
                }
                if (from..to).contains(&whole.start) {
                    chunks.push(&whole);
                    if whole.is_open_at(to) {
                        open.push(whole);
                    }
                }
            }
        }
        open.retain(|whole| whole.is_open_at(to));
        let exited = thread.exited.unwrap_or(0);
        Ok(ThreadLog::replayed(thread.number, thread.tid, thread.name.clone(), chunks.chunks, exited))
    }

    fn read(&self, block: &Block) -> io::Result<Vec<u8>> {
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(block.offset))?;
        let mut bytes = vec![0; block.bytes as usize];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

impl Whole {
    fn is_open_at(&self, tick: u64) -> bool {
        matches!(self.what, Part::Call { .. }) && (self.end == End::OPEN || self.end.ticks() > tick)
    }
}

/// Calls that reach from one piece into the next, by thread.
struct Context {
    /// Calls of each thread that go on in the next piece.
    open: Vec<Vec<Whole>>,
    seen: Seen,
}

impl Context {
    fn new(threads: usize) -> Context {
        Context { open: vec![Vec::new(); threads], seen: Seen::default() }
    }
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
