//! Observers that come and go with what is recorded.

use crate::fake::{Op, alone, directory, op};
use cresset_profiler::{Error, ExecutionTrace, Profiler, Result, Schedule, WindowObserver};
use parking_lot::Mutex;
use serde_json::Value;
use std::fs;
use std::sync::Arc;

/// Notes what it is told, and fails if it is to.
struct Notes(Arc<Mutex<Vec<&'static str>>>, Option<&'static str>);

impl Notes {
    fn note(&self, what: &'static str) -> Result<()> {
        self.0.lock().push(what);
        if self.1 == Some(what) { Err(Error::NotRunning { action: what }) } else { Ok(()) }
    }
}

impl WindowObserver for Notes {
    fn start(&mut self) -> Result<()> {
        self.note("start")
    }

    fn stop(&mut self) -> Result<()> {
        self.note("stop")
    }

    fn cleanup(&mut self) -> Result<()> {
        self.note("cleanup")
    }
}

#[test]
fn execution_trace_observer_is_told_of_every_window() {
    let _alone = alone();
    let notes = Arc::new(Mutex::new(Vec::new()));
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(1, 1, 1).unwrap().repeat(2))
        .execution_trace_observer(Notes(notes.clone(), None))
        .start()
        .unwrap();
    assert!(notes.lock().is_empty(), "neither waiting nor warming up is recording");
    for _ in 0..6 {
        profiler.step().unwrap();
    }
    profiler.stop().unwrap();
    assert_eq!(*notes.lock(), ["start", "stop", "start", "stop", "cleanup"]);
}

#[test]
fn an_observer_that_fails_is_told_of_and_events_are_kept() {
    let _alone = alone();
    for fails in ["start", "stop", "cleanup"] {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let mut profiler =
            Profiler::builder().execution_trace_observer(Notes(notes.clone(), Some(fails))).build().unwrap();
        let started = profiler.start();
        op("aten::add");
        let stopped = profiler.stop();
        let error = started.and(stopped).unwrap_err().to_string();
        assert_eq!(error, format!("cannot {fails}: the profiler is not running"));
        assert_eq!(profiler.events().unwrap().count(), 1, "{fails}");
        assert_eq!(notes.lock().last(), Some(&"cleanup"));
    }
}

#[test]
fn calls_become_nodes_with_parents_and_arguments() {
    let _alone = alone();
    let path = directory("execution").join("trace.json");
    let mut trace = ExecutionTrace::new(&path);
    let before = cresset_dispatch::observe::span(&Op::new("aten::before"));
    trace.start().unwrap();
    Op::new("aten::linear").sequence(5, 0).shapes(&[&[2, 3]]).run(|| op("aten::\"quoted\""));
    drop(before);
    trace.stop().unwrap();
    op("aten::after");
    assert!(!path.exists(), "the file appears when it is whole");
    trace.cleanup().unwrap();
    let file: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let nodes = file["nodes"].as_array().unwrap();
    let names: Vec<&str> = nodes.iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "[pytorch|profiler|execution_trace|thread]",
            "aten::\"quoted\"",
            "aten::linear",
            "[pytorch|profiler|execution_trace|process]"
        ]
    );
    assert_eq!(nodes[1]["ctrl_deps"], nodes[2]["id"]);
    assert_eq!(nodes[2]["ctrl_deps"], nodes[0]["id"]);
    assert_eq!(nodes[2]["inputs"]["shapes"], serde_json::json!([[2, 3], []]));
    assert_eq!(nodes[2]["inputs"]["types"], serde_json::json!(["Tensor(float)", "Double"]));
    let sequence = nodes[2]["attrs"].as_array().unwrap().iter().find(|one| one["name"] == "seq_id").unwrap();
    assert_eq!(sequence["value"], 5);
}

#[test]
fn two_execution_traces_record_at_once() {
    let _alone = alone();
    let directory = directory("execution-two");
    let mut outer = ExecutionTrace::new(directory.join("outer.json"));
    let mut inner = ExecutionTrace::new(directory.join("inner.json"));
    outer.start().unwrap();
    op("aten::one");
    inner.start().unwrap();
    op("aten::two");
    outer.stop().unwrap();
    op("aten::three");
    inner.stop().unwrap();
    drop((outer, inner));
    let names = |name: &str| -> Vec<String> {
        let file: Value = serde_json::from_slice(&fs::read(directory.join(name)).unwrap()).unwrap();
        let nodes = file["nodes"].as_array().unwrap();
        nodes
            .iter()
            .map(|node| node["name"].as_str().unwrap().to_owned())
            .filter(|n| n.starts_with("aten"))
            .collect()
    };
    assert_eq!(names("outer.json"), ["aten::one", "aten::two"]);
    assert_eq!(names("inner.json"), ["aten::two", "aten::three"]);
}
