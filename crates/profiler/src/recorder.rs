//! The observer and the listener: one stream of events, on which sessions are windows.
//!
//! What is recorded is the union of what the open windows want; each takes from it what
//! it asked for. So any number of sessions can be alive at once, and none disturbs another.

use crate::chunk::{Call as CallEntry, End, Entry, Filler, Full, Name, What};
use crate::clock::{self, Anchor};
use crate::error::{Error, Result};
use crate::log::{self, Local, ThreadLog};
use crate::stack;
use cresset_dispatch::memory::{self, Listener, Report};
use cresset_dispatch::observe::{self, Call, Communication, Kind, Observer, Sequence};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What a session wants to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) shapes: bool,
    pub(crate) flops: bool,
    pub(crate) memory: bool,
    pub(crate) stack: bool,
    pub(crate) overloads: bool,
    pub(crate) modules: bool,
    pub(crate) all_threads: bool,
}

const SHAPES: u32 = 1;
const FLOPS: u32 = 2;
const ALL_THREADS: u32 = 4;
const STACK: u32 = 8;
const OVERLOADS: u32 = 16;
const MODULES: u32 = 32;
const IDENTITIES: u32 = 64;

impl Wants {
    /// Whether it is to be known what memory was for: torch asks for all three, and so do we.
    pub(crate) fn identities(self) -> bool {
        self.shapes && self.memory && self.stack
    }

    fn bits(self) -> u32 {
        // FLOPs come with the shapes they follow from, as torch has it.
        let shapes = if self.shapes || self.flops { SHAPES } else { 0 };
        let flops = if self.flops { FLOPS } else { 0 };
        let stack = if self.stack { STACK } else { 0 };
        let overloads = if self.overloads { OVERLOADS } else { 0 };
        let modules = if self.modules { MODULES } else { 0 };
        let identities = if self.identities() { IDENTITIES } else { 0 };
        shapes
            | flops
            | stack
            | overloads
            | modules
            | identities
            | if self.all_threads { ALL_THREADS } else { 0 }
    }
}

struct Recorder {
    /// The union of what open windows want.
    wants: AtomicU32,
}

static RECORDER: Recorder = Recorder { wants: AtomicU32::new(0) };

impl Observer for Recorder {
    fn enter(&self, id: u64, call: &dyn Call) -> u64 {
        let wants = self.wants.load(Relaxed);
        log::with(|local| enter(local, wants, id, call)).unwrap_or(0)
    }

    fn exit(&self, token: u64, failed: bool) {
        let end = End::new(clock::ticks(), failed);
        if token != 0 {
            log::with(|local| local.finish(token, end));
        }
    }
}

impl Listener for Recorder {
    fn memory(&self, report: &Report) {
        self.note(What::Memory(*report));
    }

    fn copied(&self, bytes: u64) {
        self.note(What::Copied(bytes));
    }
}

impl Recorder {
    /// Writes down what has no duration.
    fn note(&self, what: What) {
        let wants = self.wants.load(Relaxed);
        log::with(|local| {
            if wants & ALL_THREADS != 0 || local.is_wanted() {
                local.filler().push(Entry { start: clock::ticks(), what });
            }
        });
    }
}

#[inline]
fn enter(local: &mut Local, wants: u32, id: u64, call: &dyn Call) -> u64 {
    let kind = call.kind();
    if wants & ALL_THREADS == 0 && !local.is_wanted() || kind == Kind::Module && wants & MODULES == 0 {
        return 0;
    }
    let mut arena = 0;
    loop {
        let filler = local.filler();
        match describe(filler, wants, id, kind, call) {
            Ok(what) => {
                // The clock is read last, so that recording does not count as the call's time.
                let slot = filler.push(Entry { start: clock::ticks(), what });
                return slot.map_or(0, |slot| local.opened(slot));
            }
            Err(Full { needed }) => {
                arena += needed;
                local.renew(arena);
            }
        }
    }
}

#[inline]
fn describe(
    filler: &mut Filler,
    wants: u32,
    id: u64,
    kind: Kind,
    call: &dyn Call,
) -> std::result::Result<What, Full> {
    let name = match call.name() {
        observe::Name::Static(name) => Name::Static(name),
        observe::Name::Borrowed(name) => {
            Name::Packed { at: filler.pack(|packer| packer.raw(name.as_bytes()))?, bytes: name.len() as u32 }
        }
    };
    let details = if wants & (SHAPES | STACK | OVERLOADS) == 0 && kind != Kind::Communication {
        None
    } else {
        Some(describe_further(filler, wants, call)?)
    };
    let sequence = if kind == Kind::Module { instance(call) } else { call.sequence() };
    let call = CallEntry::new(id, name, kind, call.device(), sequence, details);
    Ok(What::Call(call))
}

/// A module's call has no part in autograd: which module it is of takes the place of a number.
#[cold]
fn instance(call: &dyn Call) -> Option<Sequence> {
    Some(Sequence { number: call.instance(), forward_thread: 0 })
}

#[inline(never)]
fn describe_further(filler: &mut Filler, wants: u32, call: &dyn Call) -> std::result::Result<u32, Full> {
    let flops = if wants & FLOPS == 0 { 0 } else { call.flops() };
    let stack = if wants & STACK == 0 { 0 } else { stack::capture() };
    let overload = if wants & OVERLOADS == 0 { "" } else { overload(call.schema()) };
    filler.pack(|packer| {
        packer.identify(wants & IDENTITIES != 0);
        packer.record(flops, stack, overload, |packer| {
            if wants & SHAPES != 0 {
                call.arguments(&mut |argument| packer.argument(argument));
            }
            if let Some(communication) = communication(call) {
                packer.communication(&communication);
            }
            if wants & IDENTITIES != 0 {
                call.owned(&mut |role, tensor| packer.owned(role, &tensor));
            }
        });
    })
}

/// Only calls of that kind are asked.
fn communication(call: &dyn Call) -> Option<Communication<'_>> {
    if call.kind() == Kind::Communication { call.communication() } else { None }
}

/// What tells an operator from others of its name: `Tensor` in `aten::add.Tensor(…)`.
fn overload(schema: &str) -> &str {
    let name = schema.split('(').next().unwrap_or_default();
    name.split_once('.').map_or("", |(_, overload)| overload)
}

/// The windows that are open now.
static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

struct Open {
    window: u64,
    start: u64,
    /// How far it is written to a file, if it is.
    progress: Option<Arc<Progress>>,
    wants: Wants,
    /// The number of the thread that opened it.
    thread: u32,
    /// Whether it wants to see calls now.
    calls: bool,
}

impl Open {
    fn sees(&self, log: &ThreadLog) -> bool {
        self.wants.all_threads || self.thread == log.number
    }

    /// From when on it needs a log.
    fn needs(&self, log: &ThreadLog) -> u64 {
        self.progress.as_ref().map_or(0, |progress| progress.of(log.number)).max(self.start)
    }
}

/// A stretch of the stream that a session can see. It closes when dropped.
pub(crate) struct Window {
    number: u64,
    pub(crate) start: Anchor,
    pub(crate) wants: Wants,
    /// The thread that opened it.
    pub(crate) thread: Arc<ThreadLog>,
}

impl Window {
    /// Opens a window: what happens from here on is recorded.
    pub(crate) fn open(wants: Wants) -> Result<Window> {
        let slots = slots()?;
        let thread = log::mine();
        if !wants.all_threads {
            thread.want(true);
        }
        let mut open = OPEN.lock();
        let number = open.last().map_or(0, |last| last.window + 1);
        // Until the real start is known, nothing may be forgotten.
        open.push(Open {
            window: number,
            start: 0,
            progress: None,
            wants,
            thread: thread.number,
            calls: true,
        });
        apply(&open, slots);
        let start = Anchor::now();
        open.iter_mut().filter(|one| one.window == number).for_each(|one| one.start = start.ticks);
        Ok(Window { number, start, wants, thread })
    }

    /// Records calls from here on, or not; other windows may want them all the same.
    pub(crate) fn record_calls(&self, on: bool) {
        let mut open = OPEN.lock();
        open.iter_mut().filter(|one| one.window == self.number).for_each(|one| one.calls = on);
        if let Ok(slots) = slots() {
            apply(&open, slots);
        }
    }

    /// The logs the window can see into.
    pub(crate) fn logs(&self) -> Vec<Arc<ThreadLog>> {
        if self.wants.all_threads { log::all() } else { vec![self.thread.clone()] }
    }

    /// The same view for one who writes it down. What is written need not be kept.
    pub(crate) fn view(&self) -> View {
        let progress = Arc::new(Progress::default());
        let mut open = OPEN.lock();
        open.iter_mut()
            .filter(|one| one.window == self.number)
            .for_each(|one| one.progress = Some(progress.clone()));
        let thread = (!self.wants.all_threads).then(|| self.thread.clone());
        View { start: self.start.ticks, thread, progress }
    }
}

/// What a window can see, for a writer.
pub(crate) struct View {
    /// From when on, in ticks.
    pub(crate) start: u64,
    /// The one thread it sees, unless it sees all.
    thread: Option<Arc<ThreadLog>>,
    pub(crate) progress: Arc<Progress>,
}

impl View {
    pub(crate) fn logs(&self) -> Vec<Arc<ThreadLog>> {
        self.thread.as_ref().map_or_else(log::all, |thread| vec![thread.clone()])
    }
}

/// By thread, from which tick on a writer needs events.
#[derive(Default)]
pub(crate) struct Progress(Mutex<HashMap<u32, u64>>);

impl Progress {
    pub(crate) fn set(&self, thread: u32, tick: u64) {
        self.0.lock().insert(thread, tick);
    }

    fn of(&self, thread: u32) -> u64 {
        self.0.lock().get(&thread).copied().unwrap_or(0)
    }
}

/// Frees what no open window needs any more.
pub(crate) fn forget() {
    forget_beyond(&OPEN.lock());
}

fn forget_beyond(open: &[Open]) {
    log::forget(|log| {
        let needs = open.iter().filter(|one| one.sees(log)).map(|one| one.needs(log));
        needs.min().unwrap_or(u64::MAX)
    });
}

impl Drop for Window {
    fn drop(&mut self) {
        if !self.wants.all_threads {
            self.thread.want(false);
        }
        let mut open = OPEN.lock();
        open.retain(|one| one.window != self.number);
        if let Ok(slots) = slots() {
            apply(&open, slots);
        }
        forget_beyond(&open);
    }
}

type Slots = (observe::Slot, memory::Slot);

/// The recorder's places in the two channels, taken with the first session.
fn slots() -> Result<Slots> {
    static SLOTS: OnceLock<Option<Slots>> = OnceLock::new();
    let claim = || Some((observe::Slot::claim(&RECORDER)?, memory::Slot::claim(&RECORDER)?));
    SLOTS.get_or_init(claim).ok_or(Error::NoObserverSlot)
}

/// Makes the recorder record what the open windows want.
fn apply(open: &[Open], (calls, reports): Slots) {
    let wants = open.iter().fold(0, |bits, one| bits | one.wants.bits());
    let before = RECORDER.wants.swap(wants, Relaxed);
    if before & !wants & STACK != 0 {
        stack::clear();
    }
    reports.set_active(open.iter().any(|one| one.wants.memory));
    calls.set_active(open.iter().any(|one| one.calls));
}
