//! What the device did, by events around every launch: where there is no tracing library.
//!
//! A launch that takes a microsecond is given two events more, so that streams are busier than without them;
//! and kernels have the names of the functions that launched them, for nobody tells their own. Device times are
//! counted from an event that the host waited for.

use crate::device;
use crate::event::Event;
use crate::status::{self, AclResult};
use crate::stream::{self, Stream};
use cresset_dispatch::activity::{Activity, Work};
use cresset_dispatch::observe;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// A launch with an event before and one behind it.
struct Timed {
    work: Work,
    function: &'static str,
    device: u8,
    stream: u32,
    thread: u32,
    call: u64,
    correlation: u64,
    bytes: u64,
    /// When the host began and ended it.
    host: (u64, u64),
    start: Event,
    end: Event,
}

static TIMED: Mutex<VecDeque<Timed>> = Mutex::new(VecDeque::new());

/// A launch that is being made.
pub(super) struct Launching {
    timed: Option<Timed>,
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn thread() -> u32 {
    thread_local!(static ID: u32 = {
        // SAFETY: has no preconditions.
        unsafe { libc::gettid() as u32 }
    });
    ID.with(|id| *id)
}

impl Launching {
    /// Records the event before the launch. One that cannot be had leaves the launch untold.
    #[cold]
    pub(super) fn new(function: &'static str, work: Work, bytes: u64, stream: &Stream) -> Launching {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let begun = now();
        let events = || -> AclResult<[Event; 2]> {
            let device = stream.device_index();
            let events = [Event::create(device, true)?, Event::create(device, true)?];
            events[0].mark(stream)?;
            Ok(events)
        };
        let timed = events().ok().map(|[start, end]| Timed {
            work,
            function,
            device: stream.device_index(),
            stream: stream.id(),
            thread: thread(),
            call: observe::current(),
            correlation: NEXT.fetch_add(1, Relaxed),
            bytes,
            host: (begun, begun),
            start,
            end,
        });
        Launching { timed }
    }

    /// Records the event behind the launch.
    pub(super) fn finish(&mut self, stream: &Stream) {
        let Some(mut timed) = self.timed.take() else { return };
        if timed.end.mark(stream).is_ok() {
            timed.host.1 = now();
            TIMED.lock().push_back(timed);
        }
    }
}

/// A moment that both clocks know.
struct Anchor {
    event: Event,
    host: u64,
}

impl Anchor {
    fn new(device: u8) -> AclResult<Anchor> {
        let event = Event::create(device, true)?;
        event.mark(&stream::main(device)?)?;
        event.reach()?;
        Ok(Anchor { event, host: now() })
    }

    /// The host's time of a point that was reached before the anchor or after it.
    fn time_of(&self, event: &Event) -> AclResult<u64> {
        let milliseconds = self.event.milliseconds_to(event)?;
        Ok((self.host as f64 + milliseconds * 1e6) as u64)
    }
}

/// Hands over the launches that are done; with `all`, also those that are still to be waited for.
pub(super) fn take(all: bool, sink: &mut dyn FnMut(Activity)) {
    let mut anchors = BTreeMap::new();
    while let Some(timed) = next(all) {
        match times(&timed, &mut anchors) {
            Ok((start, end)) => tell(&timed, start, end, sink),
            // A kernel that failed is not the profiler's news; the next call that waits tells it.
            Err(error) => status::keep(Err(error)),
        }
    }
}

/// The first launch, if it is done or `all` are wanted.
fn next(all: bool) -> Option<Timed> {
    let mut waiting = TIMED.lock();
    waiting.pop_front_if(|first| all || first.end.is_reached().unwrap_or(true))
}

/// When the work of a launch began and ended, in the host's time.
fn times(timed: &Timed, anchors: &mut BTreeMap<u8, Anchor>) -> AclResult<(u64, u64)> {
    timed.end.reach()?;
    let anchor = match anchors.entry(timed.device) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => place.insert(Anchor::new(timed.device)?),
    };
    Ok((anchor.time_of(&timed.start)?, anchor.time_of(&timed.end)?))
}

fn tell(timed: &Timed, start: u64, end: u64, sink: &mut dyn FnMut(Activity)) {
    let activity = |work, name: &str, lane, start, end: u64, bytes| Activity {
        work,
        name: name.to_owned(),
        unit: String::new(),
        device: device::device(timed.device),
        lane,
        start,
        end: end.max(start),
        correlation: timed.correlation,
        call: timed.call,
        bytes,
    };
    let (begun, ended) = timed.host;
    sink(activity(Work::Launch, timed.function, timed.thread, begun, ended, 0));
    // No work begins before it was launched, whatever two clocks say.
    let name = timed.function.strip_prefix("aclnn").unwrap_or("Memcpy");
    sink(activity(timed.work, name, timed.stream, start.max(begun), end.max(begun), timed.bytes));
}

/// Forgets what was not taken.
pub(super) fn clear() {
    TIMED.lock().clear();
}
