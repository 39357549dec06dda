//! Events: points in streams that others wait for, and that take the time.

use crate::clock;
use crate::error::{Result, fail};
use crate::handle::Handles;
use crate::stream::{Stream, spin};
use cresset_acl::{code, constant};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Events by handle.
pub(crate) static EVENTS: Handles<Event> = Handles::new(2);

const KNOWN_FLAGS: u32 = 0x7f;

/// Each record replaces the mark; who waits keeps the mark that was there when it asked.
pub(crate) struct Event {
    flags: u32,
    mark: Mutex<Option<Arc<Mark>>>,
}

/// One recorded point of one stream.
struct Mark {
    reached: AtomicBool,
    time: Mutex<Option<u64>>,
    changed: Condvar,
}

impl Event {
    pub(crate) fn new(flags: u32) -> Result<Event> {
        if flags == 0 || flags & !KNOWN_FLAGS != 0 {
            fail!(code::RT_PARAM_INVALID, "event flags {flags:#x} are not known");
        }
        Ok(Event { flags, mark: Mutex::new(None) })
    }

    /// Stands from now on for all work of `stream` so far.
    pub(crate) fn record(&self, stream: &Stream) {
        let mark = Arc::new(Mark::new());
        *self.mark.lock() = Some(mark.clone());
        stream.push(Box::new(move || {
            mark.reach();
            Ok(())
        }));
    }

    /// Makes later work of `stream` wait for the last record, if there is one.
    pub(crate) fn hold(&self, stream: &Stream) -> Result {
        if self.flags & constant::event::SYNC == 0 {
            fail!(code::RT_PARAM_INVALID, "the event was created without the flag for waiting");
        }
        if let Some(mark) = self.latest() {
            stream.push(Box::new(move || {
                mark.wait();
                Ok(())
            }));
        }
        Ok(())
    }

    /// Whether the last record was reached; true if there is none.
    pub(crate) fn is_complete(&self) -> bool {
        self.latest().is_none_or(|mark| mark.reached.load(Ordering::Acquire))
    }

    /// Waits for the last record, if there is one.
    pub(crate) fn synchronize(&self) {
        if let Some(mark) = self.latest() {
            mark.wait();
        }
    }

    /// Milliseconds from here to `end`.
    pub(crate) fn until(&self, end: &Event) -> Result<f32> {
        let (start, end) = (self.time()?, end.time()?);
        Ok((end as f64 - start as f64) as f32 / 1e6)
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

impl Mark {
    fn new() -> Mark {
        Mark { reached: AtomicBool::new(false), time: Mutex::new(None), changed: Condvar::new() }
    }

    fn reach(&self) {
        *self.time.lock() = Some(clock::ticks());
        self.reached.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    fn wait(&self) {
        if spin(|| self.reached.load(Ordering::Acquire)) {
            return;
        }
        let mut time = self.time.lock();
        while time.is_none() {
            self.changed.wait(&mut time);
        }
    }
}
