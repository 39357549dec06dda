//! Traces of several ranks become one that readers take, and in which nothing is mixed up.

use cresset_trace::{Keep, Slices, check_trace, merge_traces};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A trace of one rank: a call, a kernel that it launched, and the flow between them.
fn trace(rank: Option<u64>, base: u64) -> Value {
    let meta = |name: &str, pid: u64, args: Value| json!({"ph": "M", "name": name, "pid": pid, "tid": 0, "ts": 1.0, "args": args});
    let mut trace = json!({
        "schemaVersion": 1,
        "deviceProperties": [],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": base,
        "traceEvents": [
            meta("process_name", 77, json!({"name": "a \"host\""})),
            meta("process_sort_index", 77, json!({"sort_index": 5})),
            meta("process_name", 0, json!({"name": "NPU 0"})),
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 77, "tid": 1, "ts": 10.5, "dur": 2.0, "args": {"External id": 1}},
            {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 4, "pid": 77, "tid": 1, "ts": 10.5},
            {"ph": "X", "cat": "kernel", "name": "MatMul", "pid": 0, "tid": 1, "ts": 11.25, "dur": 2.0, "args": {}},
            {"ph": "f", "bp": "e", "cat": "ac2g", "name": "ac2g", "id": 4, "pid": 0, "tid": 1, "ts": 11.25},
        ],
    });
    if let Some(rank) = rank {
        trace["distributedInfo"] = json!({"rank": rank, "world_size": 2});
    }
    trace
}

fn merged(name: &str, traces: &[Value]) -> (PathBuf, Value) {
    let folder = std::env::temp_dir().join(format!("cresset-merge-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let paths: Vec<PathBuf> = traces
        .iter()
        .enumerate()
        .map(|(i, trace)| {
            let path = folder.join(format!("{i}.json"));
            std::fs::write(&path, trace.to_string()).unwrap();
            path
        })
        .collect();
    let mut out = Vec::new();
    merge_traces(&paths, &mut out).unwrap();
    std::fs::write(folder.join("all.json"), &out).unwrap();
    (folder, serde_json::from_slice(&out).unwrap())
}

#[test]
fn ranks_keep_processes_flows_and_times_apart() {
    let (folder, all) = merged("apart", &[trace(Some(1), 2_000_000), trace(Some(0), 1_000_000)]);
    assert_eq!(all["baseTimeNanoseconds"], 1_000_000);
    let events = all["traceEvents"].as_array().unwrap();
    assert_eq!(events.len(), 14, "nothing is lost");
    let find =
        |name: &str, pid: u64| events.iter().find(|event| event["name"] == name && event["pid"] == pid);
    assert_eq!(find("process_name", 1000).unwrap()["args"]["name"], "rank 1: a \"host\"");
    assert_eq!(find("process_name", 1).unwrap()["args"]["name"], "rank 0: NPU 0");
    assert_eq!(find("process_sort_index", 1000).unwrap()["args"]["sort_index"], 1000);
    // The first file counts from a millisecond later.
    assert_eq!(find("aten::mm", 1000).unwrap()["ts"], 1010.5);
    assert_eq!(find("aten::mm", 0).unwrap()["ts"], 10.5);
    let flows = |pid: u64, ph: &str| {
        let is_one = |event: &&Value| event["pid"] == pid && event["ph"] == ph;
        events.iter().find(is_one).unwrap()["id"].as_u64().unwrap()
    };
    assert_eq!((flows(1000, "s"), flows(0, "s")), (flows(1001, "f"), flows(1, "f")));
    assert_ne!(flows(1000, "s"), flows(0, "s"));
    let path = folder.join("all.json");
    assert_eq!(Slices::read(&path, Keep::default()).unwrap().slices.len(), 4);
    assert!(check_trace(&path).unwrap().events() == 14);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn traces_without_a_rank_or_of_the_same_count_by_their_place() {
    for ranks in [[None, Some(0)], [Some(3), Some(3)]] {
        let (folder, all) = merged("place", &ranks.map(|rank| trace(rank, 0)));
        let events = all["traceEvents"].as_array().unwrap();
        let mut pids: Vec<u64> = events.iter().map(|event| event["pid"].as_u64().unwrap()).collect();
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids, [0, 1, 1000, 1001]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
