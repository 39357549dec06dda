//! Traces made by hand, and what is said of each pair.

use super::{TraceReport, What, compare_traces};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A call from one microsecond to another, with arguments.
type Call = (&'static str, u32, u32, Value);

fn call(name: &'static str, start: u32, end: u32) -> Call {
    (name, start, end, json!({}))
}

struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

fn file(calls: &[Call], others: &[Value]) -> File {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("cresset-parity-{}-{}.json", std::process::id(), COUNT.fetch_add(1, Relaxed));
    let path = std::env::temp_dir().join(name);
    let mut events: Vec<Value> = calls
        .iter()
        .map(|(name, start, end, args)| {
            json!({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": end - start,
                "args": args})
        })
        .collect();
    events.extend_from_slice(others);
    std::fs::write(&path, json!({"traceEvents": events}).to_string()).unwrap();
    File(path)
}

fn compared(ours: &[Call], theirs: &[Call]) -> TraceReport {
    let (ours, theirs) = (file(ours, &[]), file(theirs, &[]));
    compare_traces(&ours.0, &theirs.0).unwrap()
}

/// What differs, by the names of the calls; the table says it once more.
fn found(report: &TraceReport) -> Vec<(What, &str, usize)> {
    let groups = report.groups.iter().filter(|group| group.what != What::Table);
    groups.map(|group| (group.what, group.name.as_str(), group.count)).collect()
}

fn percent(report: &TraceReport, name: &str) -> f64 {
    report.columns.iter().find(|column| column.name == name).unwrap().percent()
}

fn linear() -> Vec<Call> {
    vec![
        call("aten::linear", 0, 100),
        call("aten::t", 10, 30),
        call("aten::transpose", 12, 20),
        call("aten::addmm", 40, 90),
        call("aten::relu", 110, 120),
    ]
}

#[test]
fn the_same_calls_at_other_times_are_the_same() {
    let later: Vec<Call> =
        linear().into_iter().map(|(name, start, end, args)| (name, start * 3, end * 3, args)).collect();
    let report = compared(&linear(), &later);
    assert_eq!((report.percent(), found(&report)), (100.0, vec![]));
}

#[test]
fn steps_and_overloads_have_one_name() {
    let ours = [call("ProfilerStep#2", 0, 10), call("aten::add", 2, 4)];
    let theirs = [call("ProfilerStep#7", 0, 10), call("aten::add.Tensor", 2, 4)];
    assert_eq!(found(&compared(&ours, &theirs)), []);
}

#[test]
fn calls_that_only_one_has_are_told_where_they_are() {
    let mut ours = linear();
    ours.remove(2);
    let report = compared(&ours, &linear());
    assert_eq!(found(&report), [(What::Missing, "aten::transpose", 1)]);
    assert_eq!(report.groups[0].within, "aten::t");
    assert!(
        report.excerpts[0].contains("@@ aten::linear > aten::t @@")
            && report.excerpts[0].contains("- aten::transpose")
    );
    assert_eq!(percent(&report, "events"), 800.0 / 9.0);
    let report = compared(&linear(), &ours);
    assert_eq!(found(&report), [(What::Extra, "aten::transpose", 1)]);
}

#[test]
fn calls_in_another_order_are_neither_missing_nor_extra() {
    let ours = [call("aten::a", 0, 1), call("aten::c", 2, 3), call("aten::b", 4, 5)];
    let theirs = [call("aten::a", 0, 1), call("aten::b", 2, 3), call("aten::c", 4, 5)];
    let report = compared(&ours, &theirs);
    assert_eq!(found(&report).iter().map(|group| group.0).collect::<Vec<_>>(), [What::Order]);
    assert_eq!(percent(&report, "events"), 100.0);
    assert!(percent(&report, "order") < 100.0);
}

#[test]
fn a_call_around_others_is_told_as_such() {
    let ours = [call("aten::expand", 0, 4), call("aten::mm", 5, 9), call("aten::relu", 10, 12)];
    let theirs = [
        call("aten::addmm", 0, 9),
        call("aten::expand", 1, 4),
        call("aten::mm", 5, 8),
        call("aten::relu", 10, 12),
    ];
    let report = compared(&ours, &theirs);
    assert_eq!(found(&report), [(What::Nesting, "aten::addmm", 1)]);
    let report = compared(&theirs, &ours);
    assert_eq!(found(&report), [(What::Nesting, "aten::addmm", 1)]);
}

#[test]
fn arguments_are_compared_as_values() {
    let args = |dims: Value, kind: &str, concrete: &str| json!({"Input Dims": [dims], "Input type": [kind], "Concrete Inputs": [concrete]});
    let one = |args: Value| [("aten::add", 0, 1, args)];
    let theirs = one(args(json!([2, 3]), "float", "1."));
    assert_eq!(found(&compared(&theirs, &theirs)), []);
    let ours = one(args(json!([3, 2]), "double", "1"));
    let report = compared(&ours, &theirs);
    let name = "aten::add";
    assert_eq!(found(&report), [(What::Dims, name, 1), (What::Types, name, 1), (What::Concrete, name, 1)]);
    assert!(
        report.groups[0].example.contains("theirs [[2,3]], ours [[3,2]]"),
        "{}",
        report.groups[0].example
    );
}

#[test]
fn sequence_numbers_may_differ_but_not_what_they_link() {
    let linked = |numbers: [i64; 3]| -> Vec<Call> {
        let names = ["aten::mul", "aten::sum", "MulBackward0"];
        let calls = names.into_iter().zip(numbers).enumerate();
        let call = |(i, (name, number)): (usize, (&'static str, i64))| {
            let args = json!({"Sequence number": number, "Fwd thread id": usize::from(i == 2)});
            (name, 2 * i as u32, 2 * i as u32 + 1, args)
        };
        calls.map(call).collect()
    };
    assert_eq!(found(&compared(&linked([7, 8, 7]), &linked([100, 101, 100]))), []);
    let report = compared(&linked([7, 8, 8]), &linked([100, 101, 100]));
    assert_eq!(found(&report), [(What::Sequence, "MulBackward0", 1)]);
}

#[test]
fn arrows_lead_between_the_same_calls() {
    let calls = [call("aten::mul", 0, 1), call("aten::sum", 2, 3), call("MulBackward0", 4, 5)];
    let arrow = |from: u32| {
        [("s", from), ("f", 4)].map(|(phase, time)| {
            json!({"ph": phase, "id": 1, "pid": 1, "tid": 1, "ts": time, "cat": "fwdbwd", "name": "fwdbwd"})
        })
    };
    let theirs = file(&calls, &arrow(0));
    let same = compare_traces(&theirs.0, &theirs.0).unwrap();
    assert_eq!((percent(&same, "forward to backward"), found(&same)), (100.0, vec![]));
    let report = compare_traces(&file(&calls, &arrow(2)).0, &theirs.0).unwrap();
    assert_eq!(found(&report), [(What::Flow, "MulBackward0", 2)]);
}

#[test]
fn memory_counts_for_all_calls_around_it() {
    let report = |bytes: i64| {
        json!({"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": 1, "tid": 1, "ts": 15,
            "args": {"Bytes": bytes, "Device Type": 0}})
    };
    let theirs = file(&linear(), &[report(64)]);
    let compared = compare_traces(&file(&linear(), &[report(32)]).0, &theirs.0).unwrap();
    let names: Vec<&str> = found(&compared).iter().map(|group| group.1).collect();
    assert_eq!(names, ["aten::linear", "aten::t", "aten::transpose"]);
}

#[test]
fn operations_are_held_against_torchs_formulas() {
    let dims = json!([[8], [4, 16], [16, 8], [], []]);
    let ours = |flops: u64| [("aten::addmm", 0, 1, json!({"Input Dims": dims, "flops": flops}))];
    let theirs = [("aten::addmm", 0, 1, json!({"Input Dims": dims}))];
    assert_eq!(found(&compared(&ours(2 * 4 * 16 * 8), &theirs)), []);
    assert_eq!(found(&compared(&ours(512), &theirs)), [(What::Flops, "aten::addmm", 1)]);
}

#[test]
fn long_lists_are_laid_side_by_side_piece_by_piece() {
    let calls = |skip: u32| -> Vec<Call> {
        let names = ["aten::a", "aten::b", "aten::c"];
        (0..5000).filter(|&i| i != skip).map(|i| call(names[i as usize % 3], 2 * i, 2 * i + 1)).collect()
    };
    let report = compared(&calls(100), &calls(u32::MAX));
    assert_eq!(found(&report), [(What::Missing, "aten::b", 1)]);
}

#[test]
fn a_file_that_is_no_trace_is_named() {
    let good = file(&linear(), &[]);
    let bad = file(&[], &[]);
    std::fs::write(&bad.0, "{\"traceEvents\": [{]").unwrap();
    let error = compare_traces(&good.0, &bad.0).unwrap_err().to_string();
    assert!(error.contains("event 0, line 1, byte 18: expected a key, found ']'"), "{error}");
}
