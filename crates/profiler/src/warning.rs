//! What is not wrong, but may not be what was meant.
//!
//! Nothing is printed: a library does not know where its user looks. Warnings are collected, and
//! read with [`Profiler::warnings`](crate::Profiler::warnings).

use std::fmt;

/// Something that a user may want to know.
///
/// ```
/// use cresset_profiler::{Profiler, Schedule, Warning};
/// let profiler = Profiler::builder().schedule(Schedule::new(0, 0, 1)?).build()?;
/// assert_eq!(profiler.warnings(), [Warning::NoWarmup]);
/// assert_eq!(Warning::NoWarmup.to_string(), "the schedule has no warmup, which can skew results");
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Warning {
    /// The schedule has no warmup, so that first recorded steps may be slow ones.
    NoWarmup,
    /// A schedule of the user's went from warmup to nothing: what was made ready was not used.
    WarmupThenNone,
    /// A schedule of the user's left a recording without a save: its trace is kept, but not handed
    /// to `on_trace_ready`.
    RecordWithoutSave,
    /// A cycle's events replaced those of the one before; `acc_events` keeps both.
    EventsReplaced,
    /// Devices were asked for, and there are none.
    NoDevice,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Warning::NoWarmup => "the schedule has no warmup, which can skew results",
            Warning::WarmupThenNone => "incorrect schedule: warmup is followed by nothing",
            Warning::RecordWithoutSave => "incorrect schedule: a recording is left without a save",
            Warning::EventsReplaced => {
                "events of earlier cycles are gone: use acc_events(true) to keep them, or save each cycle"
            }
            Warning::NoDevice => "devices were asked for, but none is ready: only the host is recorded",
        })
    }
}
