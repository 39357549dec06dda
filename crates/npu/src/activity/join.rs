//! Joins launches, device work and calls by the number that all records of a launch share.

use super::records::{Api, DeviceWork, Record};
use crate::device;
use cresset_dispatch::activity::{Activity, Work};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Records that wait to be joined. Some of a launch may come later than others, so what is
/// known of it is kept for one more round.
#[derive(Default)]
pub(super) struct Join {
    launches: HashMap<u64, Launch>,
    work: Vec<DeviceWork>,
    round: u32,
}

#[derive(Default)]
struct Launch {
    api: Option<Api>,
    call: Option<u64>,
    /// Which device it gave work to, once that is known.
    device: Option<u32>,
    /// Whether the call into the library was handed out.
    is_told: bool,
    /// The last round in which something was learned of it, and when that was.
    round: u32,
    heard: Option<Instant>,
}

impl Join {
    pub(super) fn add(&mut self, record: Record) {
        let correlation = match &record {
            Record::Work(work) => work.correlation,
            Record::Api(api) => api.correlation,
            Record::Call { correlation, .. } => *correlation,
        };
        let launch = self.launches.entry(correlation).or_default();
        (launch.round, launch.heard) = (self.round, Some(Instant::now()));
        match record {
            Record::Work(work) => {
                launch.device = Some(work.device);
                self.work.push(work);
            }
            Record::Call { id, .. } => launch.call = Some(id),
            Record::Api(api) => launch.called(api),
        }
    }

    /// Whether all launches of known calls have the work they launched.
    pub(super) fn is_complete(&self) -> bool {
        self.launches.values().all(|launch| launch.call.is_none() || launch.device.is_some())
    }

    /// Hands out all work so far, and the calls that launched it.
    pub(super) fn emit(&mut self, sink: &mut dyn FnMut(Activity)) {
        for work in self.work.drain(..) {
            let call = self.launches.get(&work.correlation).and_then(|launch| launch.call);
            sink(activity_of(work, call.unwrap_or(0)));
        }
        for launch in self.launches.values_mut() {
            if let Some(activity) = launch.tell() {
                sink(activity);
            }
        }
        let round = self.round;
        self.launches.retain(|_, launch| launch.round == round);
        self.round += 1;
    }
}

/// For how long a launch is remembered of which nothing new is heard. Time counts and not polls: who polls without
/// a pause would forget launches before the device has come to them.
const REMEMBERED: Duration = Duration::from_secs(10);

impl Join {
    /// Hands out the work whose launch is known, and that launch. The rest waits for its other half.
    pub(super) fn emit_joined(&mut self, sink: &mut dyn FnMut(Activity)) {
        let Join { launches, work, round } = self;
        let now = *round;
        let is_joined = |work: &mut DeviceWork| {
            // A launch outside of all calls is one of which no call is heard for a while.
            let is_whole = |launch: &Launch| launch.call.is_some() || now.wrapping_sub(launch.round) > 1;
            launches.get(&work.correlation).is_some_and(|one| one.api.is_some() && is_whole(one))
        };
        let joined: Vec<DeviceWork> = work.extract_if(.., is_joined).collect();
        for work in joined {
            let Some(launch) = launches.get_mut(&work.correlation) else { continue };
            if let Some(activity) = launch.tell() {
                sink(activity);
            }
            sink(activity_of(work, launch.call.unwrap_or(0)));
        }
        let waiting: HashSet<u64> = work.iter().map(|work| work.correlation).collect();
        let is_recent = |launch: &Launch| launch.heard.is_some_and(|heard| heard.elapsed() < REMEMBERED);
        launches.retain(|number, launch| waiting.contains(number) || is_recent(launch));
        *round += 1;
    }
}

impl Launch {
    /// Of nested calls with one number the outermost counts.
    fn called(&mut self, api: Api) {
        match &self.api {
            Some(outer) if outer.start <= api.start => {}
            _ => self.api = Some(api),
        }
    }

    /// The call into the library, once, and only if it launched something.
    fn tell(&mut self) -> Option<Activity> {
        let (device, api) = (self.device?, self.api.as_ref()?);
        if std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        Some(Activity {
            work: Work::Launch,
            name: api.name.clone(),
            unit: String::new(),
            device: device::device(device as u8),
            lane: api.thread,
            start: api.start,
            end: api.end,
            correlation: api.correlation,
            call: self.call.unwrap_or(0),
            bytes: 0,
        })
    }
}

fn activity_of(work: DeviceWork, call: u64) -> Activity {
    Activity {
        work: work.work,
        name: work.name,
        unit: work.unit,
        device: device::device(work.device as u8),
        lane: work.stream,
        start: work.start,
        end: work.end,
        correlation: work.correlation,
        call,
        bytes: work.bytes,
    }
}
