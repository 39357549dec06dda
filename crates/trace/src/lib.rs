//! Reads Chrome traces of any size, torch's and ours: tables, checks, comparisons, flame graphs.
//!
//! Nothing here knows of sessions or devices: a trace is a file, and this is its reader.

#![forbid(unsafe_code)]

mod check;
mod error;
mod row;
mod table;

pub use check::{Finding, Report, Severity, check_trace};
pub use error::{Error, Result};
pub use row::{Figure, Row};
pub use table::{Table, self_cpu_time_total, self_device_time_total};
