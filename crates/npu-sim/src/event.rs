//! Events: points in streams that others wait for, and that take the time.

use crate::clock;
use crate::error::{Result, fail};
use crate::handle::Handles;
use crate::stream::{Queue, Stream, Ticket, spin};
use cresset_acl::{code, constant};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Events by handle.
pub(crate) static EVENTS: Handles<Event> = Handles::new(2, "event");

/// The most events there are.
pub(crate) const MOST: usize = 65536;

const KNOWN_FLAGS: u32 = 0x7f;

/// Flags that cannot be combined with others.
const ALONE: u32 = constant::event::DEVICE_USE_ONLY | constant::event::EXTERNAL | constant::event::IPC;

/// Which functions made an event, and so which may be used on it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Family {
    /// `aclrtCreateEvent`: waits and time.
    Plain,
    /// `aclrtCreateEventWithFlag`.
    Flagged,
    /// `aclrtCreateEventExWithFlag`: recorded again and again.
    Extended,
}

/// Each record replaces the mark; who waits keeps the mark that was there when it asked.
pub(crate) struct Event {
    pub(crate) id: u32,
    flags: u32,
    family: Family,
    mark: Mutex<Option<Arc<Mark>>>,
    /// Streams that wait for it and have not gone on.
    waiting: Arc<AtomicUsize>,
}

/// One recorded point of one stream.
struct Mark {
    reached: AtomicBool,
    time: Mutex<Option<u64>>,
    changed: Condvar,
    /// The stream, and the task that reaches it.
    stream: Weak<Queue>,
    ticket: Mutex<Ticket>,
}

/// Reaches a mark when it runs, or when it is given up and dropped: nobody may wait for ever.
struct Reach(Arc<Mark>);

impl Drop for Reach {
    fn drop(&mut self) {
        self.0.reach();
    }
}

impl Event {
    pub(crate) fn new(flags: u32, family: Family) -> Result<Event> {
        let special = flags & ALONE;
        if flags == 0 || flags & !KNOWN_FLAGS != 0 || special != 0 && flags != special {
            fail!(code::RT_PARAM_INVALID, "event flags {flags:#x} are not known");
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Event { id, flags, family, mark: Mutex::new(None), waiting: Arc::default() })
    }

    /// Stands from now on for all work of `stream` so far.
    pub(crate) fn record(&self, stream: &Stream) {
        let mark = Arc::new(Mark::new(Arc::downgrade(stream.queue())));
        *self.mark.lock() = Some(mark.clone());
        let mut ticket = mark.ticket.lock();
        let reach = Reach(mark.clone());
        *ticket = stream.push(Box::new(move || {
            drop(reach);
            Ok(())
        }));
    }

    /// Makes later work of `stream` wait for the last record, if there is one; so long and no longer.
    pub(crate) fn hold(&self, stream: &Stream, most: Option<Duration>) -> Result {
        if self.flags & constant::event::SYNC == 0 {
            fail!(code::RT_PARAM_INVALID, "the event was created without the flag for waiting");
        }
        let Some(mark) = self.latest() else { return Ok(()) };
        let (queue, waiting) = (Arc::downgrade(stream.queue()), self.waiting.clone());
        waiting.fetch_add(1, Ordering::SeqCst);
        let gone = Gone(waiting);
        stream.push(Box::new(move || {
            let _gone = gone;
            let time = mark.wait(most.map(|most| Instant::now() + most));
            let (Some(time), Some(queue)) = (time, queue.upgrade()) else {
                fail!(code::RT_TASK_TIMEOUT, "the event was not reached in time");
            };
            queue.timeline.delay(time);
            Ok(())
        }));
        Ok(())
    }

    /// Takes the last record back.
    pub(crate) fn reset(&self) -> Result {
        if self.family != Family::Flagged || self.flags & constant::event::SYNC == 0 {
            fail!(code::RT_FEATURE_NOT_SUPPORT, "only events made with the flag for waiting can be reset");
        }
        *self.mark.lock() = None;
        Ok(())
    }

    /// Refuses what newer events cannot be asked.
    pub(crate) fn expect_old(&self) -> Result {
        if self.family == Family::Extended {
            fail!(code::RT_FEATURE_NOT_SUPPORT, "events of aclrtCreateEventExWithFlag cannot be asked this");
        }
        Ok(())
    }

    /// Whether the last record was reached; true if there is none. Who asks wants it to be.
    pub(crate) fn is_complete(&self) -> bool {
        self.latest().is_none_or(|mark| {
            let reached = mark.reached.load(Ordering::Acquire);
            mark.want();
            reached
        })
    }

    /// Whether every stream that waited for it has gone on.
    pub(crate) fn is_passed(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0
    }

    /// Waits for the last record, if there is one.
    pub(crate) fn synchronize(&self, deadline: Option<Instant>) -> Result {
        if let Some(mark) = self.latest() {
            match mark.wait(deadline) {
                Some(time) => clock::pass(time),
                None => fail!(code::RT_EVENT_SYNC_TIMEOUT, "the event was not reached in time"),
            }
        }
        Ok(())
    }

    /// Milliseconds from here to `end`.
    pub(crate) fn until(&self, end: &Event) -> Result<f32> {
        let (start, end) = (self.time()?, end.time()?);
        Ok((clock::ticks(end) as f64 - clock::ticks(start) as f64) as f32 / 1e6)
    }

    /// Microseconds since the device started.
    pub(crate) fn timestamp(&self) -> Result<u64> {
        Ok(clock::ticks(self.time()?) / 1000)
    }

    fn time(&self) -> Result<u64> {
        let Some(mark) = self.latest() else {
            fail!(code::RT_INTERNAL_ERROR, "the event was never recorded");
        };
        match *mark.time.lock() {
            Some(time) if self.flags & constant::event::TIME_LINE != 0 => Ok(time),
            Some(_) => {
                fail!(code::RT_EVENT_TIMESTAMP_INVALID, "the event was created without the flag for time")
            }
            None => fail!(code::RT_EVENT_TIMESTAMP_INVALID, "the event was recorded but not reached yet"),
        }
    }

    fn latest(&self) -> Option<Arc<Mark>> {
        self.mark.lock().clone()
    }
}

/// Counts one stream less that waits.
struct Gone(Arc<AtomicUsize>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Mark {
    fn new(stream: Weak<Queue>) -> Mark {
        Mark {
            reached: AtomicBool::new(false),
            time: Mutex::new(None),
            changed: Condvar::new(),
            stream,
            ticket: Mutex::new(0),
        }
    }

    fn reach(&self) {
        let now = self.stream.upgrade().map_or_else(clock::realtime, |queue| queue.timeline.now());
        *self.time.lock() = Some(now);
        self.reached.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Lets the stream come here even if streams are lazy.
    fn want(&self) {
        if let Some(queue) = self.stream.upgrade() {
            queue.want(*self.ticket.lock());
        }
    }

    /// When it was reached; none if not before the deadline.
    fn wait(&self, deadline: Option<Instant>) -> Option<u64> {
        self.want();
        spin(|| self.reached.load(Ordering::Acquire));
        let mut time = self.time.lock();
        while time.is_none() {
            match deadline {
                Some(deadline) if self.changed.wait_until(&mut time, deadline).timed_out() => break,
                Some(_) => {}
                None => self.changed.wait(&mut time),
            }
        }
        *time
    }
}
