//! Timestamps: raw counter ticks while recording, nanoseconds since 1970 afterwards.
//!
//! Reading the counter is most of what recording a call costs, so nothing is converted
//! until a session stops. Two anchors, read at its start and at its stop, give the scale.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A raw timestamp; only a [`Scale`] gives it a unit.
#[inline]
pub(crate) fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "reads the time-stamp counter")]
    // SAFETY: `rdtsc` exists on every x86_64 CPU and touches no memory.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        START.elapsed().as_nanos() as u64
    };
}

/// Nanoseconds since 1970.
pub(crate) fn wall_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// One moment on all clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    pub(crate) ticks: u64,
    instant: Instant,
    nanos: u64,
}

impl Anchor {
    /// This moment: of a few readings, the one that was least interrupted.
    pub(crate) fn now() -> Anchor {
        let reading = |_| {
            let before = ticks();
            let (instant, nanos) = (Instant::now(), wall_nanos());
            let width = ticks().saturating_sub(before);
            (width, Anchor { ticks: before + width / 2, instant, nanos })
        };
        let readings: [(u64, Anchor); 5] = std::array::from_fn(reading);
        readings.into_iter().min_by_key(|(width, _)| *width).map(|(_, anchor)| anchor).expect("five readings")
    }
}

/// Converts between ticks and nanoseconds since 1970.
///
/// The rate comes from the monotonic clock, which nobody sets back; only the origin is
/// the wall clock's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    origin: Anchor,
    nanos_per_tick: f64,
}

impl Scale {
    pub(crate) fn between(start: Anchor, stop: Anchor) -> Scale {
        let nanos = stop.instant.saturating_duration_since(start.instant).as_nanos().max(1);
        let ticks = stop.ticks.saturating_sub(start.ticks).max(1);
        Scale { origin: start, nanos_per_tick: nanos as f64 / ticks as f64 }
    }

    pub(crate) fn nanos(&self, ticks: u64) -> u64 {
        let since = ticks.wrapping_sub(self.origin.ticks) as i64 as f64 * self.nanos_per_tick;
        self.origin.nanos.saturating_add_signed(since.round() as i64)
    }

    pub(crate) fn ticks(&self, nanos: u64) -> u64 {
        let since = nanos.wrapping_sub(self.origin.nanos) as i64 as f64 / self.nanos_per_tick;
        self.origin.ticks.saturating_add_signed(since.round() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_wall_time() {
        let start = Anchor::now();
        let (wall, raw) = (wall_nanos(), ticks());
        while start.instant.elapsed().as_millis() < 3 {}
        let scale = Scale::between(start, Anchor::now());
        let error = scale.nanos(raw).abs_diff(wall);
        assert!(error < 50_000, "{error} ns");
        assert!(scale.ticks(scale.nanos(raw)).abs_diff(raw) < 20);
    }

    #[test]
    fn conversion_keeps_order() {
        let start = Anchor::now();
        let raw: Vec<u64> = (0..1000).map(|_| ticks()).collect();
        let scale = Scale::between(start, Anchor::now());
        assert!(raw.windows(2).all(|pair| scale.nanos(pair[0]) <= scale.nanos(pair[1])));
    }
}
