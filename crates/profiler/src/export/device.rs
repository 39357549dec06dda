//! What devices did, as trace events.

use super::chrome::{Chrome, Spelling, Track, written};
use super::host;
use crate::names;
use crate::trace::{DeviceEvent, EventKind, Record, Trace};
use cresset_dispatch::Device;
use cresset_dispatch::activity::Work;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;

/// Scopes mirrored onto streams, then the work itself.
pub(super) fn events(chrome: &mut Chrome<'_>) -> io::Result<()> {
    for mirror in mirrors(chrome) {
        // A scope is written before the work in it: readers take the first of two slices
        // that start together for the outer one.
        let track = Track { pid: chrome.process_of(mirror.device), tid: mirror.stream };
        let (name, exact) = std::mem::take(&mut chrome.names[mirror.scope.name as usize]);
        let json = chrome.slice("gpu_user_annotation", &name, track, (mirror.start, mirror.end));
        json.raw("\"External id\":").number(mirror.scope.id).raw("}}");
        chrome.names[mirror.scope.name as usize] = (name, exact);
        chrome.json.flush_if_full()?;
    }
    for event in chrome.trace.device_events() {
        work(chrome, &event);
        chrome.json.flush_if_full()?;
    }
    Ok(())
}

fn work(chrome: &mut Chrome<'_>, event: &DeviceEvent<'_>) {
    let activity = event.activity();
    let track = Track { pid: chrome.process_of(activity.device), tid: event.stream() };
    let category = match activity.work {
        Work::Copy { .. } => "gpu_memcpy",
        Work::Set => "gpu_memset",
        Work::Kernel | Work::Launch => "kernel",
    };
    // Collectives are known by NCCL's names to tools that know only CUDA.
    let is_collective = chrome.spelling == Spelling::Cuda && event.name().starts_with("hcom_");
    let prefix = if is_collective { "ncclKernel_" } else { "" };
    let (name, exact) = written(&[prefix, event.name()].concat());
    let json = chrome.slice(category, &name, track, (activity.start, activity.end));
    if let Some(call) = event.call() {
        json.raw("\"External id\":").number(call.correlation_id()).raw(",");
    }
    json.raw("\"device\":").number(track.pid).raw(",\"context\":1,\"stream\":").number(track.tid);
    json.raw(",\"correlation\":").number(activity.correlation).raw(",\"queued\":0");
    json.raw(",\"device_type\":\"").raw(&event.device_type()).raw("\"");
    if let Some(step) = event.launch().or(event.call()).map(|host| host.step()) {
        json.raw(",\"step\":").number(step);
    }
    if !activity.unit.is_empty() {
        json.raw(",\"Task Type\":").text(&activity.unit);
    }
    if let Some(exact) = exact {
        json.raw(",\"exact_name\":").raw(&exact);
    }
    if let Some(exchanged) = event.call().and_then(|call| call.communication()) {
        host::communication(json, &exchanged);
    }
    if category != "kernel" {
        json.raw(",\"bytes\":").number(activity.bytes);
        if event.duration() > 0 {
            // Bytes per nanosecond are gigabytes per second.
            let bandwidth = activity.bytes as f64 / event.duration() as f64;
            json.raw(",\"memory bandwidth (GB/s)\":").raw(&format!("{bandwidth:.3}"));
        }
    }
    json.raw("}}");
    if event.launch().is_some() {
        chrome.flow(true, names::LAUNCH_TO_WORK, activity.correlation, track, activity.start);
    }
}

/// A scope as a stream sees it: from the first to the last work launched inside.
struct Mirror<'a> {
    device: Device,
    stream: u32,
    start: u64,
    end: u64,
    scope: &'a Record,
    /// Indices of the first and the last work.
    first: usize,
    last: usize,
}

/// Of a recording that comes in pieces, a scope that reaches across several is mirrored in each.
fn mirrors<'a>(chrome: &Chrome<'a>) -> Vec<Mirror<'a>> {
    let trace = chrome.trace;
    let work = &trace.work;
    let mut spans: HashMap<(u32, Device, u32), (usize, usize)> = HashMap::new();
    for (i, one) in work.iter().enumerate() {
        let mut at = chrome.record(one.launch).map_or(one.call, |launch| launch.parent);
        while let Some(record) = chrome.record(at) {
            if matches!(record.kind, EventKind::Scope | EventKind::Step) {
                spans.entry((at, one.activity.device, one.stream)).or_insert((i, i)).1 = i;
            }
            at = record.parent;
        }
    }
    let mut mirrors: Vec<Mirror<'a>> = spans
        .into_iter()
        .filter_map(|((at, device, stream), (first, last))| {
            let scope = chrome.record(at)?;
            let (start, end) = (work[first].activity.start, work[last].activity.end);
            Some(Mirror { device, stream, start, end, scope, first, last })
        })
        .collect();
    widen(&mut mirrors, trace);
    mirrors.sort_by_key(|m| (m.device, m.stream, m.start, Reverse(m.end), m.scope.depth, m.scope.start));
    without_crossings(mirrors)
}

/// Makes scopes reach a little beyond the work in them, outer ones more than inner ones, as
/// far as half of the idle time around allows: readers add times up in doubles, in which
/// ends that are equal may come out in either order.
fn widen(mirrors: &mut [Mirror<'_>], trace: &Trace) {
    let work = &trace.work;
    let deepest = mirrors.iter().map(|mirror| mirror.scope.depth).max().unwrap_or(0);
    for mirror in mirrors {
        let margin = 2 * u64::from(deepest - mirror.scope.depth + 1);
        let beside = |i: Option<usize>| {
            i.and_then(|i| work.get(i)).filter(|one| one.track() == (mirror.device, mirror.stream))
        };
        let earlier = trace.busy.get(&(mirror.device, mirror.stream)).copied().unwrap_or(0);
        let later = trace.more_from.unwrap_or(u64::MAX);
        let before = beside(mirror.first.checked_sub(1)).map_or(earlier, |one| one.activity.end);
        let after = beside(Some(mirror.last + 1)).map_or(later, |one| one.activity.start);
        if mirror.start - before > 2 * margin {
            mirror.start -= margin;
        }
        if after.saturating_sub(mirror.end) > 2 * margin {
            mirror.end += margin;
        }
    }
}

/// Scopes of two threads that share a stream may overlap there; the later one is left out,
/// because slices of a track must nest.
fn without_crossings(mirrors: Vec<Mirror<'_>>) -> Vec<Mirror<'_>> {
    let mut kept: Vec<Mirror<'_>> = Vec::new();
    let mut open: Vec<(Device, u32, u64)> = Vec::new();
    for mirror in mirrors {
        while open.last().is_some_and(|&(device, stream, end)| {
            (device, stream) != (mirror.device, mirror.stream) || end <= mirror.start
        }) {
            open.pop();
        }
        if open.last().is_none_or(|&(.., end)| mirror.end <= end) {
            open.push((mirror.device, mirror.stream, mirror.end));
            kept.push(mirror);
        }
    }
    kept
}
