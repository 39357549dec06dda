//! The profiler as programs use it.

mod control;

use crate::averages::{Averages, Grouping};
use crate::builder::Builder;
use crate::error::{BoxError, Error, Result};
use crate::export::chrome::{self, Spelling};
use crate::export::stacks;
use crate::host;
use crate::metadata::Metadata;
use crate::schedule::Action;
use crate::session::{self, Recording, Session};
use crate::trace::{About, Event, Trace};
use crate::warning::Warning;
use cresset_dispatch::Device;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use control::Stage;

pub(crate) type Handler = Box<dyn FnMut(&Profiler) -> std::result::Result<(), BoxError> + Send>;

/// Records what a program does between its start and its stop.
///
/// Any number of profilers may run at once, in one thread or many; each sees everything it
/// asked for. One that is dropped while it runs stops, and what it recorded is lost.
///
/// ```
/// use cresset_profiler::{Profiler, record_function};
/// let mut profiler = Profiler::builder().record_shapes(true).start()?;
/// record_function("work").run(|| ());
/// profiler.stop()?;
/// println!("{}", profiler.key_averages()?.table().sort_by("cpu_time_total")?);
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
pub struct Profiler {
    options: Builder,
    watched: (bool, bool),
    /// What the current step asks for; `None` when not running.
    action: Option<Action>,
    step: u64,
    session: Option<Session>,
    /// How far a trace is that is moved by hand.
    stage: Option<Stage>,
    warnings: Vec<Warning>,
    /// What a closure of the user's panicked with, until the profiler has done its part.
    panic: Option<Box<dyn Any + Send>>,
    /// Whether the observer was started and not stopped.
    observes: bool,
    trace_id: Option<String>,
    last: Option<Recording>,
    /// Those of earlier cycles, the latest first.
    earlier: Vec<Recording>,
}

impl Profiler {
    /// Chooses what to record.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let builder = Profiler::builder().record_shapes(true).with_flops(true);
    /// assert!(builder.start()?.is_running());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(options: Builder) -> Result<Profiler> {
        let watched = options.watched()?;
        let warnings = options.warnings();
        Ok(Profiler {
            options,
            watched,
            action: None,
            step: 0,
            session: None,
            stage: None,
            warnings,
            panic: None,
            observes: false,
            trace_id: None,
            last: None,
            earlier: Vec::new(),
        })
    }

    /// Starts with step 0.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().build()?;
    /// profiler.start()?;
    /// assert!(profiler.start().is_err(), "it runs already");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// It runs already, or a device could not be started. In the latter case it does run and
    /// records the host.
    pub fn start(&mut self) -> Result<()> {
        if self.action.is_some() || self.stage.is_some() {
            return Err(Error::AlreadyRunning);
        }
        self.step = 0;
        let outcome = self.enter(Action::None, self.action_of(0), 0, None);
        if let Err(Error::NoObserverSlot | Error::Write { .. }) = outcome {
            (self.action, self.session) = (None, None);
        }
        self.passed_on(outcome)
    }

    /// Ends the current step and begins the next.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let mut profiler = Profiler::builder().start()?;
    /// for _ in 0..3 {
    ///     record_function("batch").run(|| ());
    ///     profiler.step()?;
    /// }
    /// profiler.stop()?;
    /// assert_eq!(profiler.events()?.map(|event| event.step()).collect::<Vec<_>>(), [0, 1, 2]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// It is not running, a device failed, or the `on_trace_ready` handler did.
    pub fn step(&mut self) -> Result<()> {
        let Some(before) = self.action else { return Err(Error::NotRunning { action: "step" }) };
        let tick = session::now();
        // A schedule that panics does so before anything has changed.
        let after = self.action_of(self.step + 1);
        self.step += 1;
        let outcome = self.enter(before, after, self.step, Some(tick));
        self.passed_on(outcome)
    }

    /// Stops. What was recorded since the last save is handed to `on_trace_ready`.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let mut profiler = Profiler::builder().start()?;
    /// record_function("seen").run(|| ());
    /// profiler.stop()?;
    /// record_function("not seen").run(|| ());
    /// assert_eq!(profiler.events()?.count(), 1);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// It is not running, a device failed, or the handler did. The host's events are kept in
    /// any case.
    pub fn stop(&mut self) -> Result<()> {
        let Some(before) = self.action.take() else { return Err(Error::NotRunning { action: "stop" }) };
        let mut outcome = self.finish(None);
        outcome = outcome.and(self.options.observer.as_mut().map_or(Ok(()), |one| one.cleanup()));
        if before.is_recording() {
            outcome = outcome.and(self.ready());
        }
        self.passed_on(outcome)
    }

    /// Starts, runs `body` and stops. If `body` panics it stops as well, without a save.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let mut profiler = Profiler::builder().build()?;
    /// let sum = profiler.run(|profiler| {
    ///     record_function("first").run(|| ());
    ///     profiler.step().map(|()| 1 + 1)
    /// })??;
    /// assert_eq!((sum, profiler.events()?.count()), (2, 1));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`start`](Profiler::start) and [`stop`](Profiler::stop).
    pub fn run<R>(&mut self, body: impl FnOnce(&mut Profiler) -> R) -> Result<R> {
        struct Running<'a>(&'a mut Profiler);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                if self.0.action.take().is_some() {
                    // Only a panic gets here while running: it is what the caller hears of.
                    let _ = self.0.finish(None);
                }
            }
        }
        let running = Running(self);
        running.0.start()?;
        let value = body(running.0);
        if running.0.action.is_some() {
            running.0.stop()?;
        }
        Ok(value)
    }

    fn action_of(&self, step: u64) -> Action {
        self.options.schedule.as_ref().map_or(Action::Record, |schedule| schedule.action(step))
    }

    /// Goes from one step's action to the next one's: torch's table of transitions.
    fn enter(&mut self, before: Action, after: Action, step: u64, tick: Option<u64>) -> Result<()> {
        self.action = Some(after);
        let stays = after.is_recording() && before == Action::Record
            || (before, after) == (Action::Warmup, Action::Warmup);
        if stays {
            if let (Some(session), Some(tick)) = (&mut self.session, tick.filter(|_| after.is_recording())) {
                session.step(tick);
            }
            return Ok(());
        }
        match (before, after) {
            (Action::Warmup, Action::None) => self.warn(Warning::WarmupThenNone),
            (Action::Record, _) => self.warn(Warning::RecordWithoutSave),
            _ => {}
        }
        let leaves = before.is_recording() || (before, after) == (Action::Warmup, Action::None);
        let mut outcome = if leaves { self.finish(tick) } else { Ok(()) };
        if before == Action::RecordAndSave {
            outcome = outcome.and(self.ready());
        }
        if after != Action::None && self.session.is_none() {
            outcome = outcome.and(self.prepare());
        }
        if after.is_recording() && self.session.is_some() {
            outcome = outcome.and(self.record(step));
            outcome = outcome.and(self.start_observer());
        }
        outcome
    }

    fn prepare(&mut self) -> Result<()> {
        let named = self.options.trace_id.as_mut().map(|make| catch_unwind(AssertUnwindSafe(make)));
        let named = named.and_then(|outcome| outcome.map_err(|panic| self.panic = Some(panic)).ok());
        self.trace_id = Some(named.unwrap_or_else(host::trace_id));
        let (calls, devices) = self.watched;
        let (session, outcome) = Session::prepare(self.options.wants, calls, devices);
        self.session = Some(session);
        outcome
    }

    /// Lets the session record, if there is one, to the file if there is one.
    fn record(&mut self, step: u64) -> Result<()> {
        let file = self.options.stream.as_ref().map(|path| self.free_file(path));
        let Some(session) = &mut self.session else { return Ok(()) };
        session.start(step, file.as_deref())
    }

    /// The file for the next recording: `path`, or where an earlier one is there still, the first of
    /// `path.1`, `path.2` and so on.
    fn free_file(&self, path: &Path) -> PathBuf {
        let taken = |path: &Path| {
            let of = |recording: &Recording| match recording {
                Recording::File(streamed) => streamed.path() == path,
                Recording::Memory(_) => false,
            };
            self.last.iter().chain(&self.earlier).any(of)
        };
        let mut file = path.to_owned();
        let mut number = 0;
        while taken(&file) {
            number += 1;
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            file = name.into();
        }
        file
    }

    /// Ends the session, if there is one, and keeps its trace.
    fn finish(&mut self, tick: Option<u64>) -> Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        let observed = match &mut self.options.observer {
            Some(observer) if std::mem::take(&mut self.observes) => observer.stop(),
            _ => Ok(()),
        };
        let about = About {
            trace_id: self.trace_id.clone().unwrap_or_default(),
            host: host::name(),
            process: host::process(),
            pid: std::process::id(),
            metadata: self.options.metadata.clone().with_groups(),
        };
        let (recording, outcome) = session.stop(tick, self.options.schedule.is_some(), about);
        if let Some(recording) = recording {
            let earlier = self.last.replace(recording);
            if self.options.acc_events {
                self.earlier.splice(..0, earlier);
            } else if earlier.is_some() {
                self.warn(Warning::EventsReplaced);
            }
        }
        outcome.and(observed)
    }

    /// Tells the observer, if there is one, that recording has begun.
    fn start_observer(&mut self) -> Result<()> {
        self.observes = true;
        self.options.observer.as_mut().map_or(Ok(()), |observer| observer.start())
    }

    fn ready(&mut self) -> Result<()> {
        let Some(mut handler) = self.options.handler.take() else { return Ok(()) };
        // Put back also when it panics: the next trace is handed to it all the same.
        let outcome = catch_unwind(AssertUnwindSafe(|| handler(self)));
        self.options.handler = Some(handler);
        match outcome {
            Ok(outcome) => outcome.map_err(|source| Error::Handler { source }),
            Err(panic) => {
                self.panic = Some(panic);
                Ok(())
            }
        }
    }

    /// The outcome, now that everything is in its place; a panic of the user's comes first.
    fn passed_on(&mut self, outcome: Result<()>) -> Result<()> {
        match self.panic.take() {
            Some(panic) => resume_unwind(panic),
            None => outcome,
        }
    }

    fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// What may not be as it was meant, each once, in the order it was noticed. Nothing is
    /// printed.
    ///
    /// ```
    /// use cresset_profiler::{Profiler, Schedule, Warning};
    /// let profiler = Profiler::builder().schedule(Schedule::new(1, 0, 1)?).build()?;
    /// assert_eq!(profiler.warnings(), [Warning::NoWarmup]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Adds a text to the head of the trace: of this one if it is finished, and of all to come.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().start()?;
    /// profiler.add_metadata("commit", "1a2b3c \"dirty\"")?;
    /// assert!(profiler.add_metadata("traceEvents", "mine").is_err());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// A value is a text and nothing else:
    ///
    /// ```compile_fail,E0308
    /// # let mut profiler = cresset_profiler::Profiler::builder().start()?;
    /// profiler.add_metadata("ranks", 8)?;
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The format uses the key itself.
    pub fn add_metadata(&mut self, key: &str, value: &str) -> Result<()> {
        self.each_metadata(|metadata| metadata.add(key, value))
    }

    /// Adds a piece of JSON to the head of the trace; text that is none is added as text.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-metadata-{}.json", std::process::id()));
    /// let (_, mut profiler) = Profiler::builder().run(|_| ())?;
    /// profiler.add_metadata_json("distributedInfo", r#"{"rank":3,"world_size":8}"#)?;
    /// profiler.export_chrome_trace(&path)?;
    /// assert!(std::fs::read_to_string(&path).unwrap().contains(r#""rank": 3"#));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// The format uses the key itself.
    pub fn add_metadata_json(&mut self, key: &str, raw: &str) -> Result<()> {
        self.each_metadata(|metadata| metadata.add_json(key, raw))
    }

    fn each_metadata(&mut self, change: impl Fn(&mut Metadata) -> Result<()>) -> Result<()> {
        for metadata in self.last.iter_mut().flat_map(Recording::metadata) {
            change(metadata)?;
        }
        change(&mut self.options.metadata)
    }

    /// The last finished trace.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
    /// let (start, end) = profiler.trace()?.window();
    /// assert!(profiler.trace()?.events().all(|event| start <= event.start() && event.end() <= end));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet.
    pub fn trace(&self) -> Result<&Trace> {
        self.trace_for("read the trace")
    }

    fn trace_for(&self, action: &'static str) -> Result<&Trace> {
        self.last_for(action)?.trace()
    }

    fn last_for(&self, action: &'static str) -> Result<&Recording> {
        self.last.as_ref().ok_or(if self.is_running() {
            Error::StillRunning { action }
        } else {
            Error::NoTrace { action }
        })
    }

    /// The last trace, and those of earlier cycles.
    fn traces_for(&self, action: &'static str) -> Result<Vec<&Trace>> {
        let last = self.last_for(action)?;
        std::iter::once(last).chain(&self.earlier).map(Recording::trace).collect()
    }

    /// The last finished trace, for keeps.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, Trace, record_function};
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
    /// let trace: Trace = profiler.into_trace()?;
    /// assert_eq!(trace.events().len(), 1);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet.
    pub fn into_trace(mut self) -> Result<Trace> {
        self.last_for("take the trace")?;
        self.last.take().map_or(Err(Error::NoTrace { action: "take the trace" }), Recording::into_trace)
    }

    /// What the host did in the last cycle; with `acc_events` also in those before it.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) =
    ///     Profiler::builder().run(|_| record_function("outer").run(|| record_function("inner").run(|| ())))?;
    /// let names: Vec<&str> = profiler.events()?.map(|event| event.name()).collect();
    /// assert_eq!(names, ["outer", "inner"]);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet.
    pub fn events(&self) -> Result<impl Iterator<Item = Event<'_>>> {
        Ok(self.traces_for("read events")?.into_iter().flat_map(Trace::events))
    }

    /// Totals per name, of the same events as [`events`](Profiler::events).
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let (_, profiler) =
    ///     Profiler::builder().run(|_| (0..5).for_each(|_| record_function("batch").run(|| ())))?;
    /// let averages = profiler.key_averages()?;
    /// assert_eq!((&*averages[0].key, averages[0].count), ("batch", 5));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet.
    pub fn key_averages(&self) -> Result<Averages> {
        self.key_averages_by(Grouping::default())
    }

    /// Totals per name and whatever else `grouping` says.
    ///
    /// ```
    /// # use cresset_profiler::{Grouping, Profiler, record_function};
    /// let batch = || record_function("batch").run(|| ());
    /// let (_, profiler) = Profiler::builder().record_shapes(true).with_stack(true).run(|_| batch())?;
    /// let rows = profiler.key_averages_by(Grouping::default().by_input_shape(true).by_stack(5))?;
    /// assert_eq!((rows.len(), rows[0].stack.is_empty()), (1, false));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet.
    pub fn key_averages_by(&self, grouping: Grouping) -> Result<Averages> {
        let last = self.last_for("average events")?;
        Averages::of(std::iter::once(last).chain(&self.earlier), grouping)
    }

    /// Writes the last trace: see [`Trace::export_chrome_trace`].
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, check_trace, record_function};
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-trace-{}.json.gz", std::process::id()));
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
    /// profiler.export_chrome_trace(&path)?;
    /// assert!(check_trace(&path)?.passes(true));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet, or the file cannot be written.
    pub fn export_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        match self.last_for("export a trace")? {
            Recording::File(streamed) => {
                chrome::export_pieces(streamed.pieces()?, path.as_ref(), Spelling::Own)
            }
            Recording::Memory(trace) => trace.export_chrome_trace(path),
        }
    }

    /// Writes what memory was for, over time: see [`Trace::export_memory_timeline`].
    ///
    /// ```
    /// # use cresset_profiler::{Error, Profiler};
    /// let (_, profiler) = Profiler::builder().profile_memory(true).run(|_| ())?;
    /// let error = profiler.export_memory_timeline("memory.html", None).unwrap_err();
    /// assert!(matches!(error, Error::MemoryNotProfiled), "shapes and stacks are missing");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet, not all of `record_shapes`, `profile_memory` and `with_stack` were
    /// on, or the file cannot be written.
    pub fn export_memory_timeline(
        &self,
        path: impl AsRef<Path>,
        device: impl Into<Option<Device>>,
    ) -> Result<()> {
        self.trace_for("export a memory timeline")?.export_memory_timeline(path, device)
    }

    /// Writes the last trace as a page: see [`Trace::export_html`].
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-page-{}.html", std::process::id()));
    /// let (_, profiler) = Profiler::builder().run(|_| record_function("work").run(|| ()))?;
    /// profiler.export_html(&path)?;
    /// assert!(std::fs::read_to_string(&path).unwrap().contains("\"work\""));
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet, or the file cannot be written.
    pub fn export_html(&self, path: impl AsRef<Path>) -> Result<()> {
        self.trace_for("export a report")?.export_html(path)
    }

    /// Writes where time was spent, one line per stack, for flame graphs: see
    /// [`Trace::export_stacks`]. With `acc_events`, of earlier cycles too.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// # let path = std::env::temp_dir().join(format!("cresset-doc-stacks-{}.txt", std::process::id()));
    /// let (_, profiler) = Profiler::builder().with_stack(true).run(|_| {
    ///     record_function("work").run(|| std::thread::sleep(std::time::Duration::from_millis(1)))
    /// })?;
    /// profiler.export_stacks(&path, "self_cpu_time_total")?;
    /// let line = std::fs::read_to_string(&path).unwrap();
    /// let (_frames, microseconds) = line.trim().rsplit_once(' ').unwrap();
    /// assert!(microseconds.parse::<u64>().unwrap() >= 1000);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing was recorded yet, without stacks, there is no such metric, or the file cannot be
    /// written.
    pub fn export_stacks(&self, path: impl AsRef<Path>, metric: &str) -> Result<()> {
        stacks::export(self.traces_for("export stacks")?, path.as_ref(), metric)
    }

    /// The number of the current step.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().start()?;
    /// profiler.step()?;
    /// assert_eq!(profiler.step_num(), 1);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn step_num(&self) -> u64 {
        self.step
    }

    /// What is done in the current step; [`Action::None`] when not running.
    ///
    /// ```
    /// # use cresset_profiler::{Action, Profiler, Schedule};
    /// let mut profiler = Profiler::builder().schedule(Schedule::new(0, 1, 1)?).start()?;
    /// assert_eq!(profiler.current_action(), Action::Warmup);
    /// profiler.step()?;
    /// assert_eq!(profiler.current_action(), Action::RecordAndSave);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn current_action(&self) -> Action {
        self.action.unwrap_or(Action::None)
    }

    /// Whether it was started and not stopped.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().start()?;
    /// assert!(profiler.is_running());
    /// profiler.stop()?;
    /// assert!(!profiler.is_running());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn is_running(&self) -> bool {
        self.action.is_some() || self.stage.is_some()
    }

    /// Whether steps are events of their own, `ProfilerStep#0` and so on: under a schedule.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, Schedule};
    /// assert!(!Profiler::builder().build()?.record_steps());
    /// assert!(Profiler::builder().schedule(Schedule::new(0, 1, 1)?).build()?.record_steps());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn record_steps(&self) -> bool {
        self.options.schedule.is_some()
    }

    /// Names the traces to come.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().build()?;
    /// let mut run = 0;
    /// profiler.set_custom_trace_id(move || {
    ///     run += 1;
    ///     format!("run {run}")
    /// });
    /// profiler.run(|_| ())?;
    /// profiler.run(|_| ())?;
    /// assert_eq!(profiler.trace_id(), Some("run 2"));
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn set_custom_trace_id(&mut self, make: impl FnMut() -> String + Send + 'static) {
        self.options.trace_id = Some(Box::new(make));
    }

    /// The name of the trace being recorded, or of the last one.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().build()?;
    /// assert_eq!(profiler.trace_id(), None);
    /// profiler.start()?;
    /// assert_eq!(profiler.trace_id().unwrap().len(), 32);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    pub fn trace_id(&self) -> Option<&str> {
        self.trace_id.as_deref()
    }
}

impl fmt::Debug for Profiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profiler")
            .field("step", &self.step)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}
