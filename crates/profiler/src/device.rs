//! What devices did, drained from their sources and shared by all sessions that ask.
//!
//! A source hands each activity over once, so they are kept here until every session that may
//! want them has taken them or is gone.

use crate::error::{Error, Result};
use cresset_dispatch::activity::{self, Activity, Failure, Properties, Source};
use parking_lot::Mutex;

struct Hub {
    taps: Vec<Place>,
    started: Vec<&'static dyn Source>,
    /// How many activities were forgotten, and those after them.
    forgotten: u64,
    activities: Vec<Activity>,
    /// What a device said that was made ready or asked meanwhile, and failed.
    failed: Option<(&'static str, Failure)>,
}

/// How far a tap is: the number of the first activity it has not taken.
struct Place {
    tap: u64,
    next: u64,
}

static HUB: Mutex<Hub> = Mutex::new(Hub {
    taps: Vec::new(),
    started: Vec::new(),
    forgotten: 0,
    activities: Vec::new(),
    failed: None,
});

/// Whether there is any device to ask.
pub(crate) fn is_present() -> bool {
    activity::sources().next().is_some()
}

/// A session's access to device activities. The last one that drops stops the sources.
pub(crate) struct Tap {
    number: u64,
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
        if hub.taps.is_empty() {
            for source in activity::sources() {
                match source.start() {
                    Ok(()) => hub.started.push(source),
                    Err(failure) => keep_first(&mut outcome, "start", failure),
                }
            }
        }
        let number = hub.taps.last().map_or(0, |last| last.tap + 1);
        let next = hub.end();
        hub.taps.push(Place { tap: number, next });
        (Tap { number }, outcome)
    }

    /// What devices are known to have done since the tap was opened or last asked, without waiting
    /// for them. A failure is told by the next drain.
    pub(crate) fn poll(&self) -> Vec<Activity> {
        let mut hub = HUB.lock();
        let Hub { started, activities, failed, .. } = &mut *hub;
        for source in started.iter() {
            if let Err(failure) = source.poll(&mut |activity| activities.push(activity)) {
                failed.get_or_insert(("poll", failure));
            }
        }
        hub.take(self.number)
    }

    /// Waits for the devices; what they did since the tap was opened or last asked.
    pub(crate) fn drain(&self) -> Drained {
        let mut hub = HUB.lock();
        let Hub { started, activities, failed, .. } = &mut *hub;
        let mut outcome = Ok(());
        if let Some((action, failure)) = failed.take() {
            keep_first(&mut outcome, action, failure);
        }
        let mut devices = Vec::new();
        for source in started.iter() {
            if let Err(failure) = source.drain(&mut |activity| activities.push(activity)) {
                keep_first(&mut outcome, "drain", failure);
            }
            source.devices(&mut |device| devices.push(device));
        }
        Drained { activities: hub.take(self.number), devices, outcome }
    }

    /// Gives up the tap, and says how stopping the sources went if it was the last.
    pub(crate) fn close(self) -> Result<()> {
        let outcome = release(self.number);
        std::mem::forget(self);
        outcome
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // Dropped without `close`: there is nobody to tell.
        let _ = release(self.number);
    }
}

impl Hub {
    /// The number of the next activity.
    fn end(&self) -> u64 {
        self.forgotten + self.activities.len() as u64
    }

    /// What a tap has not taken yet. What all have taken is forgotten.
    fn take(&mut self, tap: u64) -> Vec<Activity> {
        let end = self.end();
        let Some(place) = self.taps.iter_mut().find(|place| place.tap == tap) else { return Vec::new() };
        let from = std::mem::replace(&mut place.next, end);
        let taken = self.activities[(from - self.forgotten) as usize..].to_vec();
        self.forget();
        taken
    }

    fn forget(&mut self) {
        let needed = self.taps.iter().map(|place| place.next).min().unwrap_or(self.end());
        self.activities.drain(..(needed - self.forgotten) as usize);
        self.forgotten = needed;
    }
}

/// Starts a source that was registered while sessions are open.
fn join(source: &'static dyn Source) {
    let mut hub = HUB.lock();
    let is_started = hub.started.iter().any(|other| std::ptr::addr_eq(*other, source));
    if hub.taps.is_empty() || is_started {
        return;
    }
    match source.start() {
        Ok(()) => hub.started.push(source),
        Err(failure) => hub.failed = Some(("start", failure)),
    }
}

fn release(tap: u64) -> Result<()> {
    let mut hub = HUB.lock();
    hub.taps.retain(|place| place.tap != tap);
    hub.forget();
    let mut outcome = Ok(());
    if hub.taps.is_empty() {
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
