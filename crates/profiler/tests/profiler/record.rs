//! What is recorded of calls and scopes.

use crate::fake::{Op, alone, op};
use cresset_dispatch::Device;
use cresset_dispatch::observe::Kind;
use cresset_profiler::{EventKind, Input, Phase, Profiler, Trace, record_function};
use std::panic::{AssertUnwindSafe, catch_unwind};

fn recorded(body: impl FnOnce(&mut Profiler)) -> Trace {
    let mut profiler = Profiler::builder().build().unwrap();
    profiler.run(body).unwrap();
    profiler.into_trace().unwrap()
}

fn names(trace: &Trace) -> Vec<&str> {
    trace.events().map(|event| event.name()).collect()
}

#[test]
fn profiler_context_and_step_basics() {
    let _alone = alone();
    let trace = recorded(|profiler| {
        op("aten::add");
        profiler.step().unwrap();
        op("aten::mul");
    });
    assert_eq!(
        trace.events().map(|event| (event.name(), event.step())).collect::<Vec<_>>(),
        [("aten::add", 0), ("aten::mul", 1)]
    );
}

#[test]
fn record_function_nesting_and_exception_safe() {
    let _alone = alone();
    let fails = || -> Result<(), String> {
        let _outer = record_function("outer");
        let _inner = record_function("inner");
        Err("wrong".to_owned())
    };
    let trace = recorded(|_| {
        assert_eq!(fails(), Err("wrong".to_owned()));
        let panic = catch_unwind(|| {
            let _outer = record_function("outer");
            record_function("inner").run(|| panic!("told to"));
        });
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"told to"));
    });
    assert_eq!(names(&trace), ["outer", "inner", "outer", "inner"]);
    assert!(trace.events().all(|event| event.is_finished() && event.is_user_annotation()));
    assert_eq!(trace.event(1).unwrap().parent().unwrap().index(), 0);
    assert_eq!(trace.event(3).unwrap().parent().unwrap().index(), 2);
}

#[test]
fn record_function_without_a_session_is_nothing() {
    let _alone = alone();
    record_function("before").run(|| ());
    let trace = recorded(|_| {
        let _scope = record_function!("layer {}", 1 + 1);
    });
    record_function("after").run(|| ());
    assert_eq!(names(&trace), ["layer 2"]);
}

#[test]
fn a_scope_open_at_the_start_is_not_seen_and_one_open_at_the_stop_is() {
    let _alone = alone();
    let before = record_function("before");
    let mut profiler = Profiler::builder().start().unwrap();
    let during = record_function("during");
    op("aten::add");
    profiler.stop().unwrap();
    drop((during, before));
    let trace = profiler.trace().unwrap();
    assert_eq!(names(trace), ["during", "aten::add"]);
    let open = trace.event(0).unwrap();
    assert!(!open.is_finished() && open.end() >= trace.event(1).unwrap().end());
    assert_eq!(open.end(), trace.window().1);
}

#[test]
fn default_flags_do_not_emit_shape_or_stack() {
    let _alone = alone();
    let trace = recorded(|_| Op::new("aten::mm").shapes(&[&[2, 3]]).flops(12).run(|| ()));
    let event = trace.event(0).unwrap();
    assert_eq!((event.inputs(), event.input_shapes(), event.flops()), (None, None, 0));
    assert!(event.memory().is_none() && event.stack().is_none());
}

#[test]
fn record_shapes_captures_tensor_shapes() {
    let _alone = alone();
    let builder = Profiler::builder().record_shapes(true).with_flops(true);
    let ((), profiler) =
        builder.run(|_| Op::new("aten::mm").shapes(&[&[2, 3], &[3, 4]]).flops(48).run(|| ())).unwrap();
    let event = profiler.events().unwrap().next().unwrap();
    assert_eq!(event.input_shapes().unwrap(), "[[2, 3], [3, 4]]");
    assert_eq!(event.flops(), 48);
    let inputs = event.inputs().unwrap();
    assert_eq!(inputs.len(), 3);
    assert_eq!(inputs[2], Input::Float(1.0));
    let Input::Tensor(tensor) = &inputs[1] else { panic!("a tensor") };
    assert_eq!((&tensor.strides[..], tensor.dtype.as_str()), (&[4, 1][..], "f32"));
}

#[test]
fn events_include_correlation_id_for_ops() {
    let _alone = alone();
    let trace = recorded(|_| (0..2000).for_each(|_| op("aten::add")));
    let ids: Vec<u64> = trace.events().map(|event| event.correlation_id()).collect();
    assert_eq!(ids.len(), 2000);
    assert!(ids.is_sorted_by(|a, b| a < b) && ids[0] > 0);
}

#[test]
fn only_operators_have_a_runtime() {
    let _alone = alone();
    let trace = recorded(|_| record_function("scope").run(|| op("aten::add")));
    let runtimes: Vec<_> = trace.events().map(|event| event.runtime_name()).collect();
    assert_eq!(runtimes, [None, Some("dispatch_kernel")]);
    assert_eq!(trace.event(1).unwrap().device(), Device::CPU);
    assert_eq!(trace.event(1).unwrap().device_type(), "CPU");
}

#[test]
fn self_time_excludes_children_and_never_exceeds_total() {
    let _alone = alone();
    let trace = recorded(|_| record_function("outer").run(|| (0..10).for_each(|_| op("aten::add"))));
    let outer = trace.event(0).unwrap();
    let inside: u64 = outer.children().map(|child| child.duration()).sum();
    assert_eq!(outer.children().count(), 10);
    assert_eq!(outer.self_time() + inside, outer.duration());
    assert!(trace.events().all(|event| event.self_time() <= event.duration()));
}

#[test]
fn every_event_knows_its_phase() {
    let _alone = alone();
    let trace = recorded(|_| {
        op("aten::mul");
        Op::new("MulBackward0").kind(Kind::Evaluate).run(|| {
            Op::new("MulBackward0").kind(Kind::Backward).run(|| op("aten::mul"));
        });
        record_function("Optimizer.step#SGD.step").run(|| op("aten::add_"));
        record_function("Optimizer.zero_grad#SGD.zero_grad").run(|| ());
    });
    let phases: Vec<_> = trace.events().map(|event| (event.name(), event.phase())).collect();
    assert_eq!(
        phases,
        [
            ("aten::mul", Phase::Forward),
            ("autograd::engine::evaluate_function: MulBackward0", Phase::Backward),
            ("MulBackward0", Phase::Backward),
            ("aten::mul", Phase::Backward),
            ("Optimizer.step#SGD.step", Phase::Optimizer),
            ("aten::add_", Phase::Optimizer),
            ("Optimizer.zero_grad#SGD.zero_grad", Phase::Forward),
        ]
    );
}

#[test]
fn backward_is_linked_to_the_innermost_forward_call() {
    let _alone = alone();
    let thread = cresset_dispatch::thread::number();
    let trace = recorded(|_| {
        Op::new("aten::linear").sequence(4, 0).run(|| {
            Op::new("aten::t").sequence(4, 0).run(|| ());
            Op::new("aten::addmm").sequence(5, 0).run(|| ());
        });
        Op::new("AddmmBackward0").kind(Kind::Evaluate).sequence(5, thread).run(|| {
            Op::new("AddmmBackward0").kind(Kind::Backward).sequence(5, thread).run(|| ());
        });
        Op::new("TBackward0").kind(Kind::Backward).sequence(4, thread).run(|| ());
    });
    let links: Vec<_> = trace.links().map(|(from, to)| (from.name(), to.name(), to.kind())).collect();
    assert_eq!(
        links,
        [
            ("aten::addmm", "AddmmBackward0", EventKind::Backward),
            ("aten::t", "TBackward0", EventKind::Backward)
        ]
    );
}

#[test]
fn a_hundred_thousand_nested_scopes_are_a_tree() {
    let _alone = alone();
    const DEPTH: usize = 100_000;
    let trace = recorded(|_| {
        let mut scopes: Vec<_> = (0..DEPTH).map(|_| record_function("deep")).collect();
        while let Some(scope) = scopes.pop() {
            drop(scope);
        }
    });
    assert_eq!(trace.events().len(), DEPTH);
    assert!(trace.events().enumerate().all(|(i, event)| event.depth() == i && event.is_finished()));
}

#[test]
fn names_of_any_length_are_kept() {
    let _alone = alone();
    let long = "x".repeat(100_000);
    let trace = recorded(|_| {
        record_function("short").run(|| ());
        (0..3).for_each(|_| record_function(&long).run(|| ()));
        record_function("ünïcödé \"quoted\"\n\0").run(|| ());
    });
    assert_eq!(names(&trace), ["short", &long, &long, &long, "ünïcödé \"quoted\"\n\0"]);
}

#[test]
fn a_panic_in_the_body_reaches_the_caller_and_keeps_the_events() {
    let _alone = alone();
    let mut profiler = Profiler::builder().build().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        profiler.run(|_| {
            op("aten::add");
            panic!("told to")
        })
    }));
    assert!(outcome.is_err());
    assert!(!profiler.is_running());
    assert_eq!(names(profiler.trace().unwrap()), ["aten::add"]);
}
