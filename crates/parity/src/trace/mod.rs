//! Two traces of one program, torch's and ours, side by side: which calls, in which order, in
//! which calls, with which arguments, links, memory and operations.

mod align;
mod compare;
mod flops;
mod folder;
mod forest;
mod report;
mod results;
mod table;
#[cfg(test)]
mod tests;

pub use folder::{FolderReport, compare_folders};
pub use report::{Column, Group, TraceReport, What};

use compare::Comparison;
use cresset_trace::{Keep, Slices};
use forest::Forest;
use std::path::Path;

/// Compares two traces; what differs is told from the side of `theirs`.
///
/// # Errors
/// A file cannot be read, or is no trace; the error says where it breaks.
pub fn compare_traces(ours: &Path, theirs: &Path) -> cresset_trace::Result<TraceReport> {
    let keep = Keep { shapes: true, stacks: false, details: true, heads: &["results", "table"] };
    let (ours, theirs) = (Slices::read(ours, keep)?, Slices::read(theirs, keep)?);
    let (our_forest, their_forest) = (Forest::of(&ours), Forest::of(&theirs));
    let comparison = Comparison::of(&their_forest, &our_forest);
    Ok(TraceReport::of(comparison, vec![table::compare(&theirs, &ours), results::compare(&theirs, &ours)]))
}
