//! Reads Chrome traces of any size, torch's and ours: tables, checks, comparisons, flame graphs, several as one.
//!
//! Nothing here knows of sessions or devices: a trace is a file, and this is its reader.

#![forbid(unsafe_code)]

mod check;
mod diff;
mod error;
mod event;
mod merge;
mod read;
mod row;
mod shapes;
mod slices;
mod stacks;
mod summary;
mod table;
mod texts;
mod tree;

pub use check::{Finding, Report, Severity, check_trace};
pub use diff::{Change, Diff, Metric, Runs, Verdict};
pub use error::{Error, Place, Result};
pub use merge::merge_traces;
pub use row::{Figure, Row};
pub use slices::{Detail, Flow, Keep, Kind, Memory, NONE, Slice, Slices, Track};
pub use stacks::{Frames, Weight, stacks, write_stacks};
pub use summary::{Grouping, Step, Summary, TrackSummary};
pub use table::{Table, self_cpu_time_total, self_device_time_total};
pub use tree::Tree;
