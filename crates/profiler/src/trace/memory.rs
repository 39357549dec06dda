//! Memory reports of a trace: in the order the allocator made them, and whose they are.

use super::order;
use cresset_dispatch::Device;
use cresset_dispatch::memory::Report;
use std::collections::{HashMap, HashSet};

/// Memory that was taken or given back.
///
/// ```
/// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
/// use cresset_profiler::Profiler;
/// let (_, profiler) =
///     Profiler::builder().profile_memory(true).run(|_| operator("aten::empty").run(|| allocate(64)))?;
/// let taken = &profiler.trace()?.memory_events()[0];
/// assert_eq!((taken.report.bytes, taken.event), (64, Some(0)));
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryEvent {
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// What the allocator said.
    pub report: Report,
    /// Index of the innermost [event](crate::Event::index) it happened in.
    pub event: Option<usize>,
    pub(crate) thread: u32,
}

impl MemoryEvent {
    /// What the allocator had handed out before.
    pub(super) fn before(&self) -> u64 {
        self.report.allocated.saturating_add_signed(-self.report.bytes)
    }
}

/// What an allocator had handed out when an event began and when it ended.
///
/// ```
/// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
/// use cresset_profiler::Profiler;
/// let (_, profiler) =
///     Profiler::builder().profile_memory(true).run(|_| operator("aten::empty").run(|| allocate(64)))?;
/// let used = profiler.events()?.next().unwrap().memory().unwrap();
/// assert!(used.device.is_cpu() && used.after == used.before + 64);
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Where.
    pub device: Device,
    /// Bytes at the beginning.
    pub before: u64,
    /// Bytes at the end.
    pub after: u64,
}

impl MemoryUse {
    /// Bytes that came on top; negative if some were given back.
    ///
    /// ```
    /// # use cresset_dispatch::Device;
    /// # use cresset_profiler::MemoryUse;
    /// let used = MemoryUse { device: Device::CPU, before: 100, after: 60 };
    /// assert_eq!(used.delta(), -40);
    /// ```
    pub fn delta(&self) -> i64 {
        self.after as i64 - self.before as i64
    }
}

/// Host memory that was taken while someone looked, from one piece of a trace to the next.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    addresses: HashSet<usize>,
    total: Option<u64>,
}

impl Seen {
    /// Whether a report is of memory that was seen being taken; its total becomes that of such memory.
    fn keeps(&mut self, event: &mut MemoryEvent) -> bool {
        let total = self.total.get_or_insert_with(|| event.before());
        let report = &mut event.report;
        let known = match report.bytes >= 0 {
            true => self.addresses.insert(report.address) || report.bytes > 0,
            false => self.addresses.remove(&report.address),
        };
        if known {
            *total = total.saturating_add_signed(report.bytes);
            report.allocated = *total;
        }
        known
    }
}

/// All reports of a trace, by time.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) events: Vec<MemoryEvent>,
    /// Per device, time and total after each report.
    totals: Vec<(Device, Vec<MemoryEvent>)>,
    /// What those had handed out that report nothing here.
    quiet: HashMap<Device, u64>,
}

impl Memory {
    /// `known` is what allocators had handed out before.
    pub(crate) fn new(mut events: Vec<MemoryEvent>, known: &HashMap<Device, u64>) -> Memory {
        events.sort_by_key(|event| event.time);
        let mut totals: Vec<(Device, Vec<MemoryEvent>)> = Vec::new();
        for event in events {
            match totals.iter_mut().find(|(device, _)| *device == event.report.device) {
                Some((_, events)) => events.push(event),
                None => totals.push((event.report.device, vec![event])),
            }
        }
        totals.iter_mut().for_each(|(_, events)| order::restore(events));
        let mut events: Vec<MemoryEvent> =
            totals.iter().flat_map(|(_, events)| events.iter().copied()).collect();
        events.sort_by_key(|event| event.time);
        Memory { events, totals, quiet: known.clone() }
    }

    /// What allocators had handed out in the end.
    pub(super) fn last_totals(&self) -> impl Iterator<Item = (Device, u64)> {
        self.totals.iter().filter_map(|(device, events)| Some((*device, events.last()?.report.allocated)))
    }

    /// Leaves out host memory that is given back and was taken before anyone looked: torch does not report
    /// it either. Totals are those of what is left.
    pub(crate) fn keep_seen(&mut self, seen: &mut Seen) {
        self.events.retain_mut(|event| event.report.device != Device::CPU || seen.keeps(event));
    }

    /// What was handed out on `device` at two moments; 0 if it never reported.
    pub(crate) fn used(&self, device: Device, start: u64, end: u64) -> MemoryUse {
        let events = self.totals.iter().find(|(of, _)| *of == device).map_or(&[][..], |(_, events)| events);
        let quiet = self.quiet.get(&device).copied().unwrap_or(0);
        let at = |time: u64| match events.partition_point(|event| event.time <= time) {
            0 => events.first().map_or(quiet, MemoryEvent::before),
            after => events[after - 1].report.allocated,
        };
        MemoryUse { device, before: at(start), after: at(end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, bytes: i64, allocated: u64) -> MemoryEvent {
        let report = Report { device: Device::CPU, address: time as usize, bytes, allocated, reserved: 0 };
        MemoryEvent { time, report, event: None, thread: 0 }
    }

    #[test]
    fn use_is_read_from_the_running_total() {
        let events = vec![event(10, 4, 104), event(20, 6, 110), event(30, -4, 106)];
        let memory = Memory::new(events, &HashMap::new());
        let used = |start, end| {
            let used = memory.used(Device::CPU, start, end);
            (used.before, used.after, used.delta())
        };
        assert_eq!(used(0, 5), (100, 100, 0));
        assert_eq!(used(15, 25), (104, 110, 6));
        assert_eq!(used(25, 99), (110, 106, -4));
        assert_eq!(memory.used(Device::META, 0, 99).after, 0);
    }
}
