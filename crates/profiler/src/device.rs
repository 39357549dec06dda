//! What devices did, drained from their sources and shared by all sessions that ask.
//!
//! A source hands each activity over once, so they are kept here until the last session
//! that asked for them is gone.

use crate::error::{Error, Result};
use cresset_dispatch::activity::{self, Activity, Failure, Properties, Source};
use parking_lot::Mutex;

struct Hub {
    taps: usize,
    started: Vec<&'static dyn Source>,
    activities: Vec<Activity>,
    /// What a device said that was made ready meanwhile and could not be started.
    failed: Option<Failure>,
}

static HUB: Mutex<Hub> =
    Mutex::new(Hub { taps: 0, started: Vec::new(), activities: Vec::new(), failed: None });

/// Whether there is any device to ask.
pub(crate) fn is_present() -> bool {
    activity::sources().next().is_some()
}

/// A session's access to device activities. The last one that drops stops the sources.
pub(crate) struct Tap {
    from: usize,
}

/// What a drain gave: also when one of several sources failed.
pub(crate) struct Drained {
    pub(crate) activities: Vec<Activity>,
    pub(crate) devices: Vec<Properties>,
    pub(crate) outcome: Result<()>,
}

impl Tap {
    /// Starts the sources if nobody did. Those that started stay in use when others fail.
    pub(crate) fn open() -> (Tap, Result<()>) {
        activity::on_register(join);
        let mut hub = HUB.lock();
        let mut outcome = Ok(());
        if hub.taps == 0 {
            for source in activity::sources() {
                match source.start() {
                    Ok(()) => hub.started.push(source),
                    Err(failure) => keep_first(&mut outcome, "start", failure),
                }
            }
        }
        hub.taps += 1;
        (Tap { from: hub.activities.len() }, outcome)
    }

    /// Waits for the devices; what they did since the tap was opened.
    pub(crate) fn drain(&self) -> Drained {
        let mut hub = HUB.lock();
        let Hub { started, activities, failed, .. } = &mut *hub;
        let mut outcome = Ok(());
        if let Some(failure) = failed.take() {
            keep_first(&mut outcome, "start", failure);
        }
        let mut devices = Vec::new();
        for source in started.iter() {
            if let Err(failure) = source.drain(&mut |activity| activities.push(activity)) {
                keep_first(&mut outcome, "drain", failure);
            }
            source.devices(&mut |device| devices.push(device));
        }
        let activities = activities.get(self.from..).unwrap_or_default().to_vec();
        Drained { activities, devices, outcome }
    }

    /// Gives up the tap, and says how stopping the sources went if it was the last.
    pub(crate) fn close(self) -> Result<()> {
        let outcome = release();
        std::mem::forget(self);
        outcome
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // Dropped without `close`: there is nobody to tell.
        let _ = release();
    }
}

/// Starts a source that was registered while sessions are open.
fn join(source: &'static dyn Source) {
    let mut hub = HUB.lock();
    let is_started = hub.started.iter().any(|other| std::ptr::addr_eq(*other, source));
    if hub.taps == 0 || is_started {
        return;
    }
    match source.start() {
        Ok(()) => hub.started.push(source),
        Err(failure) => hub.failed = Some(failure),
    }
}

fn release() -> Result<()> {
    let mut hub = HUB.lock();
    hub.taps -= 1;
    let mut outcome = Ok(());
    if hub.taps == 0 {
        hub.activities = Vec::new();
        hub.failed = None;
        for source in hub.started.drain(..) {
            if let Err(failure) = source.stop() {
                keep_first(&mut outcome, "stop", failure);
            }
        }
    }
    outcome
}

fn keep_first(outcome: &mut Result<()>, action: &'static str, source: Failure) {
    if outcome.is_ok() {
        *outcome = Err(Error::Device { action, source });
    }
}
