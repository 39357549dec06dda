//! Device work of a trace: joined to the launches and calls it came from.

use super::record::{NONE, Record};
use cresset_dispatch::Device;
use cresset_dispatch::activity::{Activity, Work};
use std::collections::{HashMap, HashSet};

/// A kernel, copy or set that ran on a device.
#[derive(Clone, Debug)]
pub(crate) struct DeviceWork {
    pub(crate) activity: Activity,
    /// The stream as shown: at least 1.
    pub(crate) stream: u32,
    /// Index of the call it was launched in, and of the launch.
    pub(crate) call: u32,
    pub(crate) launch: u32,
}

/// The session's part of what the devices did: launches, and the work they caused.
pub(super) fn split(
    activities: Vec<Activity>,
    (start, stop): (u64, u64),
    is_ours: impl Fn(u32) -> bool,
    is_seen: impl Fn(u64) -> bool,
) -> (Vec<Activity>, Vec<Activity>) {
    let within = |activity: &Activity| (start..=stop).contains(&activity.start) && is_seen(activity.start);
    let (all, work): (Vec<_>, Vec<_>) = activities.into_iter().partition(|a| a.work == Work::Launch);
    let known: HashSet<u64> = all.iter().map(|launch| launch.correlation).collect();
    let mut seen = HashSet::new();
    let mut launches: Vec<Activity> = all;
    launches.retain(|a| within(a) && is_ours(a.lane) && seen.insert(a.correlation));
    let keep = |a: &Activity| seen.contains(&a.correlation) || !known.contains(&a.correlation) && within(a);
    let work = work.into_iter().filter(keep).collect();
    (launches, work)
}

/// Joins `work` to the events and adds its time to the calls. Streams of devices that count theirs
/// `from_zero` are shown one higher.
pub(super) fn join(
    records: &mut [Record],
    launches: &[Activity],
    work: Vec<Activity>,
    from_zero: Option<&HashSet<Device>>,
    busy: &mut HashMap<(Device, u32), u64>,
) -> Vec<DeviceWork> {
    if work.is_empty() {
        return Vec::new();
    }
    let mut calls = HashMap::new();
    let mut by_correlation = HashMap::new();
    for (i, record) in records.iter().enumerate() {
        match launches.get(record.launch as usize) {
            Some(launch) => by_correlation.insert(launch.correlation, i as u32),
            None => calls.insert(record.id, i as u32),
        };
    }
    let here: HashSet<Device> = work.iter().filter(|a| a.lane == 0).map(|a| a.device).collect();
    let from_zero = from_zero.unwrap_or(&here);
    let mut joined: Vec<DeviceWork> = work
        .into_iter()
        .map(|activity| DeviceWork {
            stream: activity.lane + u32::from(from_zero.contains(&activity.device)),
            call: calls.get(&activity.call).copied().unwrap_or(NONE),
            launch: by_correlation.get(&activity.correlation).copied().unwrap_or(NONE),
            activity,
        })
        .collect();
    joined.sort_by_key(|work| (work.activity.device, work.stream, work.activity.start, work.activity.end));
    put_in_order(&mut joined, records, busy);
    for work in &joined {
        if let Some(call) = records.get_mut(work.call as usize) {
            call.device_time += work.activity.end - work.activity.start;
        }
    }
    joined
}

/// Work starts after its launch, and after what came before it on its stream; clocks that
/// disagree by a hair must not say otherwise. `busy` tells until when each stream was at work before.
fn put_in_order(joined: &mut [DeviceWork], records: &[Record], busy: &mut HashMap<(Device, u32), u64>) {
    for of_stream in joined.chunk_by_mut(|a, b| a.track() == b.track()) {
        let busy = busy.entry(of_stream[0].track()).or_default();
        for work in of_stream {
            let launched = records.get(work.launch as usize).map_or(0, |launch| launch.start);
            let activity = &mut work.activity;
            activity.start = activity.start.max(launched).max(*busy);
            activity.end = activity.end.max(activity.start);
            *busy = activity.end;
        }
    }
}

impl DeviceWork {
    /// Where it is shown.
    pub(crate) fn track(&self) -> (Device, u32) {
        (self.activity.device, self.stream)
    }
}
