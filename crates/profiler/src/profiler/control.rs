//! A profiler moved by hand: a trace made ready, started and stopped, and activities switched on
//! and off while it runs.

use super::Profiler;
use crate::builder::Activity;
use crate::error::{Error, Result};
use crate::session;

/// How far a trace is that is moved by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Prepared,
    Started,
}

impl Profiler {
    /// Makes devices ready for a trace, which [`start_trace`](Profiler::start_trace) then begins
    /// at once. For programs that have their own idea of steps; others use
    /// [`start`](Profiler::start).
    ///
    /// ```
    /// use cresset_profiler::{Profiler, record_function};
    /// let mut profiler = Profiler::builder().build()?;
    /// profiler.prepare_trace()?;
    /// profiler.start_trace()?;
    /// record_function("work").run(|| ());
    /// profiler.stop_trace()?;
    /// assert_eq!(profiler.events()?.count(), 1);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// A trace is on its way already, or a device failed; in the latter case it is ready all the
    /// same.
    pub fn prepare_trace(&mut self) -> Result<()> {
        self.expect_stage(None, "prepare a trace", "one is on its way already, call stop_trace() first")?;
        self.stage = Some(Stage::Prepared);
        let outcome = self.prepare();
        self.passed_on(outcome)
    }

    /// Begins the trace that was made ready.
    ///
    /// ```
    /// # use cresset_profiler::Profiler;
    /// let mut profiler = Profiler::builder().build()?;
    /// assert!(profiler.start_trace().is_err(), "it is not ready yet");
    /// profiler.prepare_trace()?;
    /// profiler.start_trace()?;
    /// assert!(profiler.is_running());
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// None was made ready, or it has begun already.
    pub fn start_trace(&mut self) -> Result<()> {
        self.expect_stage(Some(Stage::Prepared), "start a trace", "call prepare_trace() first")?;
        self.record(self.step)?;
        self.stage = Some(Stage::Started);
        self.start_observer()
    }

    /// Ends the trace, which can be read and exported from here on. `on_trace_ready` is not run.
    ///
    /// ```
    /// # use cresset_profiler::{Profiler, record_function};
    /// let mut profiler = Profiler::builder().build()?;
    /// for round in 0..2 {
    ///     profiler.prepare_trace()?;
    ///     profiler.start_trace()?;
    ///     record_function!("round {round}").run(|| ());
    ///     profiler.stop_trace()?;
    /// }
    /// assert_eq!(profiler.events()?.next().unwrap().name(), "round 1");
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// None was begun, or a device failed; in the latter case the host's events are kept.
    pub fn stop_trace(&mut self) -> Result<()> {
        self.expect_stage(Some(Stage::Started), "stop a trace", "call start_trace() first")?;
        self.stage = None;
        let outcome = self.finish(None);
        self.passed_on(outcome)
    }

    fn expect_stage(&self, stage: Option<Stage>, action: &'static str, rule: &'static str) -> Result<()> {
        if self.action.is_some() {
            return Err(Error::OutOfOrder { action, rule: "start() has taken over, call stop() first" });
        }
        if self.stage == stage { Ok(()) } else { Err(Error::OutOfOrder { action, rule }) }
    }

    /// Switches the recording of some activities off, or on again, from here on. Calls that are
    /// under way are not cut.
    ///
    /// ```
    /// use cresset_profiler::{Activity, Profiler, record_function};
    /// let mut profiler = Profiler::builder().start()?;
    /// profiler.toggle_collection_dynamic(false, &[Activity::Cpu])?;
    /// record_function("not seen").run(|| ());
    /// profiler.toggle_collection_dynamic(true, &[Activity::Cpu])?;
    /// record_function("seen").run(|| ());
    /// profiler.stop()?;
    /// assert_eq!(profiler.events()?.count(), 1);
    /// # Ok::<(), cresset_profiler::Error>(())
    /// ```
    ///
    /// # Errors
    /// Nothing is being recorded, or devices are to be switched on and were never watched.
    pub fn toggle_collection_dynamic(&mut self, enable: bool, activities: &[Activity]) -> Result<()> {
        let recording = self.session.as_mut().filter(|session| session.is_recording());
        let Some(session) = recording else { return Err(Error::NotRunning { action: "toggle activities" }) };
        let tick = session::now();
        activities.iter().try_for_each(|&activity| session.toggle(activity, enable, tick))
    }
}
