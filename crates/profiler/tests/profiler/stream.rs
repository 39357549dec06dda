//! Sessions that write to a file while they run.

use crate::fake::{Allocator, Op, alone, child, directory, is_child, launch_kernel, npu, op, plug_in, read};
use cresset_dispatch::Device;
use cresset_dispatch::observe::Kind;
use cresset_profiler::{BoxError as Error, Profiler, Schedule, Warning, check_trace, record_function};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

/// Some training, of two threads: so many steps of about 1000 events, all in one scope.
fn train(profiler: &mut Profiler, steps: u64) {
    let host = Allocator::new(Device::CPU);
    let number = cresset_dispatch::thread::number();
    for step in 0..steps {
        record_function("warm").run(|| Op::new("aten::add").on(npu()).run(|| launch_kernel("Add", 1000)));
        for i in 0..100 {
            let link = 1000 * step + i;
            Op::new("aten::linear").sequence(link, 0).shapes(&[&[2, 3], &[4, 3]]).run(|| {
                host.report(64, 32);
                Op::new("aten::addmm").flops(48).run(|| host.report(64, -32));
            });
            Op::new("LinearBackward0").kind(Kind::Evaluate).sequence(link, number).run(|| {
                Op::new("LinearBackward0").kind(Kind::Backward).sequence(link, number).run(|| op("aten::mm"));
            });
        }
        thread::scope(|scope| {
            scope.spawn(|| record_function("load").run(|| (0..200).for_each(|_| op("aten::stack"))));
        });
        profiler.step().unwrap();
    }
}

/// A trace's events without what differs from export to export, in a fixed order.
fn events(path: &Path) -> Vec<String> {
    let trace = read(path);
    let mut lines: Vec<String> = Vec::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        let mut event = event.clone();
        if let Some(args) = event["args"].as_object_mut() {
            args.remove("Ev Idx");
        }
        let name = event["name"].as_str().unwrap();
        if name.starts_with("ProfilerStep#") {
            event["args"] = Value::Null;
        }
        if event["cat"] == "fwdbwd" {
            event["id"] = 0.into();
        }
        lines.push(event.to_string());
    }
    lines.sort_unstable();
    lines
}

#[test]
fn a_streamed_recording_exports_in_pieces_what_it_exports_whole() {
    let _alone = alone();
    plug_in();
    let directory = directory("stream");
    let (pieces, whole) = (directory.join("pieces.json"), directory.join("whole.json"));
    let stream = directory.join("events");
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(0, 0, 10_000).unwrap())
        .record_shapes(true)
        .profile_memory(true)
        .with_flops(true)
        .stream_to(&stream)
        .start()
        .unwrap();
    train(&mut profiler, 250);
    profiler.stop().unwrap();
    profiler.add_metadata("run", "streamed").unwrap();
    profiler.export_chrome_trace(&pieces).unwrap();
    let averages: BTreeMap<_, _> = profiler
        .key_averages()
        .unwrap()
        .iter()
        .map(|row| (row.key.clone(), (row.count, row.cpu_time_total, row.self_cpu_time_total)))
        .collect();
    let trace = profiler.into_trace().unwrap();
    assert!(!stream.exists(), "the file is left behind");
    trace.export_chrome_trace(&whole).unwrap();
    assert!(events(&pieces) == events(&whole), "pieces and the whole differ");
    let report = check_trace(&pieces).unwrap();
    assert!(report.passes(true), "{report}");
    assert_eq!(read(&pieces)["run"], "streamed");

    let mut expected: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for event in trace.events() {
        let name = if event.name().starts_with("ProfilerStep#") { "ProfilerStep*" } else { event.name() };
        let row = expected.entry(name.to_owned()).or_default();
        *row = (row.0 + 1, row.1 + event.duration(), row.2 + event.self_time());
    }
    for (name, row) in &expected {
        assert_eq!(averages[name], *row, "{name}");
    }
    assert_eq!(expected["aten::stack"].0, 50_000);
    let work: Vec<_> = trace.device_events().map(|work| (work.name(), work.stream())).collect();
    assert_eq!(work, vec![("Add", 1); 250]);
    assert!(trace.device_events().all(|work| work.launch().is_some() && work.call().is_some()));
}

/// The Chrome trace of a recording in pieces, which must be that of the whole.
fn same_in_pieces(profiler: Profiler, directory: &Path) -> Value {
    let (pieces, whole) = (directory.join("pieces.json"), directory.join("whole.json"));
    profiler.export_chrome_trace(&pieces).unwrap();
    profiler.into_trace().unwrap().export_chrome_trace(&whole).unwrap();
    assert!(events(&pieces) == events(&whole), "pieces and the whole differ");
    let report = check_trace(&pieces).unwrap();
    assert!(report.passes(true), "{report}");
    read(&pieces)
}

#[test]
fn what_spans_pieces_is_told_once_and_joined() {
    let _alone = alone();
    let directory = directory("stream-joined");
    let mut profiler = Profiler::builder()
        .with_stack(true)
        .with_modules(true)
        .profile_memory(true)
        .stream_to(directory.join("events"))
        .start()
        .unwrap();
    const CALLS: u64 = 40_000;
    let number = cresset_dispatch::thread::number();
    Op::module("Sequential", 9).run(|| {
        for i in 0..CALLS {
            Op::module("Linear", 3 + i % 2).run(|| Op::new("aten::linear").sequence(i, 0).run(|| ()));
        }
        for i in (0..CALLS).rev() {
            Op::new("LinearBackward0").kind(Kind::Evaluate).sequence(i, number).run(|| {
                Op::new("LinearBackward0").kind(Kind::Backward).sequence(i, number).run(|| ());
            });
        }
        Op::module("Linear", 3).run(|| ());
    });
    // Memory that is told of for the first time at the very end.
    Op::new("aten::empty").run(|| Allocator::new(Device::CPU).report(64, 32));
    profiler.stop().unwrap();
    let trace = same_in_pieces(profiler, &directory);
    let events = trace["traceEvents"].as_array().unwrap();
    let count = |wanted: &dyn Fn(&Value) -> bool| events.iter().filter(|event| wanted(event)).count() as u64;
    assert_eq!(count(&|event| event["cat"] == "fwdbwd" && event["ph"] == "s"), CALLS);
    assert_eq!(count(&|event| event["name"] == "nn.Module: Sequential_0"), 1);
    assert_eq!(count(&|event| event["name"] == "nn.Module: Linear_0"), CALLS / 2 + 1);
    assert_eq!(count(&|event| event["args"]["cpu_memory_allocated_before"] == 1000), 3 * CALLS + 1);
    let line = |event: &Value| event["args"]["Call stack"].as_str().unwrap().to_owned();
    let forward = events.iter().find(|event| event["name"] == "aten::linear").unwrap();
    let backward = events.iter().rfind(|event| event["name"] == "LinearBackward0").unwrap();
    assert_eq!(line(forward), line(backward));
}

#[test]
fn a_scope_across_a_steps_end_keeps_all_steps_of_all_pieces_apart() {
    let _alone = alone();
    let directory = directory("stream-across");
    let schedule = Schedule::new(0, 0, 1000).unwrap();
    let mut profiler =
        Profiler::builder().schedule(schedule).stream_to(directory.join("events")).start().unwrap();
    for step in 0..6 {
        let across = record_function("across");
        (0..40_000).for_each(|_| op("aten::add"));
        if step != 5 {
            drop(across);
            profiler.step().unwrap();
        } else {
            profiler.step().unwrap();
            drop(across);
        }
    }
    profiler.stop().unwrap();
    let trace = same_in_pieces(profiler, &directory);
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let steps = events.filter(|event| event["name"].as_str().unwrap().starts_with("ProfilerStep#"));
    let tracks: Vec<_> = steps.map(|event| event["tid"].clone()).collect();
    assert_eq!(tracks.len(), 7);
    assert!(tracks.iter().all(|track| *track == tracks[0] && *track != std::process::id()));
}

#[test]
fn cycles_of_a_streamed_session_replace_each_other_or_add_up() {
    let _alone = alone();
    let path = directory("stream-cycles").join("events");
    let record = |acc_events| {
        let mut exported = Vec::new();
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut profiler = Profiler::builder()
            .schedule(Schedule::new(0, 1, 1).unwrap().repeat(3))
            .acc_events(acc_events)
            .on_trace_ready(move |profiler| {
                sender.send(profiler.trace()?.events().count()).map_err(Error::from)
            })
            .stream_to(&path)
            .start()
            .unwrap();
        for step in 0..6 {
            (0..step).for_each(|_| op("aten::add"));
            profiler.step().unwrap();
            exported.extend(receiver.try_iter());
        }
        profiler.stop().unwrap();
        (exported, profiler)
    };
    let adds = |profiler: &Profiler| {
        let averages = profiler.key_averages().unwrap();
        averages.iter().find(|row| row.key == "aten::add").unwrap().count
    };
    let (exported, last) = record(false);
    assert_eq!((exported, adds(&last), last.events().unwrap().count()), (vec![2, 4, 6], 5, 6));
    assert!(last.warnings().contains(&Warning::EventsReplaced));
    drop(last);
    let (exported, all) = record(true);
    assert_eq!((exported, adds(&all), all.events().unwrap().count()), (vec![2, 4, 6], 1 + 3 + 5, 12));
    let beside = || std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(beside(), 3);
    drop(all);
    assert_eq!(beside(), 0);
}

#[test]
fn a_scope_across_all_pieces_keeps_its_self_time() {
    let _alone = alone();
    let directory = directory("stream-scope");
    let mut profiler = Profiler::builder().stream_to(directory.join("events")).start().unwrap();
    record_function("epoch").run(|| (0..300_000).for_each(|_| op("aten::add")));
    let open = record_function("open");
    profiler.stop().unwrap();
    drop(open);
    let averages = profiler.key_averages().unwrap();
    let row = |name: &str| averages.iter().find(|row| row.key == name).unwrap().clone();
    let (epoch, add) = (row("epoch"), row("aten::add"));
    assert_eq!((epoch.count, add.count, row("open").count), (1, 300_000, 1));
    assert_eq!(epoch.self_cpu_time_total + add.cpu_time_total, epoch.cpu_time_total);
    let unfinished = profiler.events().unwrap().filter(|event| !event.is_finished());
    assert!(unfinished.map(|event| event.name()).eq(["open"]));
}

#[test]
fn threads_that_come_and_go_are_all_in_a_streamed_recording() {
    let _alone = alone();
    let directory = directory("stream-threads");
    let mut profiler =
        Profiler::builder().with_flops(true).stream_to(directory.join("events")).start().unwrap();
    for round in 0..10 {
        thread::scope(|scope| {
            for i in 0..4 {
                let number = round * 4 + i;
                scope.spawn(move || {
                    (0..3000).for_each(|call| Op::new("aten::add").flops(number * 3000 + call + 1).run(|| ()))
                });
            }
        });
    }
    profiler.stop().unwrap();
    let mut numbers: Vec<u64> = profiler.events().unwrap().map(|event| event.flops()).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=120_000));
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_of_the_start() {
    let _alone = alone();
    let mut profiler = Profiler::builder().stream_to("/nowhere/events").build().unwrap();
    let error = profiler.start().unwrap_err().to_string();
    assert!(error.starts_with("cannot write /nowhere/events: No such file"), "{error}");
    assert!(!profiler.is_running() && !cresset_dispatch::observe::is_watched());
}

#[test]
fn a_file_that_is_there_already_is_refused_and_kept() {
    let _alone = alone();
    let path = directory("stream-taken").join("thesis.txt");
    std::fs::write(&path, "years of work").unwrap();
    let mut profiler = Profiler::builder().stream_to(&path).build().unwrap();
    let error = profiler.start().unwrap_err().to_string();
    assert!(error.ends_with("thesis.txt: File exists (os error 17)"), "{error}");
    drop(profiler);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "years of work");
}

/// The disk is full for a process that may write no more than 1 MiB to a file.
#[test]
fn a_disk_that_fills_up_is_told_at_the_stop_and_what_was_written_is_kept() {
    let name = "stream::a_disk_that_fills_up_is_told_at_the_stop_and_what_was_written_is_kept";
    if is_child() {
        let path = Path::new(&std::env::var("CRESSET_DIRECTORY").unwrap()).join("events");
        let mut profiler = Profiler::builder().stream_to(path).start().unwrap();
        (0..300_000).for_each(|_| op("aten::add"));
        println!("said: {}", profiler.stop().unwrap_err());
        println!("kept: {}", profiler.events().unwrap().count());
        return;
    }
    let _alone = alone();
    let directory = directory("stream-full");
    let command = child(name, "ulimit -f 2048; trap '' XFSZ;").env("CRESSET_DIRECTORY", &directory).output();
    let output = command.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let path = directory.join("events");
    assert!(text.contains(&format!("said: cannot write {}: File too large", path.display())), "{text}");
    let kept = text.lines().find_map(|line| line.strip_prefix("kept: ")?.parse::<u32>().ok()).unwrap();
    assert!((10_000..300_000).contains(&kept), "{kept}");
}

/// Kilobytes that a process of its own takes at most, in which this same test streams `work`. Afterwards
/// it has as many calls of the operator that is recorded first as `work` said.
fn peak_of(name: &str, work: impl FnOnce() -> u64) -> Option<u64> {
    if is_child() {
        let path = Path::new(&std::env::var("CRESSET_DIRECTORY").unwrap()).join("events");
        let mut profiler = Profiler::builder().stream_to(path).start().unwrap();
        let calls = work();
        profiler.stop().unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        println!("{peak}");
        assert_eq!(profiler.key_averages().unwrap().iter().next().unwrap().count, calls);
        return None;
    }
    let _alone = alone();
    let output = child(name, "").env("CRESSET_DIRECTORY", directory("stream-memory")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let peak = text.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    peak.split_whitespace().nth(1).unwrap().parse().ok()
}

#[test]
fn memory_stays_bounded_while_a_session_streams() {
    let peak = peak_of("stream::memory_stays_bounded_while_a_session_streams", || {
        (0..1_000_000).for_each(|_| op("aten::add"));
        1_000_000
    });
    // The events alone take 64 MB, and a trace of them twice that.
    assert!(peak.is_none_or(|peak| peak < 48_000), "{peak:?} kB");
}

#[test]
fn what_devices_did_does_not_stay_in_memory_while_a_session_streams() {
    plug_in();
    let peak = peak_of("stream::what_devices_did_does_not_stay_in_memory_while_a_session_streams", || {
        for _ in 0..1_200_000 {
            Op::new("aten::add").on(npu()).run(|| launch_kernel("Add", 100));
        }
        1_200_000
    });
    // Launches and kernels are 2 400 000 activities of about 200 bytes; what a device did since it was asked last waits.
    assert!(peak.is_none_or(|peak| peak < 160_000), "{peak:?} kB");
}
