//! What to record, chosen before it starts.

use crate::device;
use crate::error::{BoxError, Error, Result};
use crate::execution::WindowObserver;
use crate::metadata::Metadata;
use crate::profiler::{Handler, Profiler};
use crate::recorder::Wants;
use crate::schedule::Schedule;
use crate::warning::Warning;
use std::path::PathBuf;
use std::str::FromStr;

/// A side of the machine that can be watched.
///
/// ```
/// use cresset_profiler::{Activity, Profiler};
/// assert_eq!("NPU".parse::<Activity>()?, Activity::Device);
/// let profiler = Profiler::builder().activities([Activity::Cpu]).build()?;
/// assert!("tpu".parse::<Activity>().is_err());
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Operators and scopes, on the host.
    Cpu,
    /// Kernels and copies, on devices.
    Device,
}

impl FromStr for Activity {
    type Err = Error;

    fn from_str(name: &str) -> Result<Activity> {
        match name.to_ascii_lowercase().as_str() {
            "cpu" => Ok(Activity::Cpu),
            "device" | "npu" | "privateuse1" => Ok(Activity::Device),
            _ => Err(Error::UnknownActivity { asked: name.to_owned() }),
        }
    }
}

/// Makes a [`Profiler`]. Nothing is on by default but operators, scopes and devices.
///
/// ```
/// use cresset_profiler::{Builder, Profiler, record_function};
/// let builder: Builder = Profiler::builder().record_shapes(true).profile_memory(true);
/// let (sum, profiler) = builder.run(|_| record_function("sum").run(|| 1 + 1))?;
/// assert_eq!((sum, profiler.events()?.count()), (2, 1));
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    pub(crate) activities: Option<Vec<Activity>>,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) handler: Option<Handler>,
    pub(crate) trace_id: Option<Box<dyn FnMut() -> String + Send>>,
    pub(crate) observer: Option<Box<dyn WindowObserver>>,
    pub(crate) wants: Wants,
    pub(crate) acc_events: bool,
    pub(crate) stream: Option<PathBuf>,
    pub(crate) metadata: Metadata,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            activities: None,
            schedule: None,
            handler: None,
            trace_id: None,
            observer: None,
            wants: Wants { all_threads: true, ..Wants::default() },
            acc_events: false,
            stream: None,
            metadata: Metadata::default(),
        }
    }

    /// What to watch. By default the host and devices, those too that are made ready while a
    /// trace is recorded.
    ///
    /// ```
    /// # use cresset_profiler::{Activity, Profiler};
    /// let host_only = Profiler::builder().activities([Activity::Cpu]).build()?;
    /// assert!(Profiler::builder().activities([]).build().is_err());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn activities(mut self, activities: impl IntoIterator<Item = Activity>) -> Builder {
        self.activities = Some(activities.into_iter().collect());
        self
    }

    /// Which steps to record. Without a schedule all are, as one trace.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, Schedule, record_function};
    /// let schedule = Schedule::new(1, 1, 2)?.repeat(1);
    /// let mut profiler = Profiler::builder().schedule(schedule).start()?;
    /// for _ in 0..6 {
    ///     record_function("batch").run(|| ());
    ///     profiler.step()?;
    /// }
    /// profiler.stop()?;
    /// assert_eq!(profiler.key_averages()?.iter().find(|row| row.key == "batch").unwrap().count, 2);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn schedule(mut self, schedule: Schedule) -> Builder {
        self.schedule = Some(schedule);
        self
    }

    /// Runs whenever a trace is complete: at the end of each cycle of the schedule, and at
    /// the stop if that is inside a recorded part. Its error is returned by the
    /// [`step`](Profiler::step) or [`stop`](Profiler::stop) that ran it.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, Schedule};
    /// let (sender, ready) = std::sync::mpsc::channel();
    /// let mut profiler = Profiler::builder()
    ///     .schedule(Schedule::new(0, 1, 1)?)
    ///     .on_trace_ready(move |profiler| sender.send(profiler.step_num()))
    ///     .start()?;
    /// (0..4).try_for_each(|_| profiler.step())?;
    /// assert_eq!(ready.try_iter().collect::<Vec<_>>(), [2, 4]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn on_trace_ready<E: Into<BoxError>>(
        mut self,
        mut handler: impl FnMut(&Profiler) -> std::result::Result<(), E> + Send + 'static,
    ) -> Builder {
        self.handler = Some(Box::new(move |profiler| handler(profiler).map_err(Into::into)));
        self
    }

    /// Records the arguments of operators. Adds about 30 ns per call.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) =
    ///     Profiler::builder().record_shapes(true).run(|_| operator("aten::t").shape(&[2, 3]).run(|| ()))?;
    /// assert_eq!(profiler.events()?.next().unwrap().input_shapes().as_deref(), Some("[[2, 3]]"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn record_shapes(mut self, on: bool) -> Builder {
        self.wants.shapes = on;
        self
    }

    /// Records what allocators take and give back.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) =
    ///     Profiler::builder().profile_memory(true).run(|_| operator("aten::empty").run(|| allocate(64)))?;
    /// assert_eq!(profiler.events()?.next().unwrap().memory().unwrap().delta(), 64);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn profile_memory(mut self, on: bool) -> Builder {
        self.wants.memory = on;
        self
    }

    /// Records floating-point operations, and with them the arguments.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) =
    ///     Profiler::builder().with_flops(true).run(|_| operator("aten::mm").flops(48).run(|| ()))?;
    /// assert_eq!(profiler.key_averages()?[0].flops, 48);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn with_flops(mut self, on: bool) -> Builder {
        self.wants.flops = on;
        self
    }

    /// Records where operators and scopes were called from, as `file:line:function`.
    ///
    /// Adds about 0.1 us per call in a program with frame pointers, and several where the
    /// unwinder must do the work: [`stack_source`](crate::stack_source) tells which. A program
    /// without line tables (`debug = "line-tables-only"`) has only names of functions to show.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) =
    ///     Profiler::builder().with_stack(true).run(|_| record_function("here").run(|| ()))?;
    /// println!("{}", profiler.events()?.next().unwrap().stack().unwrap()[0]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn with_stack(mut self, on: bool) -> Builder {
        self.wants.stack = on;
        self
    }

    /// Records which overload of an operator was called: `aten::add` is then `aten::add.Tensor`
    /// in traces, and tables can be [grouped](crate::Grouping::by_overload_name) by it.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder()
    ///     .capture_overload_names(true)
    ///     .run(|_| operator("aten::add").schema("aten::add.Tensor(Tensor self)").run(|| ()))?;
    /// assert_eq!(profiler.events()?.next().unwrap().overload_name(), Some("Tensor"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn capture_overload_names(mut self, on: bool) -> Builder {
        self.wants.overloads = on;
        self
    }

    /// Records calls of modules, as `nn.Module: Linear_0`: those made through the module's `call`.
    ///
    /// ```
    /// # mod calls { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/calls.rs")); } use calls::*;
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder()
    ///     .with_modules(true)
    ///     .run(|_| operator("Linear").kind(Kind::Module).run(|| ()))?;
    /// assert_eq!(profiler.events()?.next().unwrap().name(), "nn.Module: Linear_0");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn with_modules(mut self, on: bool) -> Builder {
        self.wants.modules = on;
        self
    }

    /// Sets one of torch's experimental options by name, for programs that read them from
    /// elsewhere.
    ///
    /// | option | here |
    /// |---|---|
    /// | `capture_overload_names` | as [`capture_overload_names`](Builder::capture_overload_names) |
    /// | `profile_all_threads` | as [`all_threads`](Builder::all_threads), which is on by default |
    /// | `verbose`, `adjust_timestamps`, `expose_kineto_event_metadata` | always on: stacks need no more than `with_stack`, device work never starts before its launch, and events have all there is |
    /// | `adjust_profiler_step`, `record_python_gc_info`, `enable_cuda_sync_events`, `disable_external_correlation`, `trace_only`, `performance_events`, `custom_profiler_config` | absent: there is no such thing to record here, or it has no use |
    ///
    /// ```
    /// use cresset_profiler::Profiler;
    /// let builder = Profiler::builder().experimental("capture_overload_names", true)?;
    /// assert!(builder.experimental("record_python_gc_info", true).is_err());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The option is absent, or it is always on and was to be off.
    pub fn experimental(self, option: &str, on: bool) -> Result<Builder> {
        let refuse = |rule: &str| Err(Error::Option { asked: option.to_owned(), rule: rule.to_owned() });
        match option {
            "capture_overload_names" => Ok(self.capture_overload_names(on)),
            "profile_all_threads" => Ok(self.all_threads(on)),
            "verbose" | "adjust_timestamps" | "expose_kineto_event_metadata" if on => Ok(self),
            "verbose" | "adjust_timestamps" | "expose_kineto_event_metadata" => refuse("it is always on"),
            _ => refuse(
                "legal options are capture_overload_names, profile_all_threads, verbose, adjust_timestamps, \
                 expose_kineto_event_metadata",
            ),
        }
    }

    /// Whether to record all threads, or only the one that starts the session. All by
    /// default; other threads pay nothing to speak of for a session that does not want them.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let load = || std::thread::spawn(|| record_function("load").run(|| ())).join().unwrap();
    /// let (_, all) = Profiler::builder().run(|_| load())?;
    /// let (_, mine) = Profiler::builder().all_threads(false).run(|_| load())?;
    /// assert_eq!((all.events()?.count(), mine.events()?.count()), (1, 0));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn all_threads(mut self, on: bool) -> Builder {
        self.wants.all_threads = on;
        self
    }

    /// Keeps the events of earlier cycles in [`events`](Profiler::events) and
    /// [`key_averages`](Profiler::key_averages). Otherwise each cycle starts clean.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, Schedule, record_function};
    /// let mut profiler =
    ///     Profiler::builder().schedule(Schedule::new(0, 0, 1)?.repeat(3)).acc_events(true).start()?;
    /// for _ in 0..3 {
    ///     record_function("batch").run(|| ());
    ///     profiler.step()?;
    /// }
    /// profiler.stop()?;
    /// assert_eq!(profiler.events()?.filter(|event| event.name() == "batch").count(), 3);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn acc_events(mut self, on: bool) -> Builder {
        self.acc_events = on;
        self
    }

    /// Writes events to the file `path` while the session runs, so that it may be longer than memory
    /// holds. [`key_averages`](Profiler::key_averages) and
    /// [`export_chrome_trace`](Profiler::export_chrome_trace) then work piece by piece; all else loads
    /// the whole recording first. What devices did is written there, too, as far as they tell it before
    /// the end. The file is for this profiler alone: nothing may be there yet, and it is removed with the
    /// profiler. A cycle of a schedule replaces the one before; while both are there, and with
    /// [`acc_events`](Builder::acc_events), those after the first are in `path.1`, `path.2` and so on.
    /// If the file cannot be written on, what was recorded until then is kept, and
    /// [`stop`](Profiler::stop) says why.
    ///
    /// ```
    /// # let directory = std::env::temp_dir();
    /// use cresset_profiler::{Profiler, record_function};
    /// let mut profiler = Profiler::builder().stream_to(directory.join("cresset-doc.stream")).start()?;
    /// (0..10_000).for_each(|_| record_function("step").run(|| ()));
    /// profiler.stop()?;
    /// assert_eq!(profiler.key_averages()?.iter().next().unwrap().count, 10_000);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn stream_to(mut self, path: impl Into<PathBuf>) -> Builder {
        self.stream = Some(path.into());
        self
    }

    /// Names each trace; by default by random numbers.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let (_, profiler) = Profiler::builder().custom_trace_id(|| "night run".to_owned()).run(|_| ())?;
    /// assert_eq!(profiler.trace()?.trace_id(), "night run");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn custom_trace_id(mut self, make: impl FnMut() -> String + Send + 'static) -> Builder {
        self.trace_id = Some(Box::new(make));
        self
    }

    /// Starts and stops `observer` with what is recorded, and ends it when the profiler stops: an
    /// [`ExecutionTrace`](crate::ExecutionTrace), or one of your own.
    ///
    /// ```
    /// # use cresset_profiler::{ExecutionTrace, Profiler, record_function};
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-observer-{}.json", std::process::id()));
    /// let observer = ExecutionTrace::new(&path);
    /// let builder = Profiler::builder().execution_trace_observer(observer);
    /// builder.run(|_| record_function("work").run(|| ()))?;
    /// assert!(std::fs::read_to_string(&path).unwrap().contains("\"work\""));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn execution_trace_observer(mut self, observer: impl WindowObserver + 'static) -> Builder {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Adds a piece of JSON to the head of each trace; text that is none is added as text.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let builder = Profiler::builder().preset_metadata_json("distributedInfo", r#"{"rank": 0}"#)?;
    /// assert!(builder.preset_metadata_json("traceEvents", "[]").is_err());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The format uses the key itself.
    pub fn preset_metadata_json(mut self, key: &str, raw: &str) -> Result<Builder> {
        self.metadata.add_json(key, raw)?;
        Ok(self)
    }

    /// The profiler, not yet started.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().build()?;
    /// assert!(!profiler.is_running());
    /// profiler.start()?;
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is nothing to watch: no activity was named, or only devices and there are none.
    pub fn build(self) -> Result<Profiler> {
        Profiler::new(self)
    }

    /// The profiler, started.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().start()?;
    /// assert!(profiler.is_running());
    /// profiler.stop()?;
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`build`](Builder::build) and [`Profiler::start`].
    pub fn start(self) -> Result<Profiler> {
        let mut profiler = self.build()?;
        profiler.start()?;
        Ok(profiler)
    }

    /// Records `body`. Returns what it returned, and the stopped profiler.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (answer, profiler) = Profiler::builder().run(|_| record_function("think").run(|| 42))?;
    /// assert_eq!(answer, 42);
    /// println!("{}", profiler.key_averages()?.table());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`start`](Builder::start) and [`Profiler::stop`].
    pub fn run<R>(self, body: impl FnOnce(&mut Profiler) -> R) -> Result<(R, Profiler)> {
        let mut profiler = self.build()?;
        let value = profiler.run(body)?;
        Ok((value, profiler))
    }

    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let names_device = self.activities.as_ref().is_some_and(|list| list.contains(&Activity::Device));
        let lacks_warmup = self.schedule.as_ref().is_some_and(Schedule::lacks_warmup);
        let warnings =
            [(lacks_warmup, Warning::NoWarmup), (names_device && !device::is_present(), Warning::NoDevice)];
        warnings.into_iter().filter(|(holds, _)| *holds).map(|(_, warning)| warning).collect()
    }

    /// Whether to watch the host, and devices.
    pub(crate) fn watched(&self) -> Result<(bool, bool)> {
        let asked = |activity| self.activities.as_ref().is_none_or(|list| list.contains(&activity));
        let watched = (asked(Activity::Cpu), asked(Activity::Device));
        let something = watched.0 || watched.1 && device::is_present();
        if something { Ok(watched) } else { Err(Error::NoActivities) }
    }
}
