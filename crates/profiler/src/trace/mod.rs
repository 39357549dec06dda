//! A finished recording: everything joined, nothing more to come.

mod build;
mod carry;
mod device_event;
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
pub use device_event::DeviceEvent;
pub use event::Event;
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
use crate::export::speedscope;
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
///
/// ```
/// use cresset_profiler::{Profiler, Trace, record_function};
/// fn busiest(trace: &Trace) -> Option<&str> {
///     Some(trace.events().max_by_key(|event| event.self_time())?.name())
/// }
/// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
/// assert_eq!(busiest(profiler.trace()?), Some("work"));
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
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
///
/// ```
/// # use cresset_profiler::{Profiler, record_function};
/// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
/// let (_, profiler) = Profiler::builder().run(|_| body())?;
/// let thread = profiler.events()?.next().unwrap().thread();
/// println!("thread {} is called {:?}", thread.tid, thread.name);
/// # assert!(thread.number > 0);
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
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
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let trace = profiler.trace()?;
    /// assert_eq!((trace.events().len(), trace.events().next_back().unwrap().name()), (2, "inner"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn events(&self) -> impl ExactSizeIterator<Item = Event<'_>> + DoubleEndedIterator {
        (0..self.records.len() as u32).map(|i| Event::new(self, i).expect("the index is within the trace"))
    }

    /// Only what it is, without what happened.
    pub(crate) fn without_events(self) -> Trace {
        let (memory, work, links) = (Memory::default(), Vec::new(), Vec::new());
        Trace { records: Vec::new(), details: Vec::new(), launches: Vec::new(), memory, work, links, ..self }
    }

    /// The event with this [index](Event::index).
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let trace = profiler.trace()?;
    /// assert_eq!(trace.event(0).unwrap().name(), "outer");
    /// assert!(trace.event(2).is_none());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn event(&self, index: usize) -> Option<Event<'_>> {
        Event::new(self, u32::try_from(index).ok()?)
    }

    /// What devices did, by device, stream and time.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let work: Vec<_> = profiler.trace()?.device_events().map(|work| (work.name(), work.duration())).collect();
    /// assert_eq!(work, [("Add", 3000)]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn device_events(&self) -> impl ExactSizeIterator<Item = DeviceEvent<'_>> {
        self.work.iter().map(|work| DeviceEvent { trace: self, work })
    }

    /// What allocators reported, by time; empty unless `profile_memory` was on.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder().profile_memory(true).run(|_| [64, 32].map(allocate))?;
    /// let totals: Vec<u64> =
    ///     profiler.trace()?.memory_events().iter().map(|event| event.report.allocated).collect();
    /// assert_eq!(totals, [64, 96]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn memory_events(&self) -> &[MemoryEvent] {
        &self.memory.events
    }

    /// Forward calls and the derivatives they caused, in the order the latter ran.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder().run(|_| {
    ///     operator("aten::mul").sequence(0, 0).run(|| ());
    ///     operator("MulBackward0").kind(Kind::Backward).sequence(0, thread::number()).run(|| ());
    /// })?;
    /// let (forward, backward) = profiler.trace()?.links().next().unwrap();
    /// assert_eq!((forward.name(), backward.name()), ("aten::mul", "MulBackward0"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn links(&self) -> impl ExactSizeIterator<Item = (Event<'_>, Event<'_>)> {
        let event = |index| Event::new(self, index).expect("a link is between events of the trace");
        self.links.iter().map(move |link| (event(link.forward), event(link.backward)))
    }

    /// The devices that were watched.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// assert_eq!(profiler.trace()?.devices()[0].name, "made up");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn devices(&self) -> &[Properties] {
        &self.devices
    }

    /// When the session started and ended, in nanoseconds since 1970.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let (start, end) = profiler.trace()?.window();
    /// assert!(end - start >= profiler.events()?.next().unwrap().duration());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn window(&self) -> (u64, u64) {
        (self.start, self.end)
    }

    /// A name for this trace that no other has.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// assert_eq!(profiler.trace()?.trace_id().len(), 32);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn trace_id(&self) -> &str {
        &self.about.trace_id
    }

    /// Writes the trace for Perfetto, chrome://tracing, TensorBoard and others; compressed if
    /// the path ends in `.gz`. The file appears whole or not at all, and exporting again
    /// gives the same bytes.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-chrome-{}.json", std::process::id()));
    /// profiler.trace()?.export_chrome_trace(&path)?;
    /// assert!(std::fs::read_to_string(&path).unwrap().contains("\"name\":\"inner\""));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        chrome::export(self, path.as_ref(), Spelling::Own)
    }

    /// The same with the device's library calls spelled as CUDA's, which is all that some
    /// tools (Holistic Trace Analysis) understand.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// # npu();
    /// let body = || operator("aten::add").on(npu()).run(|| launch("Add", 3000));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-cuda-{}.json", std::process::id()));
    /// profiler.trace()?.export_chrome_trace_as_cuda(&path)?;
    /// assert!(std::fs::read_to_string(&path).unwrap().contains("\"cudaLaunchKernel\""));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
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

    /// Writes the trace in speedscope's own format, a profile per thread and stream. It opens Chrome
    /// traces as well, but takes minutes where a hundred thousand calls lie side by side; here a
    /// million are a matter of seconds.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-speedscope-{}.json", std::process::id()));
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
    /// profiler.trace()?.export_speedscope(&path)?;
    /// assert!(std::fs::read_to_string(&path).unwrap().contains(r#""frames":[{"name":"work"}]"#));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn export_speedscope(&self, path: impl AsRef<Path>) -> Result<()> {
        speedscope::export(self, path.as_ref())
    }

    /// What became of every piece of memory on all devices, by time.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::{MemoryAction, Profiler};
    /// let builder = Profiler::builder().record_shapes(true).profile_memory(true).with_stack(true);
    /// let (_, profiler) = builder.run(|_| operator("aten::empty").run(|| allocate(64)))?;
    /// let taken: u64 = profiler.trace()?.memory_timeline()?.iter().map(|change| change.bytes).sum();
    /// assert_eq!(taken, 64);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
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
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-html-{}.html", std::process::id()));
    /// profiler.trace()?.html_report().write(&path)?;
    /// assert!(path.exists());
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn html_report(&self) -> HtmlReport<'_> {
        HtmlReport::new(self)
    }

    /// Writes where time was spent, one line per stack: frames from the outermost on, joined by
    /// semicolons, and microseconds. inferno, flamegraph.pl and speedscope read it.
    ///
    /// `metric` is `self_cpu_time_total`, or `self_device_time_total` for the device time of what
    /// was launched there.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let body = || record_function("outer").run(|| record_function("inner").run(|| ()));
    /// let (_, profiler) = Profiler::builder().run(|_| body())?;
    /// let error = profiler.trace()?.export_stacks("stacks.txt", "self_cpu_time_total").unwrap_err();
    /// assert!(error.to_string().contains("with_stack"), "{error}");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
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
