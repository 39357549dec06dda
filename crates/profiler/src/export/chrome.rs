//! Chrome's trace format, as torch's profiler writes it: head, tracks, events, marks.

use super::json::{Json, quoted, visible};
use super::{device, file, host, stacks};
use crate::error::Result;
use crate::names;
use crate::trace::{NONE, Record, Trace};
use cresset_dispatch::{Device, Key};
use std::io::{self, Write};
use std::path::Path;

/// How device library calls are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As the device's library has it.
    Own,
    /// As CUDA's, for tools that know no other.
    Cuda,
}

/// Writes `trace` to `path`.
pub(crate) fn export(trace: &Trace, path: &Path, spelling: Spelling) -> Result<()> {
    file::write(path, |sink| {
        let mut done = Done::default();
        piece(trace, sink, spelling, &mut done)?;
        end(trace, sink, spelling, done)
    })
}

/// Writes the pieces of a recording, one after the other, to `path`.
pub(crate) fn export_pieces(
    pieces: impl Iterator<Item = Result<Trace>>,
    path: &Path,
    spelling: Spelling,
) -> Result<()> {
    let mut fault = None;
    let outcome = file::write(path, |sink| {
        let (mut done, mut last) = (Done::default(), None);
        for trace in pieces {
            let trace = trace.map_err(|error| {
                fault = Some(error);
                io::Error::from(io::ErrorKind::InvalidData)
            })?;
            piece(&trace, sink, spelling, &mut done)?;
            let end = last.map_or(trace.end, |last: Trace| last.end.max(trace.end));
            last = Some(Trace { end, ..trace.without_events() });
        }
        last.map_or(Ok(()), |trace| end(&trace, sink, spelling, done))
    });
    fault.map_or(outcome, Err)
}

/// What was written before this piece.
#[derive(Default)]
pub(super) struct Done {
    /// Whether the head was.
    head: bool,
    /// Whether an event was.
    event: bool,
    /// Threads and streams that have their names.
    named: Vec<(u32, u32)>,
    /// How many events with a number, and how many flows from forward to backward.
    pub(super) events: usize,
    pub(super) links: u64,
}

fn piece(trace: &Trace, sink: &mut dyn Write, spelling: Spelling, done: &mut Done) -> io::Result<()> {
    let mut chrome = Chrome::new(trace, sink, spelling, std::mem::take(done));
    let is_first = !std::mem::replace(&mut chrome.done.head, true);
    if is_first {
        chrome.head();
    }
    chrome.tracks(is_first);
    host::events(&mut chrome)?;
    host::memory(&mut chrome)?;
    device::events(&mut chrome)?;
    chrome.done.events += trace.records.len() + trace.memory.events.len();
    chrome.done.links += trace.links.len() as u64;
    chrome.json.flush()?;
    *done = chrome.done;
    Ok(())
}

fn end(trace: &Trace, sink: &mut dyn Write, spelling: Spelling, done: Done) -> io::Result<()> {
    let mut chrome = Chrome::new(trace, sink, spelling, done);
    chrome.marks();
    chrome.json.flush()
}

/// Times in a trace count from the last whole quarter of a year, so that a double holds
/// their nanoseconds.
const QUARTER: u64 = 7_889_238_000_000_000;

/// A trace on its way to a file.
pub(super) struct Chrome<'a> {
    pub(super) trace: &'a Trace,
    pub(super) json: Json<'a>,
    pub(super) spelling: Spelling,
    /// Process id of the host.
    pub(super) pid: u32,
    /// All names as they are written, and exact ones where these differ.
    pub(super) names: Vec<(String, Option<String>)>,
    /// All stacks as they are written: as arguments, with a comma before.
    pub(super) stacks: Vec<String>,
    base: u64,
    backends: Vec<Key>,
    pub(super) done: Done,
}

impl<'a> Chrome<'a> {
    fn new(trace: &'a Trace, sink: &'a mut dyn Write, spelling: Spelling, done: Done) -> Chrome<'a> {
        let mut chrome = Chrome {
            trace,
            json: Json::new(sink),
            spelling,
            pid: trace.about.pid,
            names: trace.names.all().iter().map(|name| written(name)).collect(),
            stacks: trace.stacks.all().iter().map(|stack| stacks::arguments(stack)).collect(),
            base: trace.start / QUARTER * QUARTER,
            backends: Vec::new(),
            done,
        };
        for device in
            trace.work.iter().map(|work| work.activity.device).chain(trace.devices.iter().map(|d| d.device))
        {
            if !chrome.backends.contains(&device.key) {
                chrome.backends.push(device.key);
            }
        }
        if chrome.devices().iter().any(|&device| chrome.process_of(device) == chrome.pid) {
            chrome.pid += names::PROCESS_OFFSET;
        }
        chrome
    }

    /// A device's process id: its index, as readers expect, for the first kind of device.
    pub(super) fn process_of(&self, device: Device) -> u32 {
        let backend = self.backends.iter().position(|&key| key == device.key).unwrap_or(0) as u32;
        backend * 256 + u32::from(device.index)
    }

    /// The devices that take part, each once.
    fn devices(&self) -> Vec<Device> {
        let worked = self.trace.work.iter().map(|work| work.activity.device);
        let mut devices: Vec<Device> = worked.chain(self.trace.devices.iter().map(|d| d.device)).collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    fn head(&mut self) {
        let (trace, about) = (self.trace, &self.trace.about);
        self.json.raw("{\"schemaVersion\":1,\"deviceProperties\":");
        let ids: Vec<u32> = trace.devices.iter().map(|known| self.process_of(known.device)).collect();
        let distinct = |&(i, _): &(usize, &u32)| !ids[..i].contains(&ids[i]);
        self.json.list(ids.iter().enumerate().filter(distinct), |json, (i, &id)| {
            let known = &trace.devices[i];
            json.raw("{\"id\":").number(id).raw(",\"name\":").text(&known.name);
            json.raw(",\"totalGlobalMem\":").number(known.memory).raw("}");
        });
        self.json.raw(",\"trace_id\":").text(&about.trace_id);
        let flags = [
            ("record_shapes", trace.wants.shapes),
            ("with_stack", trace.wants.stack),
            ("profile_memory", trace.wants.memory),
            ("with_flops", trace.wants.flops),
            ("with_modules", trace.wants.modules),
        ];
        for (flag, _) in flags.iter().filter(|(_, on)| *on) {
            self.json.raw(",").text(flag).raw(":1");
        }
        self.json.raw(",\"host_name\":").text(&about.host);
        for (key, value) in about.metadata.iter() {
            self.json.raw(",").text(key).raw(":").raw(value);
        }
        self.json.raw(",\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":").number(self.base);
        self.json.raw(",\"traceEvents\":[");
    }

    /// Names of processes, before the first piece, and of threads that have none yet.
    fn tracks(&mut self, is_first: bool) {
        let (trace, about) = (self.trace, &self.trace.about);
        if is_first {
            self.process(self.pid, &about.process, "CPU", self.pid);
            for device in self.devices() {
                let label = format!("{} {}", names::device_type(device.key), device.index);
                let properties = trace.devices.iter().find(|properties| properties.device == device);
                let name =
                    properties.map_or(label.clone(), |properties| format!("{label}: {}", properties.name));
                let pid = self.process_of(device);
                self.process(pid, &name, &label, names::DEVICE_SORT + pid);
            }
            self.process(names::SPANS_PROCESS, "Spans", "session", names::SPANS_PROCESS);
            self.thread(names::SPANS_PROCESS, 1, "PyTorch Profiler");
        }
        for thread in &trace.threads {
            let name = thread.name.as_ref().unwrap_or(&about.process);
            self.thread(self.pid, thread.tid, &format!("thread {} ({name})", thread.tid));
        }
        let mut streams: Vec<_> = trace.work.iter().map(|work| (work.activity.device, work.stream)).collect();
        streams.dedup();
        for (device, stream) in streams {
            self.thread(self.process_of(device), stream, &format!("stream {stream}"));
        }
    }

    fn process(&mut self, pid: u32, name: &str, label: &str, sort_index: u32) {
        self.meta("process_name", pid, 0).raw("\"name\":").text(name).raw("}}");
        self.meta("process_labels", pid, 0).raw("\"labels\":").text(label);
        if pid == names::SPANS_PROCESS {
            // What users added also stands here, for readers that look for it among events.
            let metadata = &self.trace.about.metadata;
            for (key, value) in metadata.iter() {
                self.json.raw(",").text(key).raw(":").raw(value);
            }
        }
        self.json.raw("}}");
        self.meta("process_sort_index", pid, 0).raw("\"sort_index\":").number(sort_index).raw("}}");
    }

    fn thread(&mut self, pid: u32, tid: u32, name: &str) {
        if self.done.named.contains(&(pid, tid)) {
            return;
        }
        self.done.named.push((pid, tid));
        self.meta("thread_name", pid, tid).raw("\"name\":").text(name).raw("}}");
        self.meta("thread_sort_index", pid, tid).raw("\"sort_index\":").number(tid).raw("}}");
    }

    fn meta(&mut self, name: &str, pid: u32, tid: u32) -> &mut Json<'a> {
        let time = self.trace.start - self.base;
        let json = self.event();
        json.raw("{\"ph\":\"M\",\"name\":\"").raw(name).raw("\",\"ts\":").micros(time);
        json.raw(",\"pid\":").number(pid).raw(",\"tid\":").number(tid).raw(",\"args\":{")
    }

    /// Begins one more event.
    pub(super) fn event(&mut self) -> &mut Json<'a> {
        let is_first = !std::mem::replace(&mut self.done.event, true);
        self.json.raw(if is_first { "\n" } else { ",\n" })
    }

    /// Begins a slice; its arguments follow. `name` is JSON already.
    pub(super) fn slice(
        &mut self,
        category: &str,
        name: &str,
        track: Track,
        (start, end): (u64, u64),
    ) -> &mut Json<'a> {
        let base = self.base;
        let json = self.event();
        json.raw("{\"ph\":\"X\",\"cat\":\"").raw(category).raw("\",\"name\":").raw(name);
        json.raw(",\"pid\":").number(track.pid).raw(",\"tid\":").number(track.tid);
        json.raw(",\"ts\":").micros(start.saturating_sub(base));
        json.raw(",\"dur\":").micros(end.saturating_sub(start)).raw(",\"args\":{")
    }

    /// One end of a flow.
    pub(super) fn flow(&mut self, is_end: bool, category: &str, id: u64, track: Track, time: u64) {
        let base = self.base;
        let json = self.event();
        json.raw(if is_end { "{\"ph\":\"f\",\"bp\":\"e\",\"id\":" } else { "{\"ph\":\"s\",\"id\":" })
            .number(id);
        json.raw(",\"pid\":").number(track.pid).raw(",\"tid\":").number(track.tid);
        json.raw(",\"ts\":").micros(time.saturating_sub(base));
        json.raw(",\"cat\":\"").raw(category).raw("\",\"name\":\"").raw(category).raw("\"}");
    }

    /// A mark without a duration, `scope` being `t` for a thread's and `g` for all; arguments
    /// follow.
    pub(super) fn instant(&mut self, scope: &str, name: &str, track: Track, time: u64) -> &mut Json<'a> {
        let base = self.base;
        let json = self.event();
        json.raw("{\"ph\":\"i\",\"s\":\"").raw(scope).raw("\",\"name\":\"").raw(name);
        json.raw("\",\"pid\":").number(track.pid).raw(",\"tid\":").number(track.tid);
        json.raw(",\"ts\":").micros(time.saturating_sub(base))
    }

    /// The session itself, and the end of the file.
    fn marks(&mut self) {
        let (start, end) = (self.trace.start, self.trace.end);
        let track = Track { pid: names::SPANS_PROCESS, tid: 1 };
        self.slice("Trace", &quoted(names::SPAN), track, (start, end)).raw("\"Op count\":0}}");
        self.instant("g", "Iteration Start: PyTorch Profiler", track, start).raw("}");
        self.instant("g", "Record Window End", track, end).raw("}");
        let about = &self.trace.about;
        let name = format!("{}_{}.{start}.pt.trace.json", about.host, about.pid);
        self.json.raw("\n],\"traceName\":").text(&name).raw("}\n");
    }

    /// Where a host event is shown.
    pub(super) fn track_of(&self, record: &Record) -> Track {
        Track { pid: self.pid, tid: self.trace.threads[record.thread as usize].tid }
    }

    /// The host event with this index.
    pub(super) fn record(&self, index: u32) -> Option<&'a Record> {
        if index == NONE { None } else { self.trace.records.get(index as usize) }
    }
}

/// A row of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// A name as it is written, and the exact one if that differs.
pub(super) fn written(name: &str) -> (String, Option<String>) {
    let shown = visible(name);
    let exact = (shown != name).then(|| quoted(name));
    (quoted(&shown), exact)
}
