//! Records operator calls and turns them into tables and traces.
//!
//! A pipeline, each part a module:
//!
//! ```text
//! dispatch::observe ──► recorder ──► chunk ──► session ──► trace ──► averages ──► table
//! dispatch::activity ─► device       log                     │
//!                                                            └─────► export::{chrome, report}
//! ```
//!
//! - `recorder` stamps each call into its thread's `chunk`: two readings of the cycle
//!   counter, no lock, no allocation but a new chunk now and then;
//! - a session is a window on that one stream, so any number can be alive at once;
//! - everything else (tree, self times, links, device work) is worked out after the stop.
//!
//! ```
//! use cresset_profiler::{Profiler, Schedule, record_function};
//!
//! let mut profiler = Profiler::builder()
//!     .schedule(Schedule::new(1, 1, 2)?.repeat(1))
//!     .record_shapes(true)
//!     .on_trace_ready(|profiler| profiler.export_chrome_trace("/dev/null"))
//!     .start()?;
//! for _ in 0..4 {
//!     record_function("batch").run(|| { /* train */ });
//!     profiler.step()?;
//! }
//! profiler.stop()?;
//! println!("{}", profiler.key_averages()?.table().sort_by("self_cpu_time_total")?);
//! # Ok::<(), cresset_profiler::Error>(())
//! ```

#![deny(unsafe_code)]

mod arena;
mod averages;
mod builder;
mod chunk;
mod clock;
mod communication;
mod device;
mod error;
mod execution;
mod export;
mod host;
mod log;
mod memory;
mod metadata;
mod names;
mod pack;
mod pauses;
mod profiler;
mod recorder;
mod region;
mod schedule;
mod scope;
mod session;
mod slots;
mod stack;
mod stream;
mod sync;
mod trace;
mod varint;
mod warning;

pub use averages::{Averages, Grouping};
pub use builder::{Activity, Builder};
pub use communication::Communication;
pub use cresset_dispatch::observe::Identity;
pub use cresset_dispatch::observe::is_watched;
pub use cresset_trace::{Finding, Report, Row, Severity, Table, check_trace};
pub use error::{BoxError, Error, Result};
pub use execution::{ExecutionTrace, WindowObserver};
pub use export::handler::trace_directory;
pub use export::report::{HtmlReport, Peak};
pub use memory::{MemoryAction, MemoryCategory, MemoryChange};
pub use pack::{Input, TensorInput};
pub use profiler::Profiler;
pub use schedule::{Action, Schedule};
pub use scope::{Scope, record_function};
pub use stack::{Frame, StackSource, stack_source};
pub use trace::{DeviceEvent, Event, EventKind, MemoryEvent, MemoryUse, Phase, Thread, Trace};
pub use warning::Warning;
