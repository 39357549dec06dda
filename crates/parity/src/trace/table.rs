//! The tables of averages of two traces, row by row, without their times.

use super::align::best;
use super::report::{Column, Group, What};
use cresset_trace::{Grouping, Row, Slices, Summary};
use std::collections::BTreeMap;

/// Rows that are the same in both but for times, and those that are not.
pub(super) fn compare(theirs: &Slices, ours: &Slices) -> (Column, Vec<Group>) {
    match (text(theirs), text(ours)) {
        (Some(theirs), Some(ours)) => compare_texts(&theirs, &ours),
        _ => compare_rows(theirs, ours),
    }
}

/// The table that the program which wrote a trace put beside its events.
fn text(trace: &Slices) -> Option<String> {
    let (_, text) = trace.heads.iter().find(|(key, _)| key == "table")?;
    serde_json::from_str(text).ok()
}

/// Tables are the same if all their lines are, and in the same order.
fn compare_texts(theirs: &str, ours: &str) -> (Column, Vec<Group>) {
    let [theirs, ours] = [theirs, ours].map(|text| text.lines().map(cells_of_line).collect::<Vec<_>>());
    let score = |a: usize, b: usize| match (&theirs[a], &ours[b]) {
        (a, b) if a == b => 2,
        (a, b) => u32::from(a.first() == b.first()),
    };
    let mut same = 0;
    let mut apart: BTreeMap<&str, [Option<String>; 2]> = BTreeMap::new();
    // Longer tables than this are no tables of a program.
    let longest = 4096;
    for (a, b) in best(theirs.len().min(longest), ours.len().min(longest), score) {
        let sides = [a.map(|a| &theirs[a]), b.map(|b| &ours[b])];
        if sides[0] == sides[1] {
            same += 2;
            continue;
        }
        for (side, cells) in sides.into_iter().enumerate() {
            let Some(cells) = cells else { continue };
            let name = cells.first().map_or("", String::as_str);
            apart.entry(name).or_default()[side].get_or_insert_with(|| cells.join(" | "));
        }
    }
    let groups = apart.into_iter().map(|(name, [left, right])| {
        let example = match (left, right) {
            (Some(left), Some(right)) if left == right => "stands at another place".to_owned(),
            (left, right) => {
                let show = |cells: Option<String>| cells.unwrap_or_else(|| "no line".to_owned());
                format!("theirs {}, ours {}", show(left), show(right))
            }
        };
        Group { what: What::Table, name: name.to_owned(), within: String::new(), count: 1, example }
    });
    (Column { name: "table", same, of: theirs.len() + ours.len() }, groups.collect())
}

/// The cells of a line, times and shares of time left out.
fn cells_of_line(line: &str) -> Vec<String> {
    let is_cell = |cell: &&str| !cell.is_empty() && !is_time(cell);
    let cells = line.split("  ").map(str::trim).filter(is_cell);
    cells.map(|cell| cell.split_once("time total: ").map_or(cell, |(what, _)| what).to_owned()).collect()
}

fn is_time(cell: &str) -> bool {
    let number = ["us", "ms", "s", "%"].iter().find_map(|unit| cell.strip_suffix(unit));
    cell == "*" || number.is_some_and(|number| number.parse::<f64>().is_ok())
}

fn compare_rows(theirs: &Slices, ours: &Slices) -> (Column, Vec<Group>) {
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
