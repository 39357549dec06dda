//! The checker: our traces pass, and each way to break one is found by the rule that forbids it.

use crate::export::training;
use crate::fake::{alone, directory, read};
use cresset_profiler::{Report, check_trace};
use serde_json::{Value, json};
use std::path::Path;

fn events(trace: &mut Value) -> &mut Vec<Value> {
    trace["traceEvents"].as_array_mut().unwrap()
}

fn of<'a>(trace: &'a mut Value, category: &str) -> Vec<&'a mut Value> {
    events(trace).iter_mut().filter(|e| e["cat"] == category && e["ph"] == "X").collect()
}

fn with_arg<'a>(trace: &'a mut Value, key: &str) -> &'a mut Value {
    let found =
        events(trace).iter_mut().find(|event| event["args"].get(key).is_some_and(|v| *v != json!([])));
    found.unwrap()
}

fn remove(value: &mut Value, key: &str) {
    value.as_object_mut().unwrap().remove(key).unwrap();
}

fn flow<'a>(trace: &'a mut Value, phase: &str, category: &str) -> &'a mut Value {
    events(trace).iter_mut().find(|event| event["ph"] == phase && event["cat"] == category).unwrap()
}

fn checked(path: &Path, text: &str) -> Report {
    std::fs::write(path, text).unwrap();
    check_trace(path).unwrap()
}

fn assert_finds(report: &Report, rule: &str, name: &str) {
    assert!(report.findings().iter().any(|found| found.rule == rule), "{name}: {report}");
}

#[test]
fn our_traces_break_no_rule() {
    let _alone = alone();
    let directory = directory("check-good");
    let (own, cuda) = (directory.join("own.json.gz"), directory.join("cuda.json"));
    let profiler = training();
    profiler.export_chrome_trace(&own).unwrap();
    profiler.trace().unwrap().export_chrome_trace_as_cuda(&cuda).unwrap();
    for path in [own, cuda] {
        let report = check_trace(&path).unwrap();
        assert!(report.passes(true), "{}: {report}", path.display());
        assert!(report.events() > 100);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = check_trace("/nowhere/trace.json").unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nowhere/trace.json: No such file"), "{error}");
}

#[test]
fn text_that_is_no_trace_is_refused() {
    let _alone = alone();
    let directory = directory("check-text");
    let path = directory.join("good.json");
    training().export_chrome_trace(&path).unwrap();
    let good = std::fs::read_to_string(&path).unwrap();
    let cases = [
        ("truncated", "json.parse", good[..good.len() - 200].to_owned()),
        ("nan", "json.parse", good.replacen("\"dur\":", "\"dur\":NaN,\"x\":", 1)),
        (
            "dupkey",
            "json.duplicate-key",
            good.replacen("\"External id\":", "\"Ev Idx\":7,\"External id\":", 1),
        ),
        ("array", "top.object", read(&path)["traceEvents"].to_string()),
        ("rank", "top.distributedInfo.rank-text", good.replace("\"rank\": ", "\"rank\":")),
        ("empty", "json.parse", String::new()),
        ("nothing", "top.traceEvents", "{}".to_owned()),
        ("no events", "events.none", "{\"traceEvents\":[]}".to_owned()),
    ];
    for (name, rule, text) in cases {
        assert_finds(&checked(&path, &text), rule, name);
    }
    std::fs::write(&path, [good.as_bytes(), &[0xff]].concat()).unwrap();
    assert_finds(&check_trace(&path).unwrap(), "json.utf8", "utf8");
}

/// A name, the rule that must be broken, and how to break it.
type Break = (&'static str, &'static str, fn(&mut Value));

const BREAKS: [Break; 40] = [
    ("schema", "top.schemaVersion", |t| remove(t, "schemaVersion")),
    ("base", "top.baseTimeNanoseconds", |t| remove(t, "baseTimeNanoseconds")),
    ("flag", "top.flag", |t| t["record_shapes"] = "yes".into()),
    ("unit", "top.displayTimeUnit", |t| t["displayTimeUnit"] = "s".into()),
    ("properties", "top.deviceProperties", |t| t["deviceProperties"] = json!([{"id": "0"}])),
    ("string ts", "event.ts", |t| of(t, "cpu_op")[0]["ts"] = "1.5".into()),
    ("absolute ts", "event.ts.precision", |t| of(t, "cpu_op")[0]["ts"] = 1.7e15.into()),
    ("negative dur", "event.dur", |t| of(t, "cpu_op")[0]["dur"] = (-5.0).into()),
    ("no cat", "event.cat", |t| remove(of(t, "cpu_op")[0], "cat")),
    ("odd cat", "event.cat.unknown", |t| of(t, "cpu_op")[0]["cat"] = "op".into()),
    ("no name", "event.name", |t| remove(of(t, "cpu_op")[0], "name")),
    ("control", "event.name.control", |t| of(t, "cpu_op")[0]["name"] = "a\nb".into()),
    ("string tid", "event.tid", |t| of(t, "cpu_op")[0]["tid"] = "main".into()),
    ("string pid", "event.pid.string", |t| of(t, "Trace")[0]["pid"] = "Spans".into()),
    ("phase", "event.ph", |t| of(t, "cpu_op")[0]["ph"] = "Q".into()),
    ("same id", "op.external-id.unique", |t| {
        let id = of(t, "cpu_op")[0]["args"]["External id"].clone();
        of(t, "cpu_op")[1]["args"]["External id"] = id;
    }),
    ("no id", "op.external-id", |t| remove(&mut of(t, "cpu_op")[0]["args"], "External id")),
    ("same index", "ev-idx.unique", |t| {
        let index = of(t, "cpu_op")[0]["args"]["Ev Idx"].clone();
        of(t, "cpu_op")[1]["args"]["Ev Idx"] = index;
    }),
    ("half a link", "op.sequence", |t| remove(&mut with_arg(t, "Fwd thread id")["args"], "Fwd thread id")),
    ("dims of texts", "op.inputs.dims", |t| {
        with_arg(t, "Input Dims")["args"]["Input Dims"][0] = json!(["x"])
    }),
    ("too few dims", "op.inputs", |t| {
        drop(with_arg(t, "Input Dims")["args"]["Input Dims"].as_array_mut().unwrap().pop())
    }),
    ("no metadata", "meta.process_name", |t| events(t).retain(|event| event["ph"] != "M")),
    ("crossing", "nesting", |t| {
        let mut host = of(t, "cpu_op");
        let outer = host.iter().position(|e| e["name"] == "aten::linear").unwrap();
        let end = host[outer]["ts"].as_f64().unwrap() + host[outer]["dur"].as_f64().unwrap();
        host[outer + 1]["dur"] = (end - host[outer + 1]["ts"].as_f64().unwrap() + 0.5).into();
    }),
    ("one end", "flow.pair", |t| flow(t, "f", "fwdbwd")["ph"] = "M".into()),
    ("no bp", "flow.bp", |t| remove(flow(t, "f", "fwdbwd"), "bp")),
    ("loose end", "flow.bind", |t| flow(t, "s", "fwdbwd")["tid"] = 424_242.into()),
    ("flow name", "flow.name", |t| flow(t, "s", "ac2g")["name"] = "arrow".into()),
    ("other sequence", "flow.fwdbwd.sequence", |t| {
        for event in of(t, "cpu_op").into_iter().filter(|e| e["args"]["Fwd thread id"].as_u64() > Some(0)) {
            event["args"]["Sequence number"] = 100_000.into();
        }
    }),
    ("no bytes", "memory.args", |t| remove(&mut with_arg(t, "Addr")["args"], "Bytes")),
    ("frees less", "memory.free-size", |t| {
        let free = events(t).iter_mut().find(|event| event["args"]["Bytes"] == -32).unwrap();
        free["args"]["Bytes"] = (-24).into();
    }),
    ("total", "memory.running-total", |t| with_arg(t, "Addr")["args"]["Total Allocated"] = 5.into()),
    ("slice of memory", "memory.phase", |t| {
        let event = with_arg(t, "Addr");
        (event["ph"], event["dur"]) = ("X".into(), 0.0.into());
    }),
    ("same step", "steps.order", |t| {
        for event in of(t, "user_annotation").into_iter().filter(|e| e["name"] == "ProfilerStep#3") {
            event["name"] = "ProfilerStep#2".into();
        }
    }),
    ("window end", "span.window-end", |t| {
        events(t).iter_mut().find(|e| e["name"] == "Record Window End").unwrap()["ts"] = 1.0.into();
    }),
    ("no stream", "device.args", |t| remove(&mut of(t, "kernel")[0]["args"], "stream")),
    ("early", "device.causality", |t| of(t, "kernel")[0]["ts"] = 1.0.into()),
    ("streamed call", "runtime.stream", |t| of(t, "privateuse1_runtime")[0]["args"]["stream"] = 7.into()),
    ("other work", "flow.ac2g.correlation", |t| of(t, "kernel")[0]["args"]["correlation"] = 100_000.into()),
    ("other device", "device.pid", |t| of(t, "kernel")[0]["args"]["device"] = 3.into()),
    ("copy's name", "device.mem-name", |t| of(t, "gpu_memcpy")[0]["name"] = "Copy".into()),
];

#[test]
fn each_way_to_break_a_trace_is_found() {
    let _alone = alone();
    let path = directory("check-broken").join("trace.json");
    training().export_chrome_trace(&path).unwrap();
    let good = read(&path);
    for (name, rule, break_it) in BREAKS {
        let mut broken = good.clone();
        break_it(&mut broken);
        // With a space after each colon, as the rank needs it.
        let report = checked(&path, &serde_json::to_string_pretty(&broken).unwrap());
        assert_finds(&report, rule, name);
    }
    let report = checked(&path, &serde_json::to_string_pretty(&good).unwrap());
    assert!(report.passes(true), "{report}");
}
