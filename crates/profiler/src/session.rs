//! One recording from its start to its stop.

use crate::builder::Activity;
use crate::clock::{self, Anchor};
use crate::device::{Drained, Tap};
use crate::error::{Error, Result};
use crate::metadata::Metadata;
use crate::pauses::Pauses;
use crate::recorder::{Wants, Window};
use crate::stream::{Streamed, Writer};
use crate::trace::{About, Carry, Material, Steps, Trace, build};
use std::path::Path;
use std::sync::Arc;

/// A session that is getting ready or recording. Dropped, it leaves nothing behind.
pub(crate) struct Session {
    tap: Option<Arc<Tap>>,
    /// Before the window: what it writes must not be forgotten.
    writer: Option<Writer>,
    window: Option<Window>,
    wants: Wants,
    /// When host calls, and devices, were not to be seen.
    no_calls: Pauses,
    no_devices: Pauses,
    first_step: u64,
    /// When each step began, in ticks.
    steps: Vec<u64>,
}

impl Session {
    /// Gets devices ready. A device that fails is told of, and the session goes on without.
    pub(crate) fn prepare(wants: Wants, calls: bool, devices: bool) -> (Session, Result<()>) {
        let (tap, outcome) = if devices { Some(Tap::open()).unzip() } else { (None, None) };
        let tap = tap.map(Arc::new);
        let (mut no_calls, no_devices) = (Pauses::default(), Pauses::default());
        no_calls.turn(calls, 0);
        let session = Session {
            tap,
            writer: None,
            window: None,
            wants,
            no_calls,
            no_devices,
            first_step: 0,
            steps: Vec::new(),
        };
        (session, outcome.unwrap_or(Ok(())))
    }

    /// Starts to record, in step number `step`; to the file `stream` if there is one.
    pub(crate) fn start(&mut self, step: u64, stream: Option<&Path>) -> Result<()> {
        let window = Window::open(self.wants)?;
        self.writer = stream.map(|path| Writer::start(path, window.view(), self.tap.clone())).transpose()?;
        self.first_step = step;
        self.steps.push(window.start.ticks);
        self.window = Some(window);
        Ok(())
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.window.is_some()
    }

    /// Switches an activity on or off, from `tick` on.
    pub(crate) fn toggle(&mut self, activity: Activity, on: bool, tick: u64) -> Result<()> {
        match activity {
            Activity::Cpu => self.no_calls.turn(on, tick),
            Activity::Device if on && self.tap.is_none() => return Err(Error::NotWatched { activity }),
            Activity::Device => self.no_devices.turn(on, tick),
        }
        if let (Some(window), Activity::Cpu) = (&self.window, activity) {
            window.record_calls(on);
        }
        Ok(())
    }

    /// Goes on to the next step.
    pub(crate) fn step(&mut self, tick: u64) {
        self.steps.push(tick);
    }

    /// Ends the recording. The last step ended at `tick`; `None` if it ends here. The trace
    /// is there also when a device failed.
    pub(crate) fn stop(
        self,
        tick: Option<u64>,
        shown: bool,
        about: About,
    ) -> (Option<Recording>, Result<()>) {
        let Some(window) = self.window else {
            return (None, close(self.tap));
        };
        let stop = Anchor::now();
        let drained = self.tap.as_ref().map(|tap| tap.drain());
        let Drained { activities, devices, outcome } =
            drained.unwrap_or(Drained { activities: Vec::new(), devices: Vec::new(), outcome: Ok(()) });
        let steps = Steps {
            first: self.first_step,
            starts: self.steps,
            end: tick.unwrap_or(stop.ticks),
            shown,
            thread: window.thread.number,
        };
        let material = Material {
            logs: window.logs(),
            wants: self.wants,
            no_calls: self.no_calls,
            no_devices: self.no_devices,
            start: window.start,
            stop,
            steps,
            activities,
            devices,
            about,
            piece: None,
        };
        let (recording, written) = match self.writer {
            None => {
                let trace = build(material, &mut Carry::default());
                (Some(Recording::Memory(Box::new(trace))), Ok(()))
            }
            Some(writer) => {
                let Material { activities, .. } = material;
                let material = Material { logs: Vec::new(), activities: Vec::new(), ..material };
                let (streamed, written) = writer.finish(stop, activities);
                (streamed.map(|streamed| Recording::File(Box::new(streamed.with(material)))), written)
            }
        };
        drop(window);
        (recording, written.and(outcome).and(close(self.tap)))
    }
}

/// Gives up a tap that nobody else has any more.
fn close(tap: Option<Arc<Tap>>) -> Result<()> {
    tap.and_then(Arc::into_inner).map_or(Ok(()), Tap::close)
}

/// What a session recorded, and where it is.
pub(crate) enum Recording {
    Memory(Box<Trace>),
    File(Box<Streamed>),
}

impl Recording {
    /// All of it, in memory from here on.
    pub(crate) fn trace(&self) -> Result<&Trace> {
        match self {
            Recording::Memory(trace) => Ok(&**trace),
            Recording::File(streamed) => streamed.trace(),
        }
    }

    /// All of it, for keeps.
    pub(crate) fn into_trace(self) -> Result<Trace> {
        match self {
            Recording::Memory(trace) => Ok(*trace),
            Recording::File(streamed) => streamed.into_trace(),
        }
    }

    /// What users added to its head, as often as it is kept.
    pub(crate) fn metadata(&mut self) -> Vec<&mut Metadata> {
        match self {
            Recording::Memory(trace) => vec![&mut trace.about.metadata],
            Recording::File(streamed) => streamed.metadata().collect(),
        }
    }
}

/// This moment, for [`Session::step`].
pub(crate) fn now() -> u64 {
    clock::ticks()
}
