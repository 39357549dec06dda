//! Programs and traces that are broken, hostile or changed at random: an answer or a message that says
//! where, never a panic.
//!
//! `tests/corpus` keeps programs that once were trouble, or could be. `PROPTEST_CASES` and
//! `PROPTEST_RNG_SEED` look further than the default, which is the same each time; so does
//! `CRESSET_PROGRAMS`, a folder of programs to be changed instead of those that are shipped.

use cresset_parity::compare_traces;
use cresset_parity::program::Program;
use cresset_tensor::{Device, limit_host_bytes};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What tensors may hold here, so that a program that asks for more is noticed.
const MOST_BYTES: u64 = 1 << 28;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

static SHIPPED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let folder = std::env::var("CRESSET_PROGRAMS");
    files(folder.as_deref().unwrap_or("../../parity/programs"))
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
});

/// Does all that can be done with a program; what is wrong with it is told.
fn use_all(bytes: &[u8]) -> Result<(), String> {
    limit_host_bytes(MOST_BYTES);
    let ran = Program::from_json(bytes)?.run(Device::CPU)?;
    drop(ran.profiler.key_averages().map_err(|error| error.to_string())?.table().to_string());
    Ok(())
}

fn told(bytes: &[u8]) {
    if let Err(reason) = use_all(bytes) {
        assert!(!reason.is_empty());
    }
}

/// What stands in the place of a value, or is done to the list or object that it is.
#[derive(Clone, Debug)]
enum Change {
    Put(Value),
    Remove(Index),
    Double(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let ints = [0, 1, 2, -1, -3, 7, 64, 1 << 20, 1 << 31, 1 << 40, i64::MAX, i64::MIN];
    let texts = ["", "x", "y", "w", "loss", "aten::mm", "aten::view", "aten::zeros", "nan", "mean", "\u{0}"];
    let objects = [
        json!({}),
        json!({"s": "sum"}),
        json!({"f": "nan"}),
        json!({"slice": [0, null, 0]}),
        json!({"slice": [i64::MIN, i64::MAX, 1]}),
        json!({"ellipsis": true}),
        json!({"dtype": "bool"}),
        json!({"memory_format": "channels_last"}),
        json!({"u": []}),
        json!({"t": "t0", "k": 0}),
        json!({"ref": 0}),
    ];
    let put = prop_oneof![
        proptest::sample::select(ints.to_vec()).prop_map(Value::from),
        proptest::sample::select(texts.to_vec()).prop_map(Value::from),
        proptest::sample::select(objects.to_vec()),
        proptest::sample::select(vec![
            json!(null),
            json!(true),
            json!(1e300),
            json!(-0.5),
            json!([]),
            json!([[0]])
        ]),
        proptest::collection::vec(-2i64..5, 0..4).prop_map(Value::from),
    ];
    prop_oneof![
        4 => put.prop_map(Change::Put),
        1 => any::<Index>().prop_map(Change::Remove),
        1 => any::<Index>().prop_map(Change::Double),
    ]
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes value number `left`, counted as they stand in the file.
fn apply(value: &mut Value, left: &mut usize, change: &Change) -> bool {
    if *left > 0 {
        *left -= 1;
        return match value {
            Value::Array(list) => list.iter_mut().any(|inner| apply(inner, left, change)),
            Value::Object(members) => members.values_mut().any(|inner| apply(inner, left, change)),
            _ => false,
        };
    }
    match (change, value) {
        (Change::Put(other), value) => *value = other.clone(),
        (Change::Remove(at), Value::Array(list)) if !list.is_empty() => {
            drop(list.remove(at.index(list.len())))
        }
        (Change::Double(at), Value::Array(list)) if !list.is_empty() => {
            list.push(list[at.index(list.len())].clone());
        }
        (Change::Remove(at), Value::Object(members)) if !members.is_empty() => {
            let name = members.keys().nth(at.index(members.len())).cloned().unwrap_or_default();
            members.remove(&name);
        }
        _ => {}
    }
    true
}

#[test]
fn kept_programs_are_refused_with_their_place_or_run() {
    for path in files("tests/corpus") {
        let outcome = Program::read(&path).and_then(|program| {
            limit_host_bytes(MOST_BYTES);
            program.run(Device::CPU).map(drop).map_err(|reason| format!("{}: {reason}", path.display()))
        });
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match outcome {
            Ok(()) => assert!(name.starts_with("runs_"), "{name} is to be refused"),
            Err(reason) => {
                assert!(!name.starts_with("runs_"), "{reason}");
                assert!(reason.contains(&name), "{name} is not named: {reason}");
            }
        }
    }
}

#[test]
fn a_program_that_is_cut_anywhere_is_told_where_it_ends() {
    for text in SHIPPED.iter() {
        for end in (0..text.len().saturating_sub(3)).step_by(97) {
            let reason = use_all(&text.as_bytes()[..end]).unwrap_err();
            assert!(reason.contains("line"), "{reason}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_values_makes_a_program_panic(
        which in any::<Index>(),
        changes in proptest::collection::vec((any::<Index>(), change()), 1..4),
    ) {
        let mut program: Value = serde_json::from_str(&SHIPPED[which.index(SHIPPED.len())]).unwrap();
        for (at, change) in &changes {
            let mut left = at.index(count(&program));
            apply(&mut program, &mut left, change);
        }
        told(program.to_string().as_bytes());
    }

    #[test]
    fn no_change_of_bytes_makes_a_program_panic(
        which in any::<Index>(),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = SHIPPED[which.index(SHIPPED.len())].clone().into_bytes();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        told(&bytes);
    }

    #[test]
    fn no_change_of_a_trace_makes_a_comparison_panic(
        changes in proptest::collection::vec((any::<Index>(), change()), 1..6),
        cut in proptest::option::of(any::<Index>()),
    ) {
        let mut trace = small_trace();
        for (at, change) in &changes {
            let mut left = at.index(count(&trace));
            apply(&mut trace, &mut left, change);
        }
        let mut text = trace.to_string();
        if let Some(cut) = cut {
            let end = (0..=cut.index(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
            text.truncate(end);
        }
        let scratch = Scratch::new();
        let (good, changed) = (scratch.file("good.json", &small_trace().to_string()), scratch.file("changed.json", &text));
        for (ours, theirs) in [(&good, &changed), (&changed, &good), (&changed, &changed)] {
            match compare_traces(ours, theirs) {
                Ok(report) => drop((report.json().to_string(), report.percent())),
                Err(error) => prop_assert!(error.to_string().contains("changed.json"), "{}", error),
            }
        }
    }
}

/// Calls in calls with all that is compared.
fn small_trace() -> Value {
    let call = |name: &str, start: u32, length: u32, args: Value| json!({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": args});
    let shown = json!({"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"], "Concrete Inputs": ["", "1"],
        "Sequence number": 4, "Fwd thread id": 0});
    let memory = json!({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1,
        "ts": 13, "args": {"Bytes": 24, "Device Type": 0}});
    let flow = |phase: &str, at: u32| json!({"ph": phase, "id": 4, "pid": 1, "tid": 1, "ts": at, "cat": "fwdbwd", "name": "fwdbwd", "bp": "e"});
    json!({
        "record_shapes": 1,
        "results": {"loss": {"shape": [2], "dtype": "f32", "values": [1.5, "nan"]}},
        "table": "Name  # of Calls\n",
        "traceEvents": [
            call("aten::linear", 0, 50, shown.clone()), call("aten::addmm", 10, 20, shown.clone()), memory,
            call("AddmmBackward0", 60, 20, json!({"Sequence number": 4, "Fwd thread id": 1})),
            call("aten::mm", 62, 8, shown), flow("s", 10), flow("f", 60),
        ],
    })
}

/// A folder that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("cresset-hostile-traces-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
