//! The tables of two traces, row by row, without their times.

use super::report::{Column, Group, What};
use cresset_trace::{Grouping, Row, Slices, Summary};
use std::collections::BTreeMap;

/// Rows that are the same in both but for times, and those that are not.
pub(super) fn compare(theirs: &Slices, ours: &Slices) -> (Column, Vec<Group>) {
    let has_memory = theirs.has_memory && ours.has_memory;
    let mut rows: BTreeMap<(String, bool), [Option<String>; 2]> = BTreeMap::new();
    for (side, trace) in [theirs, ours].into_iter().enumerate() {
        // Work and calls into a device's library are named by the device, not by the program.
        let summary = Summary::of(trace, Grouping::default());
        for row in summary.rows.into_iter().filter(|row| !row.on_device) {
            let text = cells(&row, has_memory);
            rows.entry((row.key, row.is_user_annotation)).or_default()[side] = Some(text);
        }
    }
    let mut groups = Vec::new();
    for ((name, _), [left, right]) in &rows {
        if left != right {
            let show = |cells: &Option<String>| cells.clone().unwrap_or_else(|| "no row".to_owned());
            let example = format!("theirs {}, ours {}", show(left), show(right));
            groups.push(Group {
                what: What::Table,
                name: name.clone(),
                within: String::new(),
                count: 1,
                example,
            });
        }
    }
    (Column { name: "table", same: rows.len() - groups.len(), of: rows.len() }, groups)
}

fn cells(row: &Row, has_memory: bool) -> String {
    let mut cells = format!("{} calls", row.count);
    if has_memory {
        cells += &format!(", {} B, {} B by itself", row.cpu_memory_usage, row.self_cpu_memory_usage);
    }
    cells
}
