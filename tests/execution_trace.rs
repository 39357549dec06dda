//! Execution traces, held against the file that torch writes for the same program.

use cresset::prelude::*;
use cresset::profiler::{ExecutionTrace, WindowObserver};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A step of `tests/golden/profiler/record.py` that is not the first.
fn recorded_step() -> Value {
    let path = path("execution.json");
    let model =
        Sequential::new().push(Linear::new(6, 4).unwrap()).push(Relu).push(Linear::new(4, 3).unwrap());
    // Operator by operator, as torch's that this is compared with.
    let implementation = Some(cresset::optim::Implementation::Single);
    let options = SgdOptions { lr: 0.1, momentum: 0.9, implementation, ..Default::default() };
    let mut sgd = Sgd::new(model.parameters(), options).unwrap();
    let (x, y) = (Tensor::ones([2, 6], ()).unwrap(), Tensor::new([0i64, 2]).unwrap());
    let mut trace = ExecutionTrace::new(&path);
    for step in 0..3 {
        if step == 2 {
            trace.start().unwrap();
        }
        let _scope = record_function(&format!("step {step}"));
        sgd.zero_grad();
        model.forward(&x).unwrap().cross_entropy(&y).unwrap().backward().unwrap();
        sgd.step().unwrap();
    }
    trace.stop().unwrap();
    trace.cleanup().unwrap();
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn attribute<'a>(node: &'a Value, name: &str) -> &'a Value {
    let list = node["attrs"].as_array().unwrap();
    &list.iter().find(|one| one["name"] == name).unwrap()["value"]
}

/// Each node of this thread by its path: the names from the outermost call inwards.
fn paths(nodes: &[Value]) -> Vec<(String, &Value)> {
    let by_id: BTreeMap<u64, &Value> =
        nodes.iter().map(|node| (node["id"].as_u64().unwrap(), node)).collect();
    let path = |node: &Value| {
        let (mut names, mut at) = (Vec::new(), node);
        while at["id"].as_u64().unwrap() > 2 {
            names.push(at["name"].as_str().unwrap().to_owned());
            at = by_id[&at["ctrl_deps"].as_u64().unwrap()];
        }
        names.reverse();
        names.join(" > ")
    };
    nodes.iter().map(|node| (path(node), node)).collect()
}

#[test]
fn nodes_are_those_of_torch() {
    let ours = recorded_step();
    assert_eq!(ours["schema"], "1.1.1-chakra.0.0.4");
    let theirs = std::fs::read_to_string("tests/golden/profiler/execution_trace.json").unwrap();
    let theirs: Vec<Value> = serde_json::from_str(&theirs).unwrap();
    // Only this thread's: other tests may run operators meanwhile.
    let ours = ours["nodes"].as_array().unwrap();
    let thread = attribute(ours.iter().find(|node| node["name"] == "step 2").unwrap(), "tid");
    let ours: Vec<Value> =
        ours.iter().filter(|node| attribute(node, "tid") == thread || node["id"] == 1).cloned().collect();
    let fields = |node: &Value| node.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(fields(&ours[0]), fields(&theirs[0]));
    let names = |node: &Value| {
        let list = node["attrs"].as_array().unwrap();
        list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!(names(&ours[0]), theirs[0]["attrs"].as_object().unwrap().keys().cloned().collect());

    // Every call that both make is in the same place, with the same arguments and results.
    let (ours, theirs) = (paths(&ours), paths(&theirs));
    let known = |list: &[(String, &Value)], path: &str| list.iter().any(|(other, _)| other == path);
    let mut compared = 0;
    for (path, node) in &ours {
        if APART.iter().any(|name| path.contains(name)) {
            continue;
        }
        let same: Vec<&Value> =
            theirs.iter().filter(|(other, _)| other == path).map(|(_, node)| *node).collect();
        assert!(!same.is_empty(), "torch has no {path}");
        assert!(
            same.iter().any(|other| looks_like(node, other)),
            "{path} differs:\nours {node}\ntorch's {same:#?}"
        );
        compared += 1;
    }
    assert!(compared > 70, "only {compared} nodes");
    let missing: BTreeSet<&str> = theirs
        .iter()
        .filter(|(path, _)| !known(&ours, path))
        .map(|(_, node)| node["name"].as_str().unwrap())
        .collect();
    assert_eq!(missing, BTreeSet::new());
}

/// Operators that ours gives other arguments than torch's, or that only ours calls.
const APART: [&str; 4] =
    ["aten::reshape", "aten::log_softmax", "aten::nll_loss_backward", "aten::_log_softmax_backward_data"];

/// Whether two nodes have the same arguments, results and attributes, but for numbers that any
/// two runs have different.
fn looks_like(ours: &Value, theirs: &Value) -> bool {
    let shapes =
        |node: &Value, part: &str| ["shapes", "types", "strides"].map(|list| node[part][list].clone());
    let is = |name: &str, value: i64| (*attribute(ours, name) == value, theirs["attrs"][name] == value);
    let agree = |(one, other): (bool, bool)| one == other;
    shapes(ours, "inputs") == shapes(theirs, "inputs")
        && shapes(ours, "outputs") == shapes(theirs, "outputs")
        && *attribute(ours, "scope") == theirs["attrs"]["scope"]
        && *attribute(ours, "op_schema") == theirs["attrs"]["op_schema"]
        && agree(is("seq_id", -1))
        && agree(is("fw_parent", 0))
        && agree(is("fw_tid", 0))
}

#[test]
fn tensors_keep_their_numbers_from_call_to_call() {
    let trace = recorded_step();
    let nodes = trace["nodes"].as_array().unwrap();
    let find = |name: &str| nodes.iter().find(|node| node["name"] == name).unwrap();
    let (linear, relu) = (find("aten::linear"), find("aten::relu"));
    assert_eq!(linear["outputs"]["values"][0], relu["inputs"]["values"][0]);
    let (t, addmm) = (find("aten::t"), find("aten::addmm"));
    assert_eq!(t["outputs"]["values"][0], addmm["inputs"]["values"][2], "a view and what it is used for");
    assert_eq!(t["inputs"]["values"][0][1], t["outputs"]["values"][0][1], "a view shares its storage");
    let ids: Vec<u64> = nodes.iter().map(|node| node["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
}

#[test]
fn an_execution_trace_is_recorded_with_the_profiler_s_window() {
    let path = path("execution-window.json.gz");
    let x = Tensor::ones([2], ()).unwrap();
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(1, 0, 1).unwrap().repeat(1))
        .execution_trace_observer(ExecutionTrace::new(&path))
        .start()
        .unwrap();
    for scale in [2.0, 3.0, 4.0] {
        record_function(&format!("by {scale}")).run(|| x.mul(scale).unwrap());
        profiler.step().unwrap();
    }
    profiler.stop().unwrap();
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(file), &mut text).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        trace["nodes"].as_array().unwrap().iter().filter_map(|node| node["name"].as_str()).collect();
    let scopes: Vec<&&str> = names.iter().filter(|name| name.starts_with("by ")).collect();
    assert_eq!(scopes, [&"by 3"]);
}

#[test]
fn an_execution_trace_that_cannot_be_written_says_so() {
    let mut trace = ExecutionTrace::new("/nowhere/execution.json");
    trace.start().unwrap();
    assert!(trace.is_recording() && trace.start().is_err());
    trace.stop().unwrap();
    assert!(trace.stop().is_err());
    let error = trace.cleanup().unwrap_err().to_string();
    assert!(error.starts_with("cannot write /nowhere/execution.json: "), "{error}");
}
