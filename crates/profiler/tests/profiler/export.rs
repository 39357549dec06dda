//! Chrome traces, read back.

use crate::fake::{Allocator, Op, alone, directory, launch_copy, launch_kernel, npu, op, plug_in, read};
use cresset_dispatch::Device;
use cresset_dispatch::observe::Kind;
use cresset_profiler::{Profiler, Schedule, record_function, trace_directory};
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::thread;

fn events<'a>(trace: &'a Value, category: &str) -> Vec<&'a Value> {
    trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == category).collect()
}

/// Two steps of training, with everything a trace can show.
pub(crate) fn training() -> Profiler {
    plug_in();
    let (host, device) = (Allocator::new(Device::CPU), Allocator::new(npu()));
    let thread = cresset_dispatch::thread::number();
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(1, 1, 2).unwrap().repeat(1))
        .record_shapes(true)
        .profile_memory(true)
        .with_flops(true)
        .preset_metadata_json("distributedInfo", r#"{"rank":0,"world_size":1,"backend":"hccl"}"#)
        .unwrap()
        .start()
        .unwrap();
    profiler.add_metadata("run", "a \"quoted\" name\n").unwrap();
    for step in 0..4u64 {
        let number = 2 * step;
        Op::new("aten::copy_").on(npu()).run(|| {
            device.report(4096, 1024);
            launch_copy(1 << 20, 10_000);
        });
        Op::new("aten::linear").on(npu()).sequence(number, 0).shapes(&[&[2, 3], &[4, 3]]).run(|| {
            Op::new("aten::t").on(npu()).sequence(number, 0).run(|| ());
            Op::new("aten::addmm")
                .on(npu())
                .sequence(number + 1, 0)
                .shapes(&[&[2, 3], &[3, 4]])
                .flops(48)
                .run(|| {
                    host.report(64, 32);
                    launch_kernel("MatMulV2", 30_000);
                });
        });
        record_function("backward").run(|| {
            for (name, number) in [("AddmmBackward0", number + 1), ("TBackward0", number)] {
                Op::new(name).kind(Kind::Evaluate).sequence(number, thread).run(|| {
                    Op::new(name).kind(Kind::Backward).sequence(number, thread).run(|| {
                        Op::new("aten::mm").on(npu()).run(|| launch_kernel("MatMulV2", 20_000));
                    });
                });
            }
        });
        record_function("Optimizer.step#SGD.step").run(|| op("aten::add_"));
        thread::scope(|scope| {
            scope.spawn(|| record_function("load ünïcödé").run(|| op("aten::stack")));
        });
        host.report(64, -32);
        device.report(4096, -1024);
        profiler.step().unwrap();
    }
    profiler.stop().unwrap();
    profiler
}

#[test]
fn export_chrome_trace_json_valid() {
    let _alone = alone();
    let path = directory("valid").join("trace.json");
    let profiler = training();
    profiler.export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    assert_eq!(trace["schemaVersion"], 1);
    assert_eq!(trace["record_shapes"], 1);
    assert_eq!(trace["run"], "a \"quoted\" name\n");
    assert_eq!(trace["distributedInfo"]["rank"], 0);
    assert_eq!(trace["deviceProperties"][0]["name"], "Simulated NPU");
    assert_eq!(trace["baseTimeNanoseconds"].as_u64().unwrap() % 7_889_238_000_000_000, 0);
    let all = trace["traceEvents"].as_array().unwrap();
    let first = all.iter().find(|event| event["ph"] == "X").unwrap();
    assert_eq!(first["pid"], std::process::id());
    assert!(all.iter().all(|event| event["pid"].is_u64() && event["tid"].is_u64() && event["ts"].is_f64()));
    let labels =
        all.iter().find(|e| e["name"] == "process_labels" && e["args"]["labels"] == "session").unwrap();
    assert_eq!(labels["args"]["run"], "a \"quoted\" name\n");
    // For the acceptance kit, which is not part of the build.
    if let Ok(keep) = std::env::var("CRESSET_KEEP_TRACE") {
        profiler.export_chrome_trace(&keep).unwrap();
        profiler.trace().unwrap().export_chrome_trace_as_cuda(format!("{keep}.cuda.json")).unwrap();
    }
}

#[test]
fn every_part_of_a_training_step_is_in_the_trace() {
    let _alone = alone();
    let path = directory("parts").join("trace.json.gz");
    training().export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    let count = |category| events(&trace, category).len();
    assert_eq!(count("cpu_op"), 2 * (1 + 3 + 6 + 1 + 1));
    assert_eq!(count("user_annotation"), 2 * 4);
    assert_eq!(count("privateuse1_runtime"), 2 * 4);
    assert_eq!((count("kernel"), count("gpu_memcpy")), (2 * 3, 2));
    assert_eq!((count("fwdbwd"), count("ac2g")), (2 * 2 * 2, 2 * 2 * 4));
    assert_eq!(count("cpu_instant_event"), 2 * 4);
    assert_eq!(count("gpu_user_annotation"), 2 * 2);

    let mm = events(&trace, "cpu_op").into_iter().find(|event| event["name"] == "aten::addmm").unwrap();
    let args = &mm["args"];
    assert_eq!(args["Input Dims"], serde_json::json!([[2, 3], [3, 4], []]));
    assert_eq!(args["Input type"], serde_json::json!(["float", "float", "Scalar"]));
    assert_eq!(args["Concrete Inputs"], serde_json::json!(["", "", "1."]));
    assert_eq!(args["input_shapes"], serde_json::json!([[2, 3], [3, 4]]));
    assert_eq!(
        (&args["flops"], &args["phase"], &args["device_type"]),
        (&48.into(), &"forward".into(), &"NPU".into())
    );
    assert_eq!((&args["step"], &args["runtime_name"]), (&2.into(), &"aclnnAdd".into()));
    assert_eq!(args["correlation_id"], args["External id"]);
    assert_eq!(args["runtime_tid"], mm["tid"]);
    assert_eq!(args["npu_memory_allocated_before"], 2024);
    assert_eq!(args["npu_memory_allocated_delta"], 0);

    let copy = events(&trace, "gpu_memcpy")[0];
    assert_eq!(copy["name"], "Memcpy HtoD (Pageable -> Device)");
    assert_eq!(copy["args"]["bytes"], 1 << 20);
    assert_eq!((&copy["pid"], &copy["tid"], &copy["args"]["stream"]), (&0.into(), &1.into(), &1.into()));
    let indices: Vec<u64> = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|e| e["args"]["Ev Idx"].as_u64())
        .collect();
    assert_eq!(indices.iter().collect::<HashSet<_>>().len(), indices.len());
}

#[test]
fn scopes_do_not_carry_runtime_fields() {
    let _alone = alone();
    let path = directory("scopes").join("trace.json");
    training().export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    for scope in events(&trace, "user_annotation") {
        for field in ["correlation_id", "runtime_name", "runtime_tid", "npu_memory_allocated_before"] {
            assert!(scope["args"].get(field).is_none(), "{scope}");
        }
    }
}

#[test]
fn nothing_is_added_that_was_not_asked_for() {
    let _alone = alone();
    let path = directory("plain").join("trace.json");
    let ((), profiler) =
        Profiler::builder().run(|_| Op::new("aten::mm").shapes(&[&[2]]).flops(1).run(|| ())).unwrap();
    profiler.export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    assert!(trace.get("record_shapes").is_none() && trace.get("profile_memory").is_none());
    let args = &events(&trace, "cpu_op")[0]["args"];
    for field in ["Input Dims", "input_shapes", "flops", "cpu_memory_allocated_before", "finished"] {
        assert!(args.get(field).is_none(), "{args}");
    }
}

#[test]
fn exports_repeat_with_identical_bytes() {
    let _alone = alone();
    let directory = directory("repeat");
    let profiler = training();
    let bytes = |name: &str| {
        let path = directory.join(name);
        profiler.export_chrome_trace(&path).unwrap();
        fs::read(path).unwrap()
    };
    assert_eq!(bytes("a.json"), bytes("b.json"));
    assert_eq!(bytes("a.json.gz"), bytes("b.json.gz"));
    assert_eq!(read(&directory.join("a.json")), read(&directory.join("a.json.gz")));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 4);
}

#[test]
fn hostile_names_come_back() {
    let _alone = alone();
    let path = directory("hostile").join("trace.json");
    let long = "y".repeat(100_000);
    let names =
        ["a\"b", "back\\slash", "new\nline", "nul\0", "esc\x1b[0m", "emoji 🎉", "tab\t", "", long.as_str()];
    let ((), profiler) =
        Profiler::builder().run(|_| names.iter().for_each(|name| record_function(name).run(|| ()))).unwrap();
    profiler.export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    let back: Vec<&str> = events(&trace, "user_annotation")
        .into_iter()
        .map(|event| event["args"].get("exact_name").unwrap_or(&event["name"]).as_str().unwrap())
        .collect();
    assert_eq!(back, names);
}

#[test]
fn launches_can_be_spelled_as_cudas() {
    let _alone = alone();
    let path = directory("cuda").join("trace.json");
    training().trace().unwrap().export_chrome_trace_as_cuda(&path).unwrap();
    let trace = read(&path);
    let names: HashSet<_> = events(&trace, "cuda_runtime")
        .iter()
        .map(|e| (e["name"].as_str().unwrap(), e["args"]["api"].as_str().unwrap()))
        .collect();
    assert_eq!(
        names,
        HashSet::from([("cudaMemcpyAsync", "aclrtMemcpyAsync"), ("cudaLaunchKernel", "aclnnAdd")])
    );
}

#[test]
fn a_directory_collects_one_file_per_save() {
    let _alone = alone();
    let directory = directory("handler").join("made");
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(0, 0, 1).unwrap().repeat(2))
        .on_trace_ready(trace_directory(&directory, Some("worker"), true))
        .start()
        .unwrap();
    for _ in 0..3 {
        op("aten::add");
        profiler.step().unwrap();
    }
    profiler.stop().unwrap();
    let names: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.starts_with("worker.") && name.ends_with(".pt.trace.json.gz")));
}

#[test]
fn speedscope_gets_each_name_once_and_calls_as_they_nest() {
    let _alone = alone();
    plug_in();
    let path = directory("speedscope").join("profile.speedscope.json");
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            record_function("step").run(|| {
                op("aten::add");
                op("aten::add");
                Op::new("aten::mul").on(npu()).run(|| launch_kernel("Mul", 1000));
            });
            std::thread::spawn(|| op("aten::sub")).join().unwrap();
        })
        .unwrap();
    profiler.trace().unwrap().export_speedscope(&path).unwrap();
    let file = read(&path);
    let frames: Vec<&str> = file["shared"]["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| frame["name"].as_str().unwrap())
        .collect();
    let shown: Vec<Vec<String>> = file["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|profile| {
            let events = profile["events"].as_array().unwrap();
            let times: Vec<u64> = events.iter().map(|event| event["at"].as_u64().unwrap()).collect();
            assert!(times.is_sorted() && times.last() <= profile["endValue"].as_u64().as_ref());
            let name = |event: &Value| frames[event["frame"].as_u64().unwrap() as usize];
            events
                .iter()
                .map(|event| format!("{} {}", event["type"].as_str().unwrap(), name(event)))
                .collect()
        })
        .collect();
    let add = ["O aten::add", "C aten::add"];
    let mul = ["O aten::mul", "O aclnnAdd", "C aclnnAdd", "C aten::mul"];
    let step = [&["O step"][..], &add, &add, &mul, &["C step"]].concat();
    assert_eq!(shown, [step, vec!["O aten::sub", "C aten::sub"], vec!["O Mul", "C Mul"]]);
    assert_eq!(frames.iter().filter(|name| **name == "aten::add").count(), 1);
}
