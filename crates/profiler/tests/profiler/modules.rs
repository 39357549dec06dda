//! Calls of modules.

use crate::fake::{Op, alone, directory, op};
use cresset_profiler::{EventKind, Grouping, Profiler};
use serde_json::Value;
use std::fs;

/// Two layers, one of them in the other, called twice.
fn network() {
    for _ in 0..2 {
        Op::module("Net", 64).run(|| {
            Op::module("Linear", 128).run(|| op("aten::linear"));
            Op::module("Linear", 256).run(|| op("aten::linear"));
        });
    }
}

#[test]
fn modules_are_named_by_class_and_number() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder().with_modules(true).run(|_| network()).unwrap();
    let names: Vec<&str> = profiler
        .events()
        .unwrap()
        .filter(|event| event.kind() == EventKind::Module)
        .map(|event| event.name())
        .collect();
    let once = ["nn.Module: Net_0", "nn.Module: Linear_0", "nn.Module: Linear_1"];
    assert_eq!(names, [once, once].concat());
}

#[test]
fn modules_are_not_recorded_unless_asked_for() {
    let _alone = alone();
    let mut plain = Profiler::builder().start().unwrap();
    let ((), with) = Profiler::builder().with_modules(true).run(|_| network()).unwrap();
    network();
    plain.stop().unwrap();
    assert_eq!(with.events().unwrap().count(), 10);
    assert!(plain.events().unwrap().all(|event| event.kind() == EventKind::Operator));
}

#[test]
fn modules_have_rows_only_when_asked_for() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder().with_modules(true).run(|_| network()).unwrap();
    let keys = |grouping| {
        let rows = profiler.key_averages_by(grouping).unwrap();
        rows.into_iter().map(|row| (row.key, row.count)).collect::<Vec<_>>()
    };
    assert_eq!(keys(Grouping::default()), [("aten::linear".to_owned(), 4)]);
    let all = keys(Grouping::default().include_modules(true));
    assert!(all.contains(&("nn.Module: Linear_1".to_owned(), 2)) && all.len() == 4, "{all:?}");
}

#[test]
fn modules_are_exported_with_ids_that_lead_to_their_parents() {
    let _alone = alone();
    let path = directory("modules").join("trace.json");
    let ((), profiler) = Profiler::builder().with_modules(true).with_stack(true).run(|_| network()).unwrap();
    profiler.export_chrome_trace(&path).unwrap();
    let trace: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(trace["with_modules"], 1);
    let modules: Vec<&Value> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["cat"] == "python_function")
        .collect();
    assert_eq!(modules.len(), 6);
    let (net, second) = (modules[0], modules[2]);
    assert!(net["args"].get("Python parent id").is_none());
    assert_eq!(second["args"]["Python parent id"], net["args"]["Python id"]);
    assert_eq!(second["args"]["Python module id"], modules[5]["args"]["Python module id"]);
    assert_ne!(second["args"]["Python module id"], modules[1]["args"]["Python module id"]);
    assert!(net["args"]["Call stack"].as_str().unwrap().contains("modules.rs"));
    // For the acceptance kit, which is not part of the build.
    if let Ok(keep) = std::env::var("CRESSET_KEEP_MODULES") {
        fs::copy(&path, keep).unwrap();
    }
}
