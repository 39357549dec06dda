//! A finished recording: everything joined, nothing more to come.

mod build;
mod carry;
mod event;
mod launch;
mod link;
mod memory;
mod modules;
mod order;
mod record;
mod stacks;
mod tree;
mod work;

pub(crate) use build::{Material, Piece, Steps, build};
pub(crate) use carry::Carry;
pub use event::{DeviceEvent, Event};
pub(crate) use link::Link;
pub(crate) use memory::Memory;
pub use memory::{MemoryEvent, MemoryUse};
pub use record::{EventKind, Phase};
pub(crate) use record::{NONE, Names, Record};
pub(crate) use stacks::Stacks;
pub(crate) use work::DeviceWork;

use crate::error::{Error, Result};
use crate::export::chrome::{self, Spelling};
use crate::export::report::HtmlReport;
use crate::export::stacks as stacks_file;
use crate::export::timeline;
use crate::memory::{MemoryChange, Timeline};
use crate::metadata::Metadata;
use crate::recorder::Wants;
use cresset_dispatch::Device;
use cresset_dispatch::activity::{Activity, Properties};
use std::collections::HashMap;
use std::path::Path;

/// What one session saw, from its start to its stop.
///
/// Events are kept thread by thread, each thread's in the order they started.
#[derive(Debug)]
pub struct Trace {
    pub(crate) about: About,
    pub(crate) wants: Wants,
    /// In nanoseconds since 1970.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) threads: Vec<Thread>,
    pub(crate) names: Names,
    /// Packed arguments.
    pub(crate) details: Vec<u8>,
    pub(crate) records: Vec<Record>,
    pub(crate) links: Vec<Link>,
    pub(crate) stacks: Stacks,
    pub(crate) launches: Vec<Activity>,
    pub(crate) work: Vec<DeviceWork>,
    pub(crate) memory: Memory,
    pub(crate) devices: Vec<Properties>,
    /// Of a piece of a recording: when each stream was at work in earlier pieces, and from when on
    /// there are later ones.
    pub(crate) busy: HashMap<(Device, u32), u64>,
    pub(crate) more_from: Option<u64>,
}

/// Where a trace comes from.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) trace_id: String,
    pub(crate) host: String,
    pub(crate) process: String,
    pub(crate) pid: u32,
    pub(crate) metadata: Metadata,
}

/// A thread of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The number calls know it by; 0 if it made none.
    pub number: u32,
    /// The operating system's number.
    pub tid: u32,
    /// The name it was given.
    pub name: Option<String>,
}

impl Trace {
    /// What the host did.
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event<'_>> + DoubleEndedIterator {
        (0..self.records.len() as u32).map(|i| Event::new(self, i).expect("the index is within the trace"))
    }

    /// Only what it is, without what happened.
    pub(crate) fn without_events(self) -> Trace {
        let (memory, work, links) = (Memory::default(), Vec::new(), Vec::new());
        Trace { records: Vec::new(), details: Vec::new(), launches: Vec::new(), memory, work, links, ..self }
    }

    /// The event with this [index](Event::index).
    pub fn event(&self, index: usize) -> Option<Event<'_>> {
        Event::new(self, u32::try_from(index).ok()?)
    }

    /// What devices did, by device, stream and time.
    pub fn device_events(&self) -> impl ExactSizeIterator<Item = DeviceEvent<'_>> {
        self.work.iter().map(|work| DeviceEvent { trace: self, work })
    }

    /// What allocators reported, by time; empty unless `profile_memory` was on.
    pub fn memory_events(&self) -> &[MemoryEvent] {
        &self.memory.events
    }

    /// Forward calls and the derivatives they caused, in the order the latter ran.
    pub fn links(&self) -> impl ExactSizeIterator<Item = (Event<'_>, Event<'_>)> {
        let event = |index| Event::new(self, index).expect("a link is between events of the trace");
        self.links.iter().map(move |link| (event(link.forward), event(link.backward)))
    }

    /// The devices that were watched.
    pub fn devices(&self) -> &[Properties] {
        &self.devices
    }

    /// When the session started and ended, in nanoseconds since 1970.
    pub fn window(&self) -> (u64, u64) {
        (self.start, self.end)
    }

    /// A name for this trace that no other has.
    pub fn trace_id(&self) -> &str {
        &self.about.trace_id
    }

    /// Writes the trace for Perfetto, chrome://tracing, TensorBoard and others; compressed if
    /// the path ends in `.gz`. The file appears whole or not at all, and exporting again
    /// gives the same bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        chrome::export(self, path.as_ref(), Spelling::Own)
    }

    /// The same with the device's library calls spelled as CUDA's, which is all that some
    /// tools (Holistic Trace Analysis) understand.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn export_chrome_trace_as_cuda(&self, path: impl AsRef<Path>) -> Result<()> {
        chrome::export(self, path.as_ref(), Spelling::Cuda)
    }

    /// Writes the trace as one page that opens in any browser without a network: timeline,
    /// memory, phases, operators, kernels, speeds.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join("cresset-doc-report.html");
    /// use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
    /// profiler.trace()?.export_html(&path)?;
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn export_html(&self, path: impl AsRef<Path>) -> Result<()> {
        self.html_report().write(path)
    }

    /// What became of every piece of memory on all devices, by time.
    ///
    /// # Errors
    /// Not all of `record_shapes`, `profile_memory` and `with_stack` were on.
    pub fn memory_timeline(&self) -> Result<Vec<MemoryChange>> {
        match self.wants.identities() {
            true => Ok(Timeline::new(self).changes),
            false => Err(Error::MemoryNotProfiled),
        }
    }

    /// Writes how much memory of `device` was in use for what, over time. `None` is the first
    /// device that took any, the host only if there is no other.
    ///
    /// The ending of the path decides: `.html` is a picture, `raw.json.gz` a list of
    /// `[nanoseconds, action, bytes, category]`, anything else `[microseconds, bytes by
    /// category]`, compressed if it is `.gz`. Numbers and order are torch's.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join("cresset-doc-memory.html");
    /// use cresset_profiler::Profiler;
    /// let builder = Profiler::builder().record_shapes(true).profile_memory(true).with_stack(true);
    /// let (_, profiler) = builder.run(|_| ())?;
    /// profiler.trace()?.export_memory_timeline(&path, None)?;
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Not all of `record_shapes`, `profile_memory` and `with_stack` were on, or the file cannot
    /// be written.
    pub fn export_memory_timeline(
        &self,
        path: impl AsRef<Path>,
        device: impl Into<Option<Device>>,
    ) -> Result<()> {
        let mut changes = self.memory_timeline()?;
        let other = changes.iter().map(|change| change.device).find(|device| !device.is_cpu());
        let device = device.into().or(other).unwrap_or(Device::CPU);
        changes.retain(|change| change.device == device);
        timeline::export(&changes, &device.to_string(), path.as_ref())
    }

    /// The same page, to be told the machine's [peak](crate::Peak) before it is written.
    pub fn html_report(&self) -> HtmlReport<'_> {
        HtmlReport::new(self)
    }

    /// Writes where time was spent, one line per stack: frames from the outermost on, joined by
    /// semicolons, and microseconds. inferno, flamegraph.pl and speedscope read it.
    ///
    /// `metric` is `self_cpu_time_total`, or `self_device_time_total` for the device time of what
    /// was launched there.
    ///
    /// # Errors
    /// There is no such metric, stacks were not recorded, or the file cannot be written.
    pub fn export_stacks(&self, path: impl AsRef<Path>, metric: &str) -> Result<()> {
        stacks_file::export([self], path.as_ref(), metric)
    }
}

/// The length of the packed record at `at`.
fn length_at(details: &[u8], at: usize) -> usize {
    let head = details.get(at..).and_then(|rest| rest.first_chunk());
    head.map_or(0, |&bytes| u32::from_le_bytes(bytes) as usize)
}
