//! Summaries of torch's traces: the tables that torch made of the same sessions.
//!
//! They are equal to the byte but for one thing: torch adds doubles, and of an average that lies
//! half-way between two digits it shows the one or the other.
//!
//! `tests/torch` was written by `tests/torch/record.py` with torch 2.15.

use cresset_trace::{Grouping, Summary};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torch")
}

fn printed(trace: &Path, case: &Value) -> String {
    let (given, options) = (&case["grouping"], &case["options"]);
    let grouping = Grouping { by_input_shape: given["group_by_input_shape"] == true, ..Grouping::default() };
    let summary = Summary::read(trace, grouping).unwrap();
    let mut table = summary.table().top_level_events_only(options["top_level_events_only"] == true);
    if let Some(limit) = options["row_limit"].as_i64() {
        table = table.row_limit(usize::try_from(limit).ok());
    }
    if let Some(key) = options["sort_by"].as_str() {
        table = table.sort_by(key).unwrap();
    }
    table.to_string()
}

/// Whether two cells are equal, or times that differ by one in their last digit.
fn same(ours: &str, torchs: &str) -> bool {
    let number = |cell: &str| -> Option<f64> { cell.trim_end_matches(['u', 'm', 's']).parse().ok() };
    let is_time = ours.ends_with('s') && ours.len() == torchs.len();
    let close = || matches!((number(ours), number(torchs)), (Some(a), Some(b)) if (a - b).abs() < 0.00101);
    ours == torchs || is_time && close()
}

fn check(name: &str) {
    let trace = folder().join(format!("{name}.json.gz"));
    let cases = std::fs::read(folder().join(format!("{name}.tables.json"))).unwrap();
    for case in serde_json::from_slice::<Vec<Value>>(&cases).unwrap() {
        let (ours, torchs) = (printed(&trace, &case), case["text"].as_str().unwrap());
        let what = format!("{name} {} {}:\n{ours}\ntorch:\n{torchs}", case["grouping"], case["options"]);
        assert_eq!(ours.len(), torchs.len(), "{what}");
        for (a, b) in ours.split(' ').zip(torchs.split(' ')) {
            assert!(same(a, b), "{a} and {b} in {what}");
        }
    }
}

#[test]
fn a_training_run() {
    check("train");
}

#[test]
fn steps_and_memory() {
    check("steps");
}

#[test]
fn lists_of_tensors_and_nested_ranges() {
    check("lists");
}

#[test]
fn calls_of_python_have_no_rows_and_ranges_that_cross_them_no_negative_times() {
    let trace = folder().join("frames.json.gz");
    let summary = Summary::read(&trace, Grouping::default()).unwrap();
    let cases = std::fs::read(folder().join("frames.tables.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_slice(&cases).unwrap();
    let torchs = cases[0]["text"].as_str().unwrap();
    // torch has -26.860us by itself for the range that begins and ends within calls of Python.
    assert!(torchs.contains("-26.860us"), "{torchs}");
    for row in &summary.rows {
        let line =
            torchs.lines().find(|line| line.trim_start().starts_with(&format!("{} ", row.key))).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        let own = if row.key == "outer" { "0.000us" } else { cells[2] };
        assert_eq!((row.self_cpu_time_total_str(), row.cpu_time_total_str()), (own.into(), cells[4].into()));
        assert_eq!(row.count.to_string(), cells[6]);
    }
    let with_python = Grouping { include_python: true, ..Grouping::default() };
    assert!(Summary::read(&trace, with_python).unwrap().rows.len() > summary.rows.len());
}
