//! From what threads and devices wrote down to a finished [`Trace`].

use super::memory::{Memory, MemoryEvent};
use super::record::{EventKind, NONE, Names, Record};
use super::{About, Stacks, Thread, Trace, launch, link, modules, stacks, tree, work};
use crate::chunk::{Call, Chunk, Name, What};
use crate::clock::{Anchor, Scale};
use crate::log::ThreadLog;
use crate::names;
use crate::pack::{Head, Unpacker};
use crate::pauses::Pauses;
use crate::recorder::Wants;
use cresset_dispatch::activity::{Activity, Properties};
use cresset_dispatch::memory::Report;
use cresset_dispatch::observe::Kind;
use std::collections::HashMap;
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
    /// The part that is wanted, in ticks; what began before is a frame for what is inside it.
    pub(crate) piece: Option<(u64, u64)>,
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

pub(crate) fn build(mut material: Material) -> Trace {
    let activities = std::mem::take(&mut material.activities);
    let scale = Scale::between(material.start, material.stop);
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
    let within = material.piece.map_or(window, |(from, to)| {
        (scale.nanos(from.max(material.start.ticks)), scale.nanos(to.min(material.stop.ticks)))
    });
    let is_seen = |nanos| !material.no_devices.contain(scale.ticks(nanos));
    let (launches, work) = work::split(activities, within, is_ours, is_seen);
    builder.add_launches(&mut lanes, &launches, &scale);
    lanes.retain(|lane| !lane.records.is_empty() || !lane.reports.is_empty());

    let Builder { mut names, details, stacks, .. } = builder;
    let (threads, mut records, reports) = join(lanes, &scale, &material.steps);
    tree::sum_children(&mut records);
    modules::number(&mut records, &mut names);
    let work = work::join(&mut records, &launches, work);
    let numbers: Vec<u32> = threads.iter().map(|thread| thread.number).collect();
    let links = link::links(&records, &numbers);
    if material.wants.stack {
        stacks::inherit(&mut records, &numbers);
    }
    let end = work.iter().map(|work| work.activity.end).fold(window.1, u64::max);
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
        memory: Memory::new(reports),
        devices: material.devices,
    }
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
                        let before = self.material.piece.is_some_and(|(from, _)| entry.start < from);
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
        let wants_inputs = wants.shapes || wants.flops;
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
        let (from, to) = self.material.piece.unwrap_or((0, u64::MAX));
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
        match lanes.iter_mut().find(|lane| lane.thread.number == number) {
            Some(lane) if !cross(&lane.records, &steps) => {
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
        Kind::Operator => EventKind::Operator,
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

/// Whether an event lies across the end of a step. Both are in start order.
fn cross(records: &[Record], steps: &[Record]) -> bool {
    let mut latest = 0;
    let mut records = records.iter().peekable();
    steps.iter().any(|step| {
        while let Some(record) = records.next_if(|record| record.start < step.end) {
            latest = latest.max(record.end);
        }
        latest > step.end
    })
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
