//! Broken, hostile and strange files: a message that names the file and the place, never a panic.
//!
//! `tests/corpus` keeps files that once were trouble, or could be.

use cresset_trace::{
    Diff, Error, Frames, Grouping, Keep, Metric, Slices, Summary, Weight, check_trace, stacks,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

struct File(PathBuf);

impl File {
    fn new(bytes: &[u8]) -> File {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("cresset-hostile-{}-{}.json", std::process::id(), COUNT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// Does all that can be done with a file; errors must name it.
fn use_all(path: &Path) -> Result<Summary, String> {
    let named = |error: Error| {
        let text = error.to_string();
        assert!(text.contains(&*path.to_string_lossy()), "{text}");
        text
    };
    drop(check_trace(path).map_err(named)?.to_string());
    let keep = Keep { shapes: true, stacks: true, details: true, heads: &["results"] };
    let trace = Slices::read(path, keep).map_err(named)?;
    for weight in [Weight::Host, Weight::Device] {
        drop(stacks(&trace, Frames::Nesting, weight));
        drop(stacks(&trace, Frames::Recorded, weight));
    }
    let grouping = Grouping { by_input_shape: true, by_stack: 2, include_python: true };
    let summary = Summary::of(&trace, grouping);
    let plain = Summary::read(path, Grouping::default()).map_err(named)?;
    drop(format!("{}{}{}", summary.heading(), summary.table(), plain.table()));
    for name in Metric::NAMES {
        let runs = [summary.clone(), plain.clone()];
        drop(Diff::of(&runs[..1], &runs, Metric::named(name).unwrap(), true).table(5).to_string());
    }
    Ok(plain)
}

fn complaint(bytes: &[u8]) -> String {
    use_all(&File::new(bytes).0).unwrap_err()
}

fn events(texts: &[&str]) -> String {
    format!("{{\"traceEvents\": [{}]}}", texts.join(",\n"))
}

const GOOD: &str =
    r#"{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 5.000, "dur": 2.500}"#;

#[test]
fn text_that_breaks_is_told_with_its_place() {
    let cases: [(&str, &str); 12] = [
        ("", "line 1, byte 0: expected a trace: '{' or '[', found the end"),
        ("hello", "line 1, byte 0: expected a trace: '{' or '[', found 'h'"),
        ("7", "expected a trace"),
        ("{}", "no list of traceEvents: this is no trace"),
        ("{\"traceEvents\": 5}", "no list of traceEvents"),
        ("{\"traceEvents\": [{}]} x", "byte 22: expected the end, found 'x'"),
        (
            "{\"traceEvents\": [\n{},\n{\"ph\": \"X\" \"cat\"",
            "event 1, line 3, byte 33: expected ',' or '}', found '\"'",
        ),
        ("[{\"ts\": 01}]", "event 0, line 1, byte 8: expected a number, found '0'"),
        ("[{\"ts\": nan}]", "event 0, line 1, byte 8: expected null, found 'n'"),
        ("[{\"a\": \"\\x\"}]", "byte 8: expected an escape, found '\\\\'"),
        ("[{\"a\": \"\\u12g4\"}]", "expected \\u and four hexadecimal digits"),
        ("[{\"a\": \"line\nbreak\"}]", "expected a letter of a text, found '\\n'"),
    ];
    for (text, expected) in cases {
        let told = complaint(text.as_bytes());
        assert!(told.contains(expected), "{text:?}: {told}");
    }
}

#[test]
fn a_truncated_file_is_told_with_the_event_that_is_cut() {
    let text = events(&[GOOD; 10]);
    let told = complaint(&text.as_bytes()[..text.len() - 30]);
    assert!(told.contains("event 9, line 10, byte") && told.contains("found the end"), "{told}");
}

#[test]
fn bytes_that_are_no_text_are_told_with_their_place() {
    let mut bytes = events(&[GOOD]).into_bytes();
    let at = bytes.windows(3).position(|window| window == b"add").unwrap();
    bytes[at] = 0xff;
    let told = complaint(&bytes);
    assert!(told.ends_with(&format!("event 0, line 1, byte {at}: not UTF-8")), "{told}");
    assert!(complaint(b"\xff\xfe{}").ends_with("line 1, byte 0: not UTF-8"));
}

#[test]
fn compressed_data_that_is_broken_is_told_as_such() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(events(&[GOOD; 100]).as_bytes()).unwrap();
    let good = encoder.finish().unwrap();
    assert_eq!(use_all(&File::new(&good).0).unwrap().events, 100);
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0xff;
    for bytes in [&good[..good.len() / 2], &good[..2], &flipped] {
        let told = complaint(bytes);
        assert!(told.contains("the compressed data is broken") || told.contains("expected"), "{told}");
    }
}

#[test]
fn values_that_are_nested_too_deep_are_refused() {
    for open in ["[", "{\"a\":"] {
        let told = complaint(events(&[&open.repeat(100_000)]).as_bytes());
        assert!(told.contains("nested more than 256 deep"), "{told}");
    }
}

#[test]
fn slices_that_lie_in_each_other_very_deep_are_summed_up() {
    let slices: Vec<String> = (0..20_000)
        .map(|i| {
            format!(r#"{{"ph":"X","cat":"cpu_op","name":"n{}","ts":{i},"dur":{}}}"#, i % 7, 50_000 - 2 * i)
        })
        .collect();
    let slices: Vec<&str> = slices.iter().map(String::as_str).collect();
    let summary = use_all(&File::new(events(&slices).as_bytes()).0).unwrap();
    assert_eq!(summary.rows.iter().map(|row| row.count).sum::<u64>(), 20_000);
}

#[test]
fn events_of_the_wrong_types_are_left_out_and_counted() {
    let strange = [
        "5",
        "null",
        "[]",
        r#"{"ph": "X"}"#,
        r#"{"ph": "X", "name": 7, "ts": 1, "dur": 1}"#,
        r#"{"ph": "X", "name": "a", "ts": true, "dur": 1}"#,
        r#"{"ph": "X", "name": "a", "ts": 1, "dur": -1}"#,
        r#"{"ph": 3, "name": "a", "ts": 1, "dur": 1}"#,
        r#"{"ph": "X", "cat": [], "name": "kept", "ts": 1, "dur": 1, "pid": {}, "tid": [1], "args": 5}"#,
        r#"{"ph": "i", "name": "[memory]", "ts": 1, "args": {"Bytes": "x", "Device Type": null}}"#,
    ];
    let summary = use_all(&File::new(events(&strange).as_bytes()).0).unwrap();
    assert_eq!((summary.events, summary.left_out, summary.rows.len()), (10, 4, 1));
}

#[test]
fn numbers_beyond_all_bounds_do_no_harm() {
    let slice =
        |ts: &str, dur: &str| format!(r#"{{"ph":"X","cat":"cpu_op","name":"a","ts":{ts},"dur":{dur}}}"#);
    let huge =
        ["9e15", "9007199254740993", "8.9e15", "1e300", "99999999999999999999999999", "1e-300", "0", "-9e15"];
    let mut slices: Vec<String> = huge.iter().flat_map(|a| huge.iter().map(move |b| slice(a, b))).collect();
    let memory = |bytes: &str| {
        format!(
            r#"{{"ph":"i","s":"t","name":"[memory]","cat":"cpu_instant_event","pid":0,"tid":0,"ts":0,"args":{{"Bytes":{bytes},"Addr":{bytes},"Device Type":0,"Device Id":-1,"Total Allocated":{bytes},"Total Reserved":0,"Ev Idx":{bytes}}}}}"#
        )
    };
    slices.extend(
        ["9223372036854775807", "-9223372036854775808", "170141183460469231731687303715884105727"]
            .map(memory),
    );
    slices.extend(
        ["9223372036854775807", "-9223372036854775808", "-170141183460469231731687303715884105728"]
            .map(memory),
    );
    slices.extend(["9223372036854775807", "18446744073709551616"].map(|number| {
        format!(r#"{{"ph":"X","cat":"kernel","name":"k","pid":{number},"tid":{number},"ts":0,"dur":9e15,"args":{{"External id":{number},"correlation":{number},"flops":{number}}}}}"#)
    }));
    let slices: Vec<&str> = slices.iter().map(String::as_str).collect();
    use_all(&File::new(events(&slices).as_bytes()).0).unwrap();
}

#[test]
fn what_torch_npu_writes_is_read() {
    // A list at the top, and times as texts.
    let text = r#"[{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": "1700000000000000.125", "dur": 2.5}]"#;
    let summary = use_all(&File::new(text.as_bytes()).0).unwrap();
    assert_eq!((summary.rows[0].cpu_time_total, summary.span.0), (2500, 1_700_000_000_000_000_125));
}

#[test]
fn the_kept_files_do_no_harm() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let is_good = file.file_name().unwrap().to_string_lossy().starts_with("good");
        assert_eq!(use_all(&file).is_ok(), is_good, "{}", file.display());
    }
}

/// A trace with something of everything.
fn everything() -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/good_everything.json")).unwrap()
}

/// One change of a file: where, what, how much.
#[derive(Clone, Debug)]
enum Change {
    Set(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, &'static str),
    Cut(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let words = prop::sample::select(vec![
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "-",
        "1e999",
        "99999999999999999999",
        "\\ud800",
        "\u{0}",
        "é",
        "[[[[",
        "0.0000000001",
        "-1",
        "true",
    ]);
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<usize>(), 1..40usize).prop_map(|(at, length)| Change::Remove(at, length)),
        (any::<usize>(), 1..400usize).prop_map(|(at, length)| Change::Repeat(at, length)),
        (any::<usize>(), words).prop_map(|(at, word)| Change::Insert(at, word)),
        any::<usize>().prop_map(Change::Cut),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let length = bytes.len().max(1);
    match *change {
        Change::Set(at, byte) => bytes.iter_mut().skip(at % length).take(1).for_each(|place| *place = byte),
        Change::Remove(at, count) => drop(bytes.drain(at % length..(at % length + count).min(bytes.len()))),
        Change::Repeat(at, count) => {
            let piece: Vec<u8> = bytes.iter().skip(at % length).take(count).copied().collect();
            bytes.splice(at % length..at % length, piece);
        }
        Change::Insert(at, word) => drop(bytes.splice(at % length..at % length, word.bytes())),
        Change::Cut(at) => bytes.truncate(at % length),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_files_are_read_or_refused(changes in prop::collection::vec(change(), 1..4)) {
        let mut bytes = everything();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        let outcome = use_all(&File::new(&bytes).0);
        // What another reader of JSON takes as a trace is one.
        if let Ok(value) = serde_json::from_slice::<serde_json::Value>(&bytes) {
            let is_trace = value.is_array() || value["traceEvents"].is_array();
            prop_assert_eq!(outcome.is_ok(), is_trace, "{:?}", outcome.err());
        }
    }
}
