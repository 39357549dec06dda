//! What the host did, as trace events.

use super::chrome::{Chrome, Spelling, Track, written};
use super::json::Json;
use crate::communication::Communication;
use crate::names;
use crate::pack::{Input, TensorInput};
use crate::trace::{Event, EventKind};
use cresset_dispatch::activity::Work;
use std::collections::HashMap;
use std::io;

/// All host events, each with the flows that begin or end at it.
pub(super) fn events(chrome: &mut Chrome<'_>) -> io::Result<()> {
    let (trace, linked) = (chrome.trace, chrome.done.links);
    let ends = |index: &dyn Fn(usize) -> u32| {
        let mut ends: Vec<(u32, u64)> =
            (0..trace.links.len()).map(|i| (index(i), linked + i as u64 + 1)).collect();
        ends.sort_unstable();
        ends.into_iter().peekable()
    };
    let mut starts = ends(&|i| trace.links[i].forward);
    let mut finishes = ends(&|i| trace.links[i].backward);
    // Where a flow begins that comes from an earlier piece.
    let earlier = |id: u64| trace.links[(id - linked) as usize - 1].earlier;
    let launched: HashMap<u64, Work> =
        trace.work.iter().map(|work| (work.activity.correlation, work.activity.work)).collect();
    for event in trace.events() {
        let (index, record) = (event.index() as u32, event.record());
        let track = chrome.track_of(record);
        if record.before {
            // An earlier piece has it.
        } else if event.kind() == EventKind::Launch {
            let activity = &trace.launches[record.launch as usize];
            launch(chrome, &event, track, launched.get(&activity.correlation).copied());
        } else if event.kind() == EventKind::Module {
            module(chrome, &event, track);
        } else {
            call(chrome, &event, track);
        }
        while let Some((_, id)) = starts.next_if(|&(at, _)| at == index) {
            chrome.flow(false, names::FORWARD_BACKWARD, id, track, record.start);
        }
        while let Some((_, id)) = finishes.next_if(|&(at, _)| at == index) {
            if let Some(call) = earlier(id) {
                let track = Track { pid: chrome.pid, tid: call.tid };
                chrome.flow(false, names::FORWARD_BACKWARD, id, track, call.start);
            }
            chrome.flow(true, names::FORWARD_BACKWARD, id, track, record.start);
        }
        chrome.json.flush_if_full()?;
    }
    Ok(())
}

fn call(chrome: &mut Chrome<'_>, event: &Event<'_>, track: Track) {
    let record = event.record();
    let index = chrome.done.events + event.index();
    let (name, exact) = std::mem::take(&mut chrome.names[record.name as usize]);
    let wants = chrome.trace.wants;
    let overload = event.overload_name().map(|overload| written(&format!("{}.{overload}", event.name())).0);
    let stack = chrome.stacks.get_mut(record.stack as usize).map(std::mem::take);
    let shown = overload.as_ref().unwrap_or(&name);
    let json = chrome.slice(names::category(record.kind), shown, track, (record.start, record.end));
    json.raw("\"External id\":").number(record.id).raw(",\"Record function id\":0");
    if let Some(sequence) = event.sequence() {
        json.raw(",\"Sequence number\":").number(sequence.number);
        json.raw(",\"Fwd thread id\":").number(sequence.forward_thread);
    }
    if let Some(inputs) =
        event.inputs().filter(|_| event.is_operator() && event.kind() != EventKind::Evaluate)
    {
        arguments(json, &inputs);
        if wants.shapes {
            json.raw(",\"input_shapes\":").list(inputs.iter().filter(|input| is_tensor(input)), dims);
        }
    }
    if let Some(exchanged) = event.communication() {
        communication(json, &exchanged);
    }
    if let Some(stack) = &stack {
        json.raw(stack);
    }
    json.raw(",\"Ev Idx\":").number(index);
    if !record.finished {
        json.raw(",\"finished\":false");
    }
    if record.failed {
        json.raw(",\"failed\":true");
    }
    if let Some(exact) = &exact {
        json.raw(",\"exact_name\":").raw(exact);
    }
    json.raw(",\"device_type\":\"").raw(&event.device_type()).raw("\",\"step\":").number(record.step);
    if let Some(runtime) = event.runtime_name() {
        json.raw(",\"correlation_id\":").number(record.id).raw(",\"runtime_name\":").text(runtime);
        json.raw(",\"runtime_tid\":").number(track.tid);
        json.raw(",\"phase\":\"").raw(record.phase.as_str()).raw("\"");
    }
    if record.flops > 0 {
        json.raw(",\"flops\":").number(record.flops);
    }
    if record.copied > 0 {
        json.raw(",\"copied_bytes\":").number(record.copied);
    }
    memory_use(json, event);
    json.raw("}}");
    chrome.names[record.name as usize] = (name, exact);
    if let Some(stack) = stack {
        chrome.stacks[record.stack as usize] = stack;
    }
}

/// What processes exchanged, under the names that torch gives.
pub(super) fn communication(json: &mut Json<'_>, exchanged: &Communication) {
    json.raw(",\"Collective name\":").text(&exchanged.collective);
    json.raw(",\"In msg nelems\":").number(exchanged.elements_in);
    json.raw(",\"Out msg nelems\":").number(exchanged.elements_out);
    json.raw(",\"Group size\":").number(exchanged.ranks.len() as u64);
    json.raw(",\"dtype\":\"").raw(names::scalar_type(&exchanged.dtype)).raw("\"");
    json.raw(",\"In split size\":\"[]\",\"Out split size\":\"[]\"");
    json.raw(",\"Process Group Name\":").text(&exchanged.group);
    json.raw(",\"Process Group Description\":").text(&exchanged.group);
    json.raw(",\"Process Group Ranks\":").text(&format!("{:?}", exchanged.ranks));
    json.raw(",\"Rank\":").number(exchanged.rank).raw(",\"Seq\":").number(exchanged.sequence);
    for (name, rank) in [("Src Rank", exchanged.source), ("Dst Rank", exchanged.target)] {
        if let Some(rank) = rank {
            json.raw(",").text(name).raw(":").number(rank);
        }
    }
}

/// A module's call, as torch shows those of Python: by ids of their own.
fn module(chrome: &mut Chrome<'_>, event: &Event<'_>, track: Track) {
    let (record, outer) = (event.record(), chrome.record(event.record().outer_module));
    let index = chrome.done.events + event.index();
    let (name, exact) = std::mem::take(&mut chrome.names[record.name as usize]);
    let stack = chrome.stacks.get_mut(record.stack as usize).map(std::mem::take);
    let json = chrome.slice(names::category(record.kind), &name, track, (record.start, record.end));
    json.raw("\"Python id\":").number(record.id);
    if let Some(outer) = outer {
        json.raw(",\"Python parent id\":").number(outer.id);
    }
    json.raw(",\"Python module id\":").number(record.module).raw(",\"Ev Idx\":").number(index);
    if let Some(stack) = &stack {
        json.raw(stack);
    }
    if !record.finished {
        json.raw(",\"finished\":false");
    }
    json.raw(",\"step\":").number(record.step);
    json.raw(",\"phase\":\"").raw(record.phase.as_str()).raw("\"}}");
    chrome.names[record.name as usize] = (name, exact);
    if let Some(stack) = stack {
        chrome.stacks[record.stack as usize] = stack;
    }
}

/// What the allocator had handed out, `npu_memory_allocated_before` and so on.
fn memory_use(json: &mut Json<'_>, event: &Event<'_>) {
    let Some(used) = event.memory() else { return };
    let key = |json: &mut Json<'_>, moment: &str| {
        json.raw(",\"").raw(used.device.key.name()).raw("_memory_allocated_").raw(moment).raw("\":");
    };
    key(json, "before");
    json.number(used.before);
    key(json, "after");
    json.number(used.after);
    key(json, "delta");
    json.number(used.delta());
}

fn launch(chrome: &mut Chrome<'_>, event: &Event<'_>, track: Track, launched: Option<Work>) {
    let (record, trace) = (event.record(), chrome.trace);
    let activity = &trace.launches[record.launch as usize];
    let (own, _) = std::mem::take(&mut chrome.names[record.name as usize]);
    let cuda = match launched {
        _ if chrome.spelling == Spelling::Own => None,
        Some(Work::Copy { .. }) => Some("\"cudaMemcpyAsync\""),
        Some(Work::Set) => Some("\"cudaMemsetAsync\""),
        Some(_) => Some("\"cudaLaunchKernel\""),
        None => None,
    };
    let category =
        if chrome.spelling == Spelling::Cuda { "cuda_runtime" } else { names::category(record.kind) };
    let in_call = event.parent().filter(|parent| parent.correlation_id() == record.id);
    let json = chrome.slice(category, cuda.unwrap_or(&own), track, (record.start, record.end));
    if in_call.is_some() {
        json.raw("\"External id\":").number(record.id).raw(",");
    }
    json.raw("\"cbid\":211,\"correlation\":").number(activity.correlation);
    json.raw(",\"api\":").raw(&own).raw(",\"device_type\":\"").raw(&event.device_type());
    json.raw("\",\"step\":").number(record.step).raw("}}");
    chrome.names[record.name as usize].0 = own;
    if launched.is_some() {
        chrome.flow(false, names::LAUNCH_TO_WORK, activity.correlation, track, record.start);
    }
}

fn is_tensor(input: &Input) -> bool {
    matches!(input, Input::Tensor(_) | Input::Tensors(_))
}

/// torch's four lists, one element per argument; none for a call without arguments.
fn arguments(json: &mut Json<'_>, inputs: &[Input]) {
    if inputs.is_empty() {
        return;
    }
    json.raw(",\"Concrete Inputs\":").list(inputs, |json, input| {
        json.text(&names::concrete(input));
    });
    json.raw(",\"Input type\":").list(inputs, |json, input| {
        json.text(names::input_type(input));
    });
    json.raw(",\"Input Strides\":")
        .list(inputs, |json, input| per_tensor(json, input, |tensor| &tensor.strides));
    json.raw(",\"Input Dims\":").list(inputs, dims);
}

fn dims(json: &mut Json<'_>, input: &Input) {
    per_tensor(json, input, |tensor| &tensor.shape);
}

fn per_tensor(json: &mut Json<'_>, input: &Input, get: impl Fn(&TensorInput) -> &[u64]) {
    let numbers = |json: &mut Json<'_>, tensor: &TensorInput| {
        json.list(get(tensor), |json, &number| {
            json.number(number);
        });
    };
    match input {
        Input::Tensor(tensor) => numbers(json, tensor),
        Input::Tensors(list) => {
            json.list(list, numbers);
        }
        _ => {
            json.raw("[]");
        }
    }
}

/// Memory reports, in the order the allocators made them.
pub(super) fn memory(chrome: &mut Chrome<'_>) -> io::Result<()> {
    let trace = chrome.trace;
    let first = chrome.done.events + trace.records.len();
    for (i, event) in trace.memory.events.iter().enumerate() {
        let report = &event.report;
        let track = Track { pid: chrome.pid, tid: trace.threads[event.thread as usize].tid };
        let name = if report.bytes == 0 { names::OUT_OF_MEMORY } else { names::MEMORY };
        let json = chrome.instant("t", name, track, event.time);
        json.raw(",\"cat\":\"cpu_instant_event\",\"args\":{\"Total Reserved\":").number(report.reserved);
        json.raw(",\"Total Allocated\":").number(report.allocated).raw(",\"Bytes\":").number(report.bytes);
        json.raw(",\"Device Id\":").number(names::device_index(report.device));
        json.raw(",\"Device Type\":").number(names::device_number(report.device));
        json.raw(",\"Addr\":").number(report.address);
        json.raw(",\"finished\":false,\"Ev Idx\":").number(first + i).raw("}}");
        chrome.json.flush_if_full()?;
    }
    Ok(())
}
