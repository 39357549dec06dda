//! Memory over time, by what it was for.

use super::MemoryCategory;
use super::category::categories;
use super::flow::flow;
use super::storage::{Id, Storages};
use crate::trace::Trace;
use cresset_dispatch::Device;
use std::collections::HashMap;

/// What happened to a piece of memory.
///
/// ```
/// # use cresset_profiler::MemoryAction;
/// let torch = [MemoryAction::Create, MemoryAction::Destroy].map(|action| action as u8);
/// assert_eq!(torch, [2, 4]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryAction {
    /// It was there before the recording.
    Preexisting = 1,
    /// It was taken.
    Create,
    /// An operator changed what it holds.
    IncrementVersion,
    /// It was given back.
    Destroy,
}

/// One moment in the life of a piece of memory.
///
/// ```
/// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
/// use cresset_profiler::{MemoryAction, Profiler};
/// let builder = Profiler::builder().record_shapes(true).profile_memory(true).with_stack(true);
/// let (_, profiler) = builder.run(|_| operator("aten::empty").run(|| allocate(64)))?;
/// let changes = profiler.trace()?.memory_timeline()?;
/// assert_eq!((changes[0].action, changes[0].bytes), (MemoryAction::Create, 64));
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryChange {
    /// When, in nanoseconds since 1970; `None` if it was there before.
    pub time: Option<u64>,
    /// What happened.
    pub action: MemoryAction,
    /// Where the memory is.
    pub device: Device,
    /// How much memory.
    pub bytes: u64,
    /// What it is for, or was until now.
    pub category: MemoryCategory,
    /// What it is for from now on; other than `category` only where its contents changed.
    pub becomes: MemoryCategory,
}

/// All changes of a trace, by time.
pub(crate) struct Timeline {
    pub(crate) changes: Vec<MemoryChange>,
}

impl Timeline {
    /// The timeline of a trace that has arguments with identities, and memory reports.
    pub(crate) fn new(trace: &Trace) -> Timeline {
        let mut storages = Storages::new(&trace.memory.events);
        let flow = flow(trace, &mut storages);
        let categories = categories(&flow, storages.all.len());
        let mut last: HashMap<Id, u32> = HashMap::new();
        for (id, version) in flow.nodes.iter().flat_map(|node| node.inputs().chain(node.outputs())) {
            let known = last.entry(id).or_insert(version);
            *known = version.max(*known);
        }
        let change = |time, action, id: Id, version: u32| {
            let storage = &storages.all[id as usize];
            let category = categories.get((id, version));
            let changed = action == MemoryAction::IncrementVersion;
            let becomes = if changed { categories.get((id, version + 1)) } else { category };
            MemoryChange { time, action, device: storage.device, bytes: storage.bytes, category, becomes }
        };
        let mut changes = Vec::new();
        for (id, storage) in (0..).zip(&storages.all) {
            match storage.created {
                None => changes.push(change(None, MemoryAction::Preexisting, id, 0)),
                created => changes.push(change(created, MemoryAction::Create, id, 0)),
            }
            if let Some(time) = storage.destroyed {
                let version = last.get(&id).copied().unwrap_or(0);
                changes.push(change(Some(time), MemoryAction::Destroy, id, version));
            }
        }
        for node in &flow.nodes {
            for (&id, edge) in node.edges.iter().filter(|(_, edge)| edge.changed && !edge.destroyed) {
                if let Some(version) = edge.found {
                    changes.push(change(Some(node.start), MemoryAction::IncrementVersion, id, version));
                }
            }
        }
        changes.sort_by_key(|change| (change.time, change.action));
        Timeline { changes }
    }
}
