//! How the time of a thread, a stream or a step falls into forward, backward and optimizer.

use crate::names;
use crate::trace::{EventKind, Phase, Record, Trace};
use std::collections::BTreeMap;

/// Nanoseconds of one track, or of one step of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) label: String,
    /// From the first to the last moment it could have worked.
    pub(super) wall: u64,
    /// Forward, backward, optimizer.
    pub(super) phases: [u64; 3],
}

impl Split {
    fn add(&mut self, phase: Phase, nanos: u64) {
        self.phases[phase as usize] += nanos;
    }

    fn busy(&self) -> u64 {
        self.phases.iter().sum()
    }
}

/// Threads by how much they did, then streams.
pub(super) fn tracks(trace: &Trace) -> Vec<Split> {
    let wall = trace.end - trace.start;
    let label = |thread| super::data::thread_label(trace, thread);
    let mut threads: Vec<Split> =
        (0..trace.threads.len()).map(|i| Split { label: label(i), wall, ..Split::default() }).collect();
    for record in trace.records.iter().filter(|record| counts(record)) {
        threads[record.thread as usize].add(record.phase, own(record));
    }
    threads.retain(|thread| thread.busy() > 0);
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.busy()));
    let mut streams: BTreeMap<_, Split> = BTreeMap::new();
    for work in &trace.work {
        let stream = streams.entry((work.activity.device, work.stream)).or_default();
        let phase = trace.records.get(work.call as usize).map_or(Phase::Forward, |call| call.phase);
        stream.add(phase, work.activity.end - work.activity.start);
    }
    threads.extend(streams.into_iter().map(|((device, stream), split)| Split {
        label: super::data::stream_label(device, stream),
        wall,
        ..split
    }));
    threads
}

/// The steps of a schedule, on the thread that took them.
pub(super) fn steps(trace: &Trace) -> Vec<Split> {
    let mut steps: BTreeMap<u32, Split> = BTreeMap::new();
    let mut taker = None;
    for step in trace.records.iter().filter(|record| record.kind == EventKind::Step) {
        let label = trace.names.get(step.name).to_owned();
        steps.insert(step.step, Split { label, wall: step.duration(), ..Split::default() });
        // Steps that a scope lies across have a track of their own; then all threads count.
        let apart = trace.threads[step.thread as usize].tid == names::STEPS_THREAD;
        taker = Some(step.thread).filter(|_| !apart);
    }
    let here = |record: &&Record| counts(record) && taker.is_none_or(|thread| record.thread == thread);
    for record in trace.records.iter().filter(here) {
        if let Some(step) = steps.get_mut(&record.step) {
            step.add(record.phase, own(record));
        }
    }
    steps.into_values().collect()
}

/// Operators count, and whatever lies in the engine or an optimizer; a program's own code
/// between operators does not.
fn counts(record: &Record) -> bool {
    let is_annotation = matches!(record.kind, EventKind::Scope | EventKind::Module | EventKind::Step);
    !is_annotation || record.phase != Phase::Forward
}

fn own(record: &Record) -> u64 {
    record.duration().saturating_sub(record.children)
}
