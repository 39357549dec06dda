//! What a report shows, as one piece of JSON. Slices are columns of numbers: a page reads a
//! million of them in a blink, and they take a tenth of the bytes of objects.

use super::{Peak, speed, split};
use crate::averages::{Averages, Grouping};
use crate::export::json::Json;
use crate::export::timeline;
use crate::memory::{MemoryAction, MemoryCategory, MemoryChange};
use crate::trace::{Event, EventKind, MemoryEvent, Phase, Trace};
use cresset_dispatch::Device;
use cresset_dispatch::activity::Work;
use cresset_trace::Row;
use std::collections::HashMap;
use std::io::{self, Write};

pub(super) fn write(trace: &Trace, peaks: &[(Device, Peak)], sink: &mut dyn Write) -> io::Result<()> {
    let mut json = Json::new(sink);
    let averages = Averages::of_trace(trace, Grouping::default());
    about(&mut json, trace, &averages);
    json.raw(",\n\"rows\":").list(averages.iter(), row);
    json.flush()?;
    json.raw(",\n\"tracks\":");
    let mut texts = Texts::default();
    tracks(&mut json, trace, &mut texts)?;
    json.raw(",\n\"texts\":").list(texts.list, |json, text| {
        json.text(&text);
    });
    json.raw(",\n\"memory\":");
    memory(&mut json, trace)?;
    json.raw(",\n\"splits\":").list(split::tracks(trace), one_split);
    json.raw(",\n\"steps\":").list(split::steps(trace), one_split);
    json.raw(",\n\"speeds\":").list(speed::speeds(trace), one_speed);
    json.raw(",\n\"peaks\":").list(peaks, |json, (device, peak)| {
        json.raw("{\"device\":").text(&device.to_string()).raw(",\"flops\":");
        float(json, peak.flops).raw(",\"bandwidth\":");
        float(json, peak.bandwidth).raw(",\"source\":").text(&peak.source).raw("}");
    });
    json.raw("}\n");
    json.flush()
}

fn about(json: &mut Json<'_>, trace: &Trace, averages: &Averages) {
    let about = &trace.about;
    json.raw("{\"format\":1,\"about\":{\"trace\":").text(&about.trace_id);
    json.raw(",\"host\":").text(&about.host).raw(",\"process\":").text(&about.process);
    json.raw(",\"pid\":").number(about.pid);
    json.raw(",\"start_ms\":").number(trace.start / 1_000_000);
    json.raw(",\"span\":").number(trace.end - trace.start);
    json.raw(",\"device\":").text(averages.device.as_deref().unwrap_or("DEVICE"));
    let flags = [
        ("record_shapes", trace.wants.shapes),
        ("profile_memory", trace.wants.memory),
        ("with_flops", trace.wants.flops),
        ("with_stack", trace.wants.stack),
    ];
    json.raw(",\"flags\":").list(flags.iter().filter(|(_, on)| *on), |json, (flag, _)| {
        json.text(flag);
    });
    json.raw(",\"devices\":").list(&trace.devices, |json, known| {
        json.text(&format!("{}: {}", known.device, known.name));
    });
    json.raw(",\"metadata\":").list(about.metadata.iter(), |json, (key, value)| {
        json.raw("[").text(key).raw(",").text(value).raw("]");
    });
    json.raw("},\n\"names\":").list(trace.names.all(), |json, name| {
        json.text(name);
    });
}

fn row(json: &mut Json<'_>, row: &Row) {
    let kind = match row {
        Row { on_device: true, .. } => "device",
        Row { is_user_annotation: true, .. } => "scope",
        _ => "operator",
    };
    json.raw("{\"name\":").text(&row.key).raw(",\"device\":").text(&row.device_type);
    json.raw(",\"kind\":\"").raw(kind).raw("\",\"count\":").number(row.count);
    let figures = [
        ("self_cpu", row.self_cpu_time_total),
        ("cpu", row.cpu_time_total),
        ("self_device", row.self_device_time_total),
        ("on_device", row.device_time_total),
        ("flops", row.flops),
    ];
    for (name, figure) in figures {
        json.raw(",\"").raw(name).raw("\":").number(figure);
    }
    let memory = [
        ("self_cpu_memory", row.self_cpu_memory_usage),
        ("cpu_memory", row.cpu_memory_usage),
        ("self_device_memory", row.self_device_memory_usage),
        ("device_memory", row.device_memory_usage),
    ];
    for (name, bytes) in memory {
        json.raw(",\"").raw(name).raw("\":").number(bytes);
    }
    json.raw("}");
}

/// Distinct texts, by number.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    known: HashMap<String, usize>,
}

impl Texts {
    fn number(&mut self, text: String) -> usize {
        *self.known.entry(text).or_insert_with_key(|text| {
            self.list.push(text.clone());
            self.list.len() - 1
        })
    }
}

pub(super) fn thread_label(trace: &Trace, thread: usize) -> String {
    let thread = &trace.threads[thread];
    let name = thread.name.as_ref().unwrap_or(&trace.about.process);
    format!("{name} · thread {}", thread.tid)
}

pub(super) fn stream_label(device: Device, stream: u32) -> String {
    format!("{device} · stream {stream}")
}

/// How a slice is coloured: its place in the page's list of classes.
fn class(event: &Event<'_>) -> u8 {
    match (event.kind(), event.phase()) {
        (EventKind::Step, _) => 5,
        (EventKind::Module, _) => 4,
        (EventKind::Scope, _) => 3,
        (EventKind::Launch, _) => 6,
        (_, Phase::Forward) => 0,
        (_, Phase::Backward) => 1,
        (_, Phase::Optimizer) => 2,
    }
}

/// Columns of one track, flat: start since the last start, span, name, depth, class, then the
/// number of a text and FLOPs, −1 and 0 where there are none.
struct Columns {
    last: u64,
    is_first: bool,
}

impl Columns {
    fn open(json: &mut Json<'_>, label: &str, group: &str, start: u64) -> Columns {
        json.raw("{\"label\":").text(label).raw(",\"group\":\"").raw(group).raw("\",\"slices\":[");
        Columns { last: start, is_first: true }
    }

    fn add(&mut self, json: &mut Json<'_>, (start, end): (u64, u64), rest: [i64; 5]) {
        json.raw(if std::mem::take(&mut self.is_first) { "" } else { "," });
        json.number(start.saturating_sub(self.last)).raw(",").number(end.saturating_sub(start));
        for number in rest {
            json.raw(",").number(number);
        }
        self.last = start.max(self.last);
    }
}

fn tracks(json: &mut Json<'_>, trace: &Trace, texts: &mut Texts) -> io::Result<()> {
    json.raw("[");
    let mut open: Option<(u32, Columns)> = None;
    for event in trace.events() {
        let record = event.record();
        if open.as_ref().is_none_or(|(thread, _)| *thread != record.thread) {
            json.raw(if open.is_some() { "]},\n" } else { "" });
            let label = thread_label(trace, record.thread as usize);
            open = Some((record.thread, Columns::open(json, &label, "host", trace.start)));
        }
        let text = event.input_shapes().map_or(-1, |text| texts.number(text) as i64);
        let rest =
            [record.name.into(), record.depth.into(), class(&event).into(), text, event.flops() as i64];
        if let Some((_, columns)) = &mut open {
            columns.add(json, (record.start, record.end), rest);
        }
        json.flush_if_full()?;
    }
    let mut any = open.is_some();
    let mut stream: Option<((Device, u32), Columns)> = None;
    for event in trace.device_events() {
        let key = (event.activity().device, event.stream());
        if stream.as_ref().is_none_or(|(known, _)| *known != key) {
            json.raw(if any { "]},\n" } else { "" });
            any = true;
            let label = stream_label(key.0, key.1);
            stream = Some((key, Columns::open(json, &label, "device", trace.start)));
        }
        // Kernels are named here: the trace has a table of host names only.
        let name = -1 - texts.number(event.name().to_owned()) as i64;
        let class = if matches!(event.activity().work, Work::Kernel | Work::Launch) { 7 } else { 8 };
        let call = event.call().map_or(-1, |call| texts.number(format!("for {}", call.name())) as i64);
        if let Some((_, columns)) = &mut stream {
            let activity = event.activity();
            columns.add(json, (activity.start, activity.end), [name, 0, class, call, 0]);
        }
        json.flush_if_full()?;
    }
    json.raw(if any { "]}]" } else { "]" });
    Ok(())
}

/// One chart per device: its parts, what each had before, then changes as time since the last
/// one, number of the part, and bytes.
fn memory(json: &mut Json<'_>, trace: &Trace) -> io::Result<()> {
    let mut devices: Vec<Device> = trace.memory.events.iter().map(|event| event.report.device).collect();
    devices.sort_unstable();
    devices.dedup();
    let timeline = trace.memory_timeline().ok();
    json.raw("[");
    for (i, device) in devices.into_iter().enumerate() {
        json.raw(if i > 0 { "," } else { "" }).raw("{\"device\":").text(&device.to_string());
        match &timeline {
            Some(changes) => by_category(json, trace.start, changes, device)?,
            None => by_total(json, trace, device)?,
        }
        json.raw("]}");
    }
    json.raw("]");
    Ok(())
}

fn by_total(json: &mut Json<'_>, trace: &Trace, device: Device) -> io::Result<()> {
    let of = |event: &&MemoryEvent| event.report.device == device && event.report.bytes != 0;
    let events: Vec<&MemoryEvent> = trace.memory.events.iter().filter(of).collect();
    let before = |event: &&MemoryEvent| event.report.allocated.saturating_add_signed(-event.report.bytes);
    json.raw(",\"series\":[\"allocated\"],\"before\":[").number(events.first().map_or(0, before));
    json.raw("],\"changes\":[");
    let mut steps = Steps { last: trace.start, is_first: true };
    for event in events {
        steps.add(json, event.time, 0, event.report.bytes);
        json.flush_if_full()?;
    }
    Ok(())
}

fn by_category(json: &mut Json<'_>, start: u64, changes: &[MemoryChange], device: Device) -> io::Result<()> {
    let changes = || changes.iter().filter(|change| change.device == device);
    let mut before = [0; MemoryCategory::ALL.len()];
    for change in changes().filter(|change| change.action == MemoryAction::Preexisting) {
        before[change.category as usize] += change.bytes;
    }
    json.raw(",\"series\":").list(MemoryCategory::ALL, |json, category| {
        json.text(&category.as_str().to_lowercase());
    });
    json.raw(",\"before\":").list(before, |json, bytes| {
        json.number(bytes);
    });
    json.raw(",\"changes\":[");
    let mut steps = Steps { last: start, is_first: true };
    for change in changes() {
        let Some(time) = change.time else { continue };
        let stays = change.action == MemoryAction::IncrementVersion && change.category == change.becomes;
        for (category, bytes) in timeline::deltas(change).filter(|_| !stays) {
            steps.add(json, time, category as usize, bytes);
        }
        json.flush_if_full()?;
    }
    Ok(())
}

/// Changes on their way to the page.
struct Steps {
    last: u64,
    is_first: bool,
}

impl Steps {
    fn add(&mut self, json: &mut Json<'_>, time: u64, part: usize, bytes: i64) {
        json.raw(if std::mem::take(&mut self.is_first) { "" } else { "," });
        json.number(time.saturating_sub(self.last)).raw(",").number(part).raw(",").number(bytes);
        self.last = time.max(self.last);
    }
}

fn one_split(json: &mut Json<'_>, split: split::Split) {
    json.raw("{\"label\":").text(&split.label).raw(",\"wall\":").number(split.wall);
    json.raw(",\"phases\":").list(split.phases, |json, nanos| {
        json.number(nanos);
    });
    json.raw("}");
}

fn one_speed(json: &mut Json<'_>, speed: speed::Speed) {
    json.raw("{\"name\":").text(&speed.name).raw(",\"device\":").text(&speed.device);
    json.raw(",\"count\":").number(speed.count).raw(",\"time\":").number(speed.time);
    json.raw(",\"flops\":").number(speed.flops).raw(",\"bytes\":").number(speed.bytes).raw("}");
}

/// A number, or nothing if it is none.
fn float<'j, 'a>(json: &'j mut Json<'a>, value: f64) -> &'j mut Json<'a> {
    if value.is_finite() { json.raw(&format!("{value}")) } else { json.raw("null") }
}
