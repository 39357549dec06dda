//! Where calls come from.

use crate::fake::{Op, alone, directory, op};
use cresset_dispatch::observe::Kind;
use cresset_profiler::{Event, Frame, Profiler, Trace, record_function};
use serde_json::Value;
use std::fs;

/// What `body` does, with stacks.
fn recorded(body: impl FnOnce()) -> Trace {
    let ((), profiler) = Profiler::builder().with_stack(true).run(|_| body()).unwrap();
    profiler.into_trace().unwrap()
}

/// The last part of each function's name, innermost first.
fn functions<'a>(event: &Event<'a>) -> Vec<&'a str> {
    let frames = event.stack().expect("stacks were asked for");
    frames.iter().map(|frame| frame.function().rsplit("::").next().unwrap()).collect()
}

#[inline(never)]
fn inner() -> u32 {
    op("aten::add");
    std::hint::black_box(line!() - 1)
}

#[inline(never)]
fn outer() -> u32 {
    record_function("scope").run(inner)
}

#[test]
fn with_stack_captures_frame_metadata() {
    let _alone = alone();
    let mut line = 0;
    let trace = recorded(|| line = outer());
    let (scope, add) = (trace.event(0).unwrap(), trace.event(1).unwrap());
    assert_eq!((scope.name(), add.name()), ("scope", "aten::add"));
    // The operator is made by helpers of the tests, which are a program's code to the profiler.
    let own: Vec<&str> = functions(&add).into_iter().filter(|f| ["inner", "outer"].contains(f)).collect();
    assert_eq!(own, ["inner", "outer"]);
    assert_eq!(functions(&scope)[0], "outer");
    let frame = add.stack().unwrap().iter().find(|frame| frame.function().ends_with("inner")).unwrap();
    assert_eq!(frame.line(), line);
    let file = frame.file().unwrap();
    assert!(file.ends_with("tests/profiler/stacks.rs"), "{file}");
    assert_eq!(frame.to_string(), format!("{file}:{line}:{}", frame.function()));
}

#[test]
fn stacks_hold_the_programs_frames_only() {
    let _alone = alone();
    let trace = recorded(|| {
        outer();
        std::thread::spawn(outer).join().unwrap();
    });
    for event in trace.events() {
        let frames = event.stack().unwrap();
        assert!(!frames.is_empty());
        for frame in frames {
            assert!(frame.file().is_some_and(|file| file.contains("/tests/profiler/")), "{frame}");
        }
    }
}

#[test]
fn calls_from_one_place_share_a_stack_and_from_two_do_not() {
    let _alone = alone();
    let trace = recorded(|| {
        (0..3).for_each(|_| op("aten::add"));
        op("aten::mul");
        op("aten::mul");
    });
    let stacks: Vec<&[Frame]> = trace.events().map(|event| event.stack().unwrap()).collect();
    assert!(stacks[0] == stacks[1] && stacks[1] == stacks[2]);
    assert_ne!(stacks[3], stacks[4]);
}

#[test]
fn backward_calls_have_the_stack_of_their_forward_call() {
    let _alone = alone();
    let thread = cresset_dispatch::thread::number();
    #[inline(never)]
    fn forward() {
        Op::new("aten::mul").sequence(3, 0).run(|| ());
    }
    #[inline(never)]
    fn backward(thread: u32) {
        Op::new("MulBackward0").kind(Kind::Evaluate).sequence(3, thread).run(|| {
            Op::new("MulBackward0").kind(Kind::Backward).sequence(3, thread).run(|| op("aten::neg"));
        });
        op("aten::add_");
    }
    let trace = recorded(|| {
        forward();
        backward(thread);
    });
    let is_forward = |event: &Event<'_>| functions(event).contains(&"forward");
    let which: Vec<(bool, &str)> = trace.events().map(|event| (is_forward(&event), event.name())).collect();
    assert_eq!(
        which,
        [
            (true, "aten::mul"),
            (true, "autograd::engine::evaluate_function: MulBackward0"),
            (true, "MulBackward0"),
            (true, "aten::neg"),
            (false, "aten::add_"),
        ]
    );
}

#[test]
fn a_session_without_stacks_beside_one_with_sees_none() {
    let _alone = alone();
    let mut plain = Profiler::builder().record_shapes(true).start().unwrap();
    let trace = recorded(|| Op::new("aten::mm").shapes(&[&[2, 3]]).run(|| ()));
    plain.stop().unwrap();
    let event = trace.event(0).unwrap();
    assert!(event.stack().is_some() && event.inputs().is_none());
    let event = plain.events().unwrap().next().unwrap();
    assert!(event.stack().is_none());
    assert_eq!(event.input_shapes().as_deref(), Some("[[2, 3]]"));
}

#[test]
fn a_deep_stack_keeps_its_innermost_frames() {
    let _alone = alone();
    #[inline(never)]
    fn deeper(levels: u32) {
        if levels == 0 {
            op("aten::add")
        } else {
            deeper(std::hint::black_box(levels - 1))
        }
        std::hint::black_box(());
    }
    let trace = recorded(|| deeper(1000));
    let depth = functions(&trace.event(0).unwrap()).iter().filter(|name| **name == "deeper").count();
    assert!((32..=64).contains(&depth), "{depth}");
}

fn exported(name: &str, with_stack: bool) -> Value {
    let path = directory(name).join("trace.json");
    let builder = Profiler::builder().record_shapes(with_stack).with_stack(with_stack);
    let body = || {
        record_function("scope").run(|| Op::new("aten::mm").shapes(&[&[2, 3]]).run(|| ()));
    };
    let ((), profiler) = builder.run(|_| body()).unwrap();
    profiler.export_chrome_trace(&path).unwrap();
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn export_chrome_trace_includes_shape_and_stack_args_when_enabled() {
    let _alone = alone();
    let trace = exported("stacks-on", true);
    assert_eq!(trace["with_stack"], 1);
    let events = trace["traceEvents"].as_array().unwrap();
    let find = |name: &str| &events.iter().find(|event| event["name"] == name).unwrap()["args"];
    assert_eq!(find("aten::mm")["input_shapes"], serde_json::json!([[2, 3]]));
    for name in ["scope", "aten::mm"] {
        let list = find(name)["stack"].as_array().unwrap();
        let text = find(name)["Call stack"].as_str().unwrap();
        assert_eq!(text.split(';').count(), list.len());
        let frame = list[0].as_str().unwrap();
        assert!(frame.contains("tests/profiler/"), "{frame}");
        assert_eq!(text.split(';').next(), Some(frame));
    }

    let trace = exported("stacks-off", false);
    assert!(trace.get("with_stack").is_none());
    for event in trace["traceEvents"].as_array().unwrap() {
        for key in ["stack", "Call stack", "input_shapes", "Input Dims"] {
            assert!(event["args"].get(key).is_none(), "{event}");
        }
    }
}

#[test]
fn export_stacks_folds_frames_outermost_first() {
    let _alone = alone();
    let path = directory("folded").join("stacks.txt");
    let ((), profiler) = Profiler::builder()
        .with_stack(true)
        .run(|_| {
            outer();
            outer();
        })
        .unwrap();
    profiler.export_stacks(&path, "self_cpu_time_total").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let mut stacks = std::collections::HashSet::new();
    for line in text.lines() {
        let (stack, micros) = line.rsplit_once(' ').unwrap();
        assert!(micros.parse::<u64>().unwrap() > 0);
        assert!(!stack.contains(' ') && stacks.insert(stack), "{line}");
        let at = |name: &str| stack.split(';').position(|frame| frame.ends_with(name));
        assert!(at("inner").is_none() || at("outer") < at("inner"), "{line}");
    }
    // The two scopes and the two operators, each from two lines.
    assert_eq!(stacks.len(), 4);
    // For flame graphs and speedscope, which are not part of the build.
    if let Ok(keep) = std::env::var("CRESSET_KEEP_STACKS") {
        fs::copy(&path, keep).unwrap();
    }
}

#[test]
fn export_stacks_says_what_it_needs() {
    let _alone = alone();
    let path = directory("metrics").join("stacks.txt");
    let (_, profiler) = Profiler::builder().with_stack(true).run(|_| outer()).unwrap();
    let error = profiler.export_stacks(&path, "cpu_time").unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot weigh stacks by \"cpu_time\": legal metrics are self_cpu_time_total, self_device_time_total, \
         self_npu_time_total, self_cuda_time_total, self_xpu_time_total, self_privateuse1_time_total"
    );
    profiler.export_stacks(&path, "self_npu_time_total").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "", "nothing ran on a device");
    let (_, plain) = Profiler::builder().run(|_| outer()).unwrap();
    let error = plain.export_stacks(&path, "self_cpu_time_total").unwrap_err().to_string();
    assert_eq!(error, "cannot export stacks: they were not recorded, use with_stack(true)");
}
