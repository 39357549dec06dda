//! What can go wrong, by cause.

use crate::builder::Activity;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// An error of someone else's making: a device's, or a user's handler's.
///
/// ```
/// use cresset_profiler::{BoxError, Profiler};
/// let mut profiler = Profiler::builder()
///     .on_trace_ready(|_| Err::<(), BoxError>("the disk is gone".into()))
///     .start()?;
/// assert_eq!(profiler.stop().unwrap_err().to_string(), "on_trace_ready failed: the disk is gone");
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The profiler's results.
///
/// ```
/// use cresset_profiler::{Profiler, Result, record_function};
/// fn profile(epoch: impl FnOnce()) -> Result<Profiler> {
///     Ok(Profiler::builder().run(|_| epoch())?.1)
/// }
/// assert_eq!(profile(|| record_function("epoch").run(|| ()))?.events()?.count(), 1);
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Why the profiler could not do what it was asked.
///
/// ```
/// use cresset_profiler::{Error, Profiler};
/// let mut profiler = Profiler::builder().build()?;
/// let error = profiler.step().unwrap_err();
/// assert!(matches!(error, Error::NotRunning { action: "step" }), "{error}");
/// # Ok::<(), cresset_profiler::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The profiler must be running for this.
    NotRunning {
        /// What was asked of it.
        action: &'static str,
    },
    /// The profiler is running already.
    AlreadyRunning,
    /// A trace that is moved by hand was not at that point.
    OutOfOrder {
        /// What was asked of it.
        action: &'static str,
        /// What must come first.
        rule: &'static str,
    },
    /// An activity that the profiler does not watch cannot be switched on.
    NotWatched {
        /// Which.
        activity: Activity,
    },
    /// An option that does not exist here, or cannot be changed.
    Option {
        /// The option that was asked for.
        asked: String,
        /// Why not.
        rule: String,
    },
    /// Results were asked for before the first trace was complete.
    StillRunning {
        /// What was tried.
        action: &'static str,
    },
    /// Nothing was recorded yet.
    NoTrace {
        /// What was asked of it.
        action: &'static str,
    },
    /// No activity to record: none was named, or only a device's where there is none.
    NoActivities,
    /// An activity that does not exist.
    UnknownActivity {
        /// The name that was asked for.
        asked: String,
    },
    /// A schedule that cannot be followed.
    Schedule {
        /// The argument at fault.
        argument: &'static str,
        /// All arguments, as given.
        given: String,
        /// What the argument must be.
        rule: &'static str,
    },
    /// A trace could not be read, or not shown as it was asked.
    Trace {
        /// Its reader's words.
        source: cresset_trace::Error,
    },
    /// A metric that stacks cannot be weighed by.
    StackMetric {
        /// The metric that was asked for.
        asked: String,
    },
    /// Stacks were asked for, but not recorded.
    NoStacks,
    /// A metadata key that the trace format uses itself.
    ReservedKey {
        /// The key.
        key: String,
    },
    /// Too many observers are registered to add the profiler.
    NoObserverSlot,
    /// A device could not start, drain or stop; what the host did is kept.
    Device {
        /// What was asked of it.
        action: &'static str,
        /// Its own words.
        source: BoxError,
    },
    /// The `on_trace_ready` handler failed.
    Handler {
        /// Its own words.
        source: BoxError,
    },
    /// What memory was for is asked of a session that did not record all it takes to tell.
    MemoryNotProfiled,
    /// A file could not be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written; nothing half written is left.
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRunning { action } => write!(f, "cannot {action}: the profiler is not running"),
            Error::AlreadyRunning => f.write_str("cannot start: the profiler is running already"),
            Error::OutOfOrder { action, rule } => write!(f, "cannot {action}: {rule}"),
            Error::NotWatched { activity } => {
                write!(f, "cannot switch {activity:?} on: it is not watched, name it in activities()")
            }
            Error::Option { asked, rule } => write!(f, "cannot set the option {asked:?}: {rule}"),
            Error::StillRunning { action } => {
                write!(f, "cannot {action}: nothing is complete yet, call stop() first")
            }
            Error::NoTrace { action } => write!(f, "cannot {action}: nothing was recorded yet"),
            Error::NoActivities => {
                f.write_str("no activity to record: ask for the host's, or make a device ready first")
            }
            Error::UnknownActivity { asked } => {
                write!(f, "unknown activity {asked:?}: known are cpu, device, npu")
            }
            Error::Schedule { argument, given, rule } => {
                write!(f, "invalid schedule: {argument} must be {rule} (given {given})")
            }
            Error::Trace { source } => source.fmt(f),
            Error::StackMetric { asked } => {
                let legal = crate::export::stacks::METRICS.join(", ");
                write!(f, "cannot weigh stacks by {asked:?}: legal metrics are {legal}")
            }
            Error::NoStacks => {
                f.write_str("cannot export stacks: they were not recorded, use with_stack(true)")
            }
            Error::ReservedKey { key } => {
                write!(f, "metadata key {key:?} is used by the trace format itself")
            }
            Error::NoObserverSlot => f.write_str("cannot record: all observer slots are taken"),
            Error::Device { action, source } => write!(f, "cannot {action} device activities: {source}"),
            Error::Handler { source } => write!(f, "on_trace_ready failed: {source}"),
            Error::MemoryNotProfiled => f.write_str(
                "record_shapes=True, profile_memory=True, with_stack=True required for memory profiling.",
            ),
            Error::Read { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Error::Write { path, source } => write!(f, "cannot write {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Device { source, .. } | Error::Handler { source } => Some(&**source),
            Error::Trace { source } => Some(source),
            Error::Read { source, .. } | Error::Write { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<cresset_trace::Error> for Error {
    fn from(source: cresset_trace::Error) -> Error {
        Error::Trace { source }
    }
}
