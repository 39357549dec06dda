//! Lines of the contract that no other file is about.

use crate::fake::{Allocator, Op, alone, directory, launch_kernel, npu, op, plug_in};
use cresset_dispatch::Device;
use cresset_profiler::{Activity, Error, Profiler, record_function};
use serde_json::Value;
use std::fs;

fn exported(profiler: &Profiler, name: &str) -> Value {
    let path = directory(name).join("trace.json");
    profiler.export_chrome_trace(&path).unwrap();
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn slices(trace: &Value) -> Vec<&Value> {
    trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect()
}

fn find<'a>(trace: &'a Value, name: &str) -> &'a Value {
    slices(trace).into_iter().find(|event| event["name"] == name).unwrap()
}

#[test]
fn export_chrome_trace_includes_npu_memory_fields_when_enabled() {
    let _alone = alone();
    let run = |profile_memory| {
        let (device, host) = (Allocator::new(npu()), Allocator::new(Device::CPU));
        let ((), profiler) = Profiler::builder()
            .profile_memory(profile_memory)
            .run(|_| {
                Op::new("aten::add").on(npu()).run(|| device.report(64, 512));
                Op::new("aten::mul").run(|| host.report(64, 40));
            })
            .unwrap();
        exported(&profiler, "npu-memory")
    };
    let trace = run(true);
    for (name, device, after) in [("aten::add", "npu", 1512), ("aten::mul", "cpu", 1040)] {
        let args = &find(&trace, name)["args"];
        assert_eq!(args[format!("{device}_memory_allocated_before")], 1000, "{args}");
        assert_eq!(args[format!("{device}_memory_allocated_after")], after, "{args}");
        assert_eq!(args[format!("{device}_memory_allocated_delta")], after - 1000, "{args}");
    }
    let text = run(false).to_string();
    assert!(!text.contains("_memory_allocated_"), "{text}");
}

#[test]
fn export_chrome_trace_includes_runtime_correlation_fields() {
    let _alone = alone();
    plug_in();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            record_function("scope").run(|| {
                op("aten::add");
                Op::new("aten::mm").on(npu()).run(|| launch_kernel("MatMulV2", 10));
            });
        })
        .unwrap();
    let trace = exported(&profiler, "correlation");
    for (name, runtime) in [("aten::add", "dispatch_kernel"), ("aten::mm", "aclnnAdd")] {
        let event = profiler.events().unwrap().find(|event| event.name() == name).unwrap();
        let slice = find(&trace, name);
        assert_eq!(slice["args"]["correlation_id"], event.correlation_id());
        assert_eq!(slice["args"]["runtime_name"], runtime);
        assert_eq!(event.runtime_name(), Some(runtime));
        assert_eq!(slice["args"]["runtime_tid"], slice["tid"]);
        assert_eq!(slice["args"]["runtime_tid"], event.thread().tid);
    }
    let scope = &find(&trace, "scope")["args"];
    for key in ["correlation_id", "runtime_name", "runtime_tid"] {
        assert!(scope.get(key).is_none(), "{scope}");
    }
    // The kernel and its launch have the same correlation, and the kernel names its operator.
    let (kernel, launch) = (&find(&trace, "MatMulV2")["args"], &find(&trace, "aclnnAdd")["args"]);
    assert_eq!(kernel["correlation"], launch["correlation"]);
    assert_eq!(kernel["External id"], find(&trace, "aten::mm")["args"]["External id"]);
}

#[test]
fn the_first_slice_says_what_when_and_where() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder().run(|_| op("aten::add")).unwrap();
    let trace = exported(&profiler, "first");
    let first = slices(&trace)[0];
    assert_eq!((&first["name"], &first["ph"]), (&"aten::add".into(), &"X".into()));
    assert!(first["ts"].is_f64() && first["dur"].is_f64());
    assert_eq!(first["pid"], std::process::id());
    assert_eq!(first["tid"], profiler.events().unwrap().next().unwrap().thread().tid);
}

#[test]
fn processes_and_threads_are_named() {
    let _alone = alone();
    let work = || std::thread::Builder::new().name("loader".to_owned()).spawn(|| op("aten::stack")).unwrap();
    let (outcome, profiler) = Profiler::builder().run(|_| work().join()).unwrap();
    outcome.unwrap();
    let trace = exported(&profiler, "named");
    let all = trace["traceEvents"].as_array().unwrap();
    let meta = |name: &str| -> Vec<&Value> {
        all.iter().filter(|event| event["ph"] == "M" && event["name"] == name).collect()
    };
    assert!(meta("process_name").iter().any(|event| event["pid"] == std::process::id()));
    let names: Vec<&str> = meta("thread_name").iter().map(|e| e["args"]["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.ends_with("(loader)")), "{names:?}");
}

#[test]
fn metadata_is_kept_whatever_it_is() {
    let _alone = alone();
    let mut profiler =
        Profiler::builder().preset_metadata_json("preset", r#"{"rank":3}"#).unwrap().start().unwrap();
    profiler.add_metadata("text", "a \"b\" \\ \n {").unwrap();
    profiler.add_metadata_json("json", "[1, {\"a\": null}]").unwrap();
    profiler.add_metadata_json("broken", "{not json").unwrap();
    profiler.stop().unwrap();
    profiler.add_metadata("late", "after the stop").unwrap();
    let trace = exported(&profiler, "metadata");
    let labels = trace["traceEvents"].as_array().unwrap().iter().find(|e| e["args"]["labels"] == "session");
    for place in [&trace, &labels.unwrap()["args"]] {
        assert_eq!(place["preset"]["rank"], 3);
        assert_eq!(place["text"], "a \"b\" \\ \n {");
        assert_eq!(place["json"], serde_json::json!([1, {"a": null}]));
        assert_eq!(place["broken"], "{not json");
        assert_eq!(place["late"], "after the stop");
    }
}

#[test]
fn an_unknown_activity_is_an_error() {
    let error = "gpu".parse::<Activity>().unwrap_err();
    assert_eq!(error.to_string(), "unknown activity \"gpu\": known are cpu, device, npu");
    assert_eq!("NPU".parse::<Activity>().unwrap(), Activity::Device);
    let none = Profiler::builder().activities([]).build().unwrap_err();
    assert!(matches!(none, Error::NoActivities), "{none}");
}
