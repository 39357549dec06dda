//! The two clocks of the device.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds of one tick of the device's counter.
const TICK: u64 = 20;

/// Nanoseconds since 1970, as in activity records.
pub(crate) fn realtime() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// Nanoseconds since the device started, in whole ticks, as events see them.
pub(crate) fn ticks() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64 / TICK * TICK
}
