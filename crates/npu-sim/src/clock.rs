//! The clocks of the device: nanoseconds since 1970 for records, ticks for events, and time by a model.
//!
//! By default a kernel takes as long as the host needs for it. By the model it takes as long as an
//! Ascend 910B3 would need by its figures: a launch, then whichever is longer, moving the bytes or doing the
//! sums. Such kernels follow each other on the stream's own time line, and who waits for one waits at least
//! until its modelled end, so that no record lies in a host's future.

use crate::config::CONFIG;
use parking_lot::Mutex;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds of one tick of the device's counter.
const TICK: u64 = 20;

/// When the device started: before anything could be recorded on it.
static START: LazyLock<u64> = LazyLock::new(now);

/// Nanoseconds since 1970, as in activity records.
pub(crate) fn realtime() -> u64 {
    LazyLock::force(&START);
    now()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// Nanoseconds since the device started, in whole ticks, as events see them.
pub(crate) fn ticks(time: u64) -> u64 {
    time.saturating_sub(*START) / TICK * TICK
}

/// What a kernel has to do.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Read and written.
    pub(crate) bytes: usize,
    /// Multiplications and additions of matrix products.
    pub(crate) flops: u64,
    /// Bytes of an element, on which the speed of products depends.
    pub(crate) width: usize,
}

impl Cost {
    /// Nanoseconds on the chip that is modelled.
    fn time(self) -> u64 {
        /// From the end of one kernel to the start of the next.
        const LAUNCH: f64 = 2_000.0;
        /// Bytes per nanosecond from and to its memory: 1.6 TB/s, of which kernels reach about three quarters.
        const BANDWIDTH: f64 = 1_200.0;
        /// Operations per nanosecond in half precision: 313 Tflop/s, of which products reach about two thirds.
        const HALF: f64 = 210_000.0;
        let rate = if self.width <= 2 { HALF } else { HALF / 4.0 };
        let (moving, computing) = (self.bytes as f64 / BANDWIDTH, self.flops as f64 / rate);
        (LAUNCH + moving.max(computing)) as u64
    }
}

/// How far a stream is in the device's own time.
#[derive(Default)]
pub(crate) struct Timeline {
    end: Mutex<u64>,
}

impl Timeline {
    /// Runs `body`; gives its result, and when it started and ended.
    pub(crate) fn take<R>(&self, cost: Cost, body: impl FnOnce() -> R) -> (R, u64, u64) {
        if !CONFIG.modelled {
            let start = realtime();
            let result = body();
            return (result, start, realtime());
        }
        let now = realtime();
        let start = now.max(*self.end.lock());
        let result = body();
        let end = start + cost.time();
        *self.end.lock() = end;
        (result, start, end)
    }

    /// Nothing starts before this time: an event of another stream.
    pub(crate) fn delay(&self, until: u64) {
        if CONFIG.modelled {
            let mut end = self.end.lock();
            *end = (*end).max(until);
        }
    }

    /// When the last kernel ends, by the model; 0 without one.
    pub(crate) fn end(&self) -> u64 {
        if CONFIG.modelled { *self.end.lock() } else { 0 }
    }

    /// The time at this point of the stream.
    pub(crate) fn now(&self) -> u64 {
        realtime().max(self.end())
    }
}

/// Waits until a modelled time has come.
pub(crate) fn pass(time: u64) {
    let now = realtime();
    if time > now {
        std::thread::sleep(Duration::from_nanos(time - now));
    }
}
