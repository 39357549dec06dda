//! From what threads and devices wrote down to a finished [`Trace`].

use super::carry::{Carry, Forward};
use super::memory::{Memory, MemoryEvent};
use super::record::{EventKind, NONE, Names, Phase, Record};
use super::{About, Stacks, Thread, Trace, launch, link, modules, stacks, tree, work};
use crate::chunk::{Call, Chunk, Name, What};
use crate::clock::{Anchor, Scale};
use crate::log::ThreadLog;
use crate::names;
use crate::pack::{Head, Unpacker};
use crate::pauses::Pauses;
use crate::recorder::Wants;
use cresset_dispatch::Device;
use cresset_dispatch::activity::{Activity, Properties};
use cresset_dispatch::memory::Report;
use cresset_dispatch::observe::Kind;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Everything a trace is made of.
#[derive(Clone)]
pub(crate) struct Material {
    pub(crate) logs: Vec<Arc<ThreadLog>>,
    pub(crate) wants: Wants,
    /// When host calls, and devices, are not shown.
    pub(crate) no_calls: Pauses,
    pub(crate) no_devices: Pauses,
    pub(crate) start: Anchor,
    pub(crate) stop: Anchor,
    pub(crate) steps: Steps,
    pub(crate) activities: Vec<Activity>,
    pub(crate) devices: Vec<Properties>,
    pub(crate) about: About,
    /// The part that is wanted, if it is one.
    pub(crate) piece: Option<Piece>,
}

/// A part of a recording; what began before is a frame for what is inside it.
#[derive(Clone)]
pub(crate) struct Piece {
    /// From when, and until when, in ticks.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Whether steps have a track of their own in the whole recording.
    pub(crate) steps_apart: bool,
    /// The devices whose streams count from zero in the whole recording.
    pub(crate) from_zero: HashSet<Device>,
}

impl Piece {
    /// Whether nothing comes after it.
    fn is_last(&self) -> bool {
        self.to == u64::MAX
    }
}

impl Material {
    pub(crate) fn scale(&self) -> Scale {
        Scale::between(self.start, self.stop)
    }

    /// To find out whether calls lie across the ends of steps.
    pub(crate) fn crossing(&self) -> Crossing {
        Crossing::new(self.steps.spans().map(|(.., end)| end), self.stop.ticks)
    }
}

/// The steps a session saw, one after the other; times in ticks.
#[derive(Clone)]
pub(crate) struct Steps {
    /// The number of the first.
    pub(crate) first: u64,
    pub(crate) starts: Vec<u64>,
    /// When the last ended.
    pub(crate) end: u64,
    /// Whether they are events of their own, as under a schedule.
    pub(crate) shown: bool,
    /// The number of the thread that takes them.
    pub(crate) thread: u32,
}

/// One track of the host while it is being put together; times in ticks.
struct Lane {
    thread: Thread,
    records: Vec<Record>,
    reports: Vec<(u64, Report)>,
}

/// The trace, or the piece of it that is asked for: `carry` is what the pieces before it handed on,
/// and is brought up to date.
pub(crate) fn build(mut material: Material, carry: &mut Carry) -> Trace {
    let activities = std::mem::take(&mut material.activities);
    let scale = material.scale();
    let window = (scale.nanos(material.start.ticks), scale.nanos(material.stop.ticks));
    let mut builder = Builder {
        names: Names::default(),
        details: Vec::new(),
        stacks: Stacks::default(),
        material: &material,
    };
    let mut lanes: Vec<Lane> = material.logs.iter().map(|log| builder.lane(log)).collect();
    if material.steps.shown {
        builder.add_steps(&mut lanes);
    }
    for lane in &mut lanes {
        tree::nest(&mut lane.records, &builder.names);
    }
    let all_threads = material.wants.all_threads;
    let ours = material.logs.first().map_or(0, |log| log.tid);
    let is_ours = |tid| all_threads || tid == ours;
    let piece = material.piece.as_ref();
    let within = piece.map_or(window, |piece| {
        (scale.nanos(piece.from.max(material.start.ticks)), scale.nanos(piece.to.min(material.stop.ticks)))
    });
    let is_seen = |nanos| !material.no_devices.contain(scale.ticks(nanos));
    let (launches, work) = work::split(activities, within, is_ours, is_seen);
    builder.add_launches(&mut lanes, &launches, &scale);
    lanes.retain(|lane| !lane.records.is_empty() || !lane.reports.is_empty());

    let Builder { mut names, details, mut stacks, .. } = builder;
    let (threads, mut records, reports) = join(lanes, &scale, &material.steps);
    tree::sum_children(&mut records);
    modules::number(&mut records, &mut names, &mut carry.modules, within.1);
    let busy = carry.busy.clone();
    let from_zero = piece.map(|piece| &piece.from_zero);
    let work = work::join(&mut records, &launches, work, from_zero, &mut carry.busy);
    let numbers: Vec<u32> = threads.iter().map(|thread| thread.number).collect();
    let links = link::links(&records, &numbers, carry);
    if material.wants.stack {
        stacks::inherit(&mut records, &numbers, &mut stacks, carry);
    }
    let mut memory = Memory::new(reports, &carry.totals);
    memory.keep_seen(&mut carry.seen);
    let is_last = piece.is_none_or(Piece::is_last);
    if !is_last {
        carry.totals.extend(memory.last_totals());
        remember_calls(&records, &threads, &stacks, carry);
    }
    let ends = records.iter().map(|record| record.end).chain(work.iter().map(|work| work.activity.end));
    let end = ends.fold(window.1, u64::max);
    Trace {
        about: material.about,
        wants: material.wants,
        start: window.0,
        end,
        threads,
        names,
        details,
        records,
        links,
        stacks,
        launches,
        work,
        memory,
        devices: material.devices,
        busy,
        more_from: if is_last { None } else { Some(within.1) },
    }
}

/// Hands on the calls that derivatives in later pieces may belong to.
fn remember_calls(records: &[Record], threads: &[Thread], stacks: &Stacks, carry: &mut Carry) {
    for record in records.iter().filter(|record| link::is_forward(record)) {
        let thread = &threads[record.thread as usize];
        // What a derivative calls is shown where its own forward call was.
        let is_own = record.phase != Phase::Backward;
        let stack = if is_own { stacks.number(record.stack) } else { 0 };
        let call = Forward { tid: thread.tid, start: record.start, stack };
        carry.remember(thread.number, record.sequence, call);
    }
    carry.forget_old_calls();
}

struct Builder<'a> {
    names: Names,
    details: Vec<u8>,
    stacks: Stacks,
    material: &'a Material,
}

impl Builder<'_> {
    /// What a thread did inside the window.
    fn lane(&mut self, log: &ThreadLog) -> Lane {
        let thread = Thread { number: log.number, tid: log.tid, name: log.name.clone() };
        let mut lane = Lane { thread, records: Vec::new(), reports: Vec::new() };
        let (start, stop) = (self.material.start.ticks, self.material.stop.ticks);
        let last = log.exited().map_or(stop, |exited| exited.min(stop));
        let chunks = log.chunks();
        lane.records.reserve(chunks.iter().map(|chunk| chunk.len()).sum());
        for chunk in chunks {
            for (entry, end) in chunk.events().filter(|(entry, _)| (start..=stop).contains(&entry.start)) {
                match entry.what {
                    What::Call(call) if self.sees(&call, entry.start) => {
                        let finished = (1..=stop).contains(&end.ticks());
                        let failed = finished && end.failed();
                        let end = if finished { end.ticks() } else { last.max(entry.start) };
                        let record = self.record(&chunk, &call, (entry.start, end));
                        let piece = self.material.piece.as_ref();
                        let before = piece.is_some_and(|piece| entry.start < piece.from);
                        lane.records.push(Record { finished, failed, before, ..record });
                    }
                    What::Memory(report) if self.material.wants.memory => {
                        lane.reports.push((entry.start, report))
                    }
                    What::Copied(bytes) if self.material.wants.memory => {
                        // Calls lie in the order they began: the last one still open made the copy.
                        let mut calls = lane.records.iter_mut().rev();
                        if let Some(call) = calls.find(|call| call.end >= entry.start) {
                            call.copied += bytes;
                        }
                    }
                    _ => {}
                }
            }
        }
        lane
    }

    fn sees(&self, call: &Call, start: u64) -> bool {
        !self.material.no_calls.contain(start) && (call.kind != Kind::Module || self.material.wants.modules)
    }

    fn record(&mut self, chunk: &Chunk, call: &Call, (start, end): (u64, u64)) -> Record {
        let evaluate = call.kind == Kind::Evaluate;
        let name = match call.name {
            Name::Static(name) => self.names.fixed(name, evaluate),
            Name::Packed { at, bytes } => {
                let text = chunk.bytes(at).get(..bytes as usize).unwrap_or_default();
                self.names.text(&String::from_utf8_lossy(text), evaluate)
            }
        };
        let mut record = Record::new(kind(call.kind), name, call.id, start, end);
        record.device = call.device;
        if let Some(sequence) = call.sequence() {
            (record.sequence, record.forward_thread) = (sequence.number, sequence.forward_thread);
        }
        let wants = self.material.wants;
        let wants_inputs = wants.shapes || wants.flops || call.kind == Kind::Communication;
        if let Some(at) = call.details().filter(|_| wants_inputs || wants.stack || wants.overloads) {
            let copy = self.details.len();
            let head = self.copy_details(chunk, at);
            if wants.stack {
                record.stack = self.stacks.add(head.stack);
            }
            if wants.overloads && !head.overload.is_empty() {
                record.overload = self.names.text(&head.overload, false);
            }
            if wants_inputs {
                record.details = u32::try_from(copy).unwrap_or(NONE);
                record.flops = if wants.flops { head.flops } else { 0 };
            } else {
                self.details.truncate(copy);
            }
        }
        record
    }

    /// Copies a packed record to the end; returns what stands before the arguments.
    fn copy_details(&mut self, chunk: &Chunk, at: u32) -> Head {
        let copy = self.details.len();
        self.details.extend_from_slice(chunk.packed(at));
        Unpacker(self.details.get(copy + 4..).unwrap_or_default()).head().unwrap_or_default()
    }

    /// Shows steps on the thread that takes them, or on a track of their own if a scope of
    /// the program lies across a step's end: slices must nest.
    fn add_steps(&mut self, lanes: &mut Vec<Lane>) {
        let piece = self.material.piece.as_ref();
        let (from, to) = piece.map_or((0, u64::MAX), |piece| (piece.from, piece.to));
        let apart = piece.map(|piece| piece.steps_apart);
        let steps: Vec<Record> = self
            .material
            .steps
            .spans()
            .filter(|&(_, start, end)| start < to && end >= from)
            .map(|(number, start, end)| {
                let name = self.names.text(&format!("{}{number}", names::STEP), false);
                let record = Record::new(EventKind::Step, name, step_id(), start, end);
                Record { before: start < from, ..record }
            })
            .collect();
        let number = self.material.steps.thread;
        let crossing = self.material.crossing();
        let crosses = |record: &Record| crossing.is_crossed(record.start, record.end);
        match lanes.iter_mut().find(|lane| lane.thread.number == number) {
            Some(lane) if !apart.unwrap_or_else(|| lane.records.iter().any(crosses)) => {
                lane.records.extend(steps);
                lane.records.sort_by_key(|record| (record.start, record.kind != EventKind::Step));
            }
            _ => {
                let thread = Thread { number: 0, tid: names::STEPS_THREAD, name: Some("steps".to_owned()) };
                lanes.push(Lane { thread, records: steps, reports: Vec::new() });
            }
        }
    }

    fn add_launches(&mut self, lanes: &mut Vec<Lane>, launches: &[Activity], scale: &Scale) {
        let mut by_thread: HashMap<u32, Vec<Record>> = HashMap::new();
        for (i, activity) in (0..).zip(launches) {
            let name = self.names.text(&activity.name, false);
            let (start, end) = (scale.ticks(activity.start), scale.ticks(activity.end));
            let record = Record::new(EventKind::Launch, name, activity.call, start, end.max(start));
            let record = Record { launch: i, device: Some(activity.device), ..record };
            by_thread.entry(activity.lane).or_default().push(record);
        }
        // A thread's id may have been used again: the launches are the last one's.
        for lane in lanes.iter_mut().rev() {
            if let Some(launches) = by_thread.remove(&lane.thread.tid) {
                self.merge(lane, launches);
            }
        }
        let mut others: Vec<_> = by_thread.into_iter().collect();
        others.sort_by_key(|(tid, _)| *tid);
        for (tid, launches) in others {
            let mut lane = Lane {
                thread: Thread { number: 0, tid, name: None },
                records: Vec::new(),
                reports: Vec::new(),
            };
            self.merge(&mut lane, launches);
            lanes.push(lane);
        }
    }

    fn merge(&self, lane: &mut Lane, mut launches: Vec<Record>) {
        launch::place(&lane.records, &mut launches);
        launch::merge(&mut lane.records, launches);
        tree::nest(&mut lane.records, &self.names);
    }
}

fn kind(kind: Kind) -> EventKind {
    match kind {
        Kind::Operator | Kind::Communication => EventKind::Operator,
        Kind::Evaluate => EventKind::Evaluate,
        Kind::Backward => EventKind::Backward,
        Kind::Scope => EventKind::Scope,
        Kind::Module => EventKind::Module,
    }
}

/// Ids for steps, which are no calls: above any that calls get.
fn step_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 48);
    NEXT.fetch_add(1, Relaxed)
}

/// Finds calls that lie across the end of a step.
pub(crate) struct Crossing {
    ends: Vec<u64>,
    stop: u64,
}

impl Crossing {
    fn new(ends: impl Iterator<Item = u64>, stop: u64) -> Crossing {
        Crossing { ends: ends.collect(), stop }
    }

    /// Whether a call from `start` to `end` does; one without an end lasts until the recording stopped.
    pub(crate) fn is_crossed(&self, start: u64, end: u64) -> bool {
        let end = if (1..=self.stop).contains(&end) { end } else { self.stop };
        let next = self.ends.partition_point(|&step| step <= start);
        self.ends.get(next).is_some_and(|&step| step < end)
    }
}

/// All lanes as one list, with times in nanoseconds.
fn join(lanes: Vec<Lane>, scale: &Scale, steps: &Steps) -> (Vec<Thread>, Vec<Record>, Vec<MemoryEvent>) {
    let (mut threads, mut records, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for (thread, mut lane) in (0..).zip(lanes) {
        let first = records.len() as u32;
        for (tick, report) in lane.reports {
            let event = tree::innermost(&lane.records, tick).map(|i| (i + first) as usize);
            reports.push(MemoryEvent { time: scale.nanos(tick), report, event, thread });
        }
        for record in &mut lane.records {
            record.thread = thread;
            record.step = steps.at(record.start);
            (record.start, record.end) = (scale.nanos(record.start), scale.nanos(record.end));
        }
        tree::part(&mut lane.records);
        for record in &mut lane.records {
            record.parent = if record.parent == NONE { NONE } else { record.parent + first };
            record.next += first;
        }
        // Most programs have one busy thread: its list is taken as it is.
        if records.is_empty() {
            records = lane.records
        } else {
            records.append(&mut lane.records)
        }
        threads.push(lane.thread);
    }
    (threads, records, reports)
}

impl Steps {
    /// Number, start and end of each.
    fn spans(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let ends = self.starts.iter().skip(1).map(|start| start - tree::MARGIN).chain([self.end]);
        (self.first..)
            .zip(&self.starts)
            .zip(ends)
            .map(|((number, &start), end)| (number, start, end.max(start)))
    }

    /// The number of the step that runs at `tick`.
    fn at(&self, tick: u64) -> u32 {
        let begun = self.starts.partition_point(|&start| start <= tick);
        (self.first + begun.saturating_sub(1) as u64) as u32
    }
}
