//! speedscope's own format: calls by name alone.
//!
//! From a Chrome trace, speedscope makes a frame of each name with its arguments, and looks for it
//! among all that began in the same call; with a number of its own on each, that takes minutes
//! for a hundred thousand of them. Here a name is one frame.

use super::file;
use super::json::Json;
use crate::error::Result;
use crate::trace::{Record, Trace};
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Writes `trace` to `path`: a profile per thread and per stream of a device.
pub(crate) fn export(trace: &Trace, path: &Path) -> Result<()> {
    file::write(path, |sink| {
        let mut json = Json::new(sink);
        json.raw(
            "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"cresset\"",
        );
        json.raw(",\"name\":").text(&trace.about.process).raw(",\"shared\":{\"frames\":");
        let frames = Frames::of(trace);
        json.list(&frames.names, |json, name| {
            json.raw("{\"name\":").text(name).raw("}");
        });
        json.raw("},\"profiles\":[");
        let mut profiles = Profiles { trace, json, is_first: true };
        for of_thread in trace.records.chunk_by(|a, b| a.thread == b.thread) {
            profiles.thread(of_thread)?;
        }
        for of_stream in trace.work.chunk_by(|a, b| a.track() == b.track()) {
            let (device, stream) = of_stream[0].track();
            profiles.begin(&format!("{device} stream {stream}"));
            for work in of_stream {
                let frame = frames.of_work[&*work.activity.name];
                profiles.edge('O', frame, work.activity.start)?;
                profiles.edge('C', frame, work.activity.end)?;
            }
            profiles.end();
        }
        profiles.json.raw("]}\n");
        profiles.json.flush()
    })
}

/// All names, each once for the host and once for devices.
struct Frames<'a> {
    names: Vec<&'a str>,
    of_work: HashMap<&'a str, u32>,
}

impl<'a> Frames<'a> {
    fn of(trace: &'a Trace) -> Frames<'a> {
        let mut names: Vec<&str> = trace.names.all().iter().map(|name| &**name).collect();
        let mut of_work = HashMap::new();
        for work in &trace.work {
            of_work.entry(&*work.activity.name).or_insert_with(|| {
                names.push(&work.activity.name);
                names.len() as u32 - 1
            });
        }
        Frames { names, of_work }
    }
}

struct Profiles<'a> {
    trace: &'a Trace,
    json: Json<'a>,
    /// Whether nothing was written to the current list yet.
    is_first: bool,
}

impl Profiles<'_> {
    /// One thread's calls: each is opened, and closed when one begins that does not lie in it.
    fn thread(&mut self, records: &[Record]) -> io::Result<()> {
        let Some(first) = records.first() else { return Ok(()) };
        let thread = &self.trace.threads[first.thread as usize];
        let name = thread.name.as_ref().unwrap_or(&self.trace.about.process);
        self.begin(&format!("{name}, thread {}", thread.tid));
        let mut open: Vec<&Record> = Vec::new();
        for record in records {
            for done in open.drain(record.depth as usize..).rev() {
                self.edge('C', done.name, done.end)?;
            }
            self.edge('O', record.name, record.start)?;
            open.push(record);
        }
        for done in open.into_iter().rev() {
            self.edge('C', done.name, done.end)?;
        }
        self.end();
        Ok(())
    }

    fn begin(&mut self, name: &str) {
        let length = self.trace.end - self.trace.start;
        self.json.raw(if self.is_first { "\n" } else { ",\n" });
        self.json.raw("{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":").text(name);
        self.json.raw(",\"startValue\":0,\"endValue\":").number(length).raw(",\"events\":[");
        self.is_first = true;
    }

    fn edge(&mut self, kind: char, frame: u32, time: u64) -> io::Result<()> {
        self.json.raw(if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" });
        self.json.raw(if kind == 'O' { "{\"type\":\"O\",\"frame\":" } else { "{\"type\":\"C\",\"frame\":" });
        self.json.number(frame).raw(",\"at\":").number(time.saturating_sub(self.trace.start)).raw("}");
        self.json.flush_if_full()
    }

    fn end(&mut self) {
        self.json.raw("]}");
        self.is_first = false;
    }
}
