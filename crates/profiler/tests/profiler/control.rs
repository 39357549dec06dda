//! Profilers moved by hand, and what they tell about themselves.

use crate::fake::{Op, alone, launch_kernel, npu, op, plug_in};
use cresset_profiler::{Action, Activity, Profiler, Schedule, Warning, record_function};

fn names(profiler: &Profiler) -> Vec<String> {
    profiler.events().unwrap().map(|event| event.name().to_owned()).collect()
}

#[test]
fn toggle_collection_dynamic_hides_and_shows_operators() {
    let _alone = alone();
    let mut beside = Profiler::builder().start().unwrap();
    let mut profiler = Profiler::builder().start().unwrap();
    op("aten::before");
    profiler.toggle_collection_dynamic(false, &[Activity::Cpu]).unwrap();
    op("aten::hidden");
    profiler.toggle_collection_dynamic(true, &[Activity::Cpu]).unwrap();
    op("aten::after");
    profiler.stop().unwrap();
    beside.stop().unwrap();
    assert_eq!(names(&profiler), ["aten::before", "aten::after"]);
    assert_eq!(names(&beside), ["aten::before", "aten::hidden", "aten::after"]);
}

#[test]
fn a_profiler_that_hides_all_operators_records_none() {
    let _alone = alone();
    let mut profiler = Profiler::builder().start().unwrap();
    profiler.toggle_collection_dynamic(false, &[Activity::Cpu]).unwrap();
    assert!(!cresset_profiler::is_watched());
    profiler.toggle_collection_dynamic(true, &[Activity::Cpu]).unwrap();
    assert!(cresset_profiler::is_watched());
    profiler.stop().unwrap();
}

#[test]
fn devices_can_be_switched_off_in_between() {
    let _alone = alone();
    plug_in();
    let mut profiler = Profiler::builder().start().unwrap();
    Op::new("aten::one").on(npu()).run(|| launch_kernel("One", 10));
    profiler.toggle_collection_dynamic(false, &[Activity::Device]).unwrap();
    Op::new("aten::two").on(npu()).run(|| launch_kernel("Two", 10));
    profiler.toggle_collection_dynamic(true, &[Activity::Device]).unwrap();
    Op::new("aten::three").on(npu()).run(|| launch_kernel("Three", 10));
    profiler.stop().unwrap();
    let trace = profiler.trace().unwrap();
    let kernels: Vec<&str> = trace.device_events().map(|work| work.name()).collect();
    assert_eq!(kernels, ["One", "Three"]);
    assert_eq!(names(&profiler), ["aten::one", "aclnnAdd", "aten::two", "aten::three", "aclnnAdd"]);
}

#[test]
fn toggling_says_what_it_cannot_do() {
    let _alone = alone();
    plug_in();
    let mut profiler = Profiler::builder().activities([Activity::Cpu]).build().unwrap();
    let error = profiler.toggle_collection_dynamic(false, &[Activity::Cpu]).unwrap_err().to_string();
    assert_eq!(error, "cannot toggle activities: the profiler is not running");
    profiler.start().unwrap();
    let error = profiler.toggle_collection_dynamic(true, &[Activity::Device]).unwrap_err().to_string();
    assert_eq!(error, "cannot switch Device on: it is not watched, name it in activities()");
}

#[test]
fn a_trace_is_prepared_started_and_stopped_in_this_order() {
    let _alone = alone();
    let mut profiler = Profiler::builder().build().unwrap();
    let told = |outcome: cresset_profiler::Result<()>| outcome.unwrap_err().to_string();
    assert_eq!(told(profiler.start_trace()), "cannot start a trace: call prepare_trace() first");
    assert_eq!(told(profiler.stop_trace()), "cannot stop a trace: call start_trace() first");
    profiler.prepare_trace().unwrap();
    assert!(profiler.trace_id().is_some());
    assert_eq!(
        told(profiler.prepare_trace()),
        "cannot prepare a trace: one is on its way already, call stop_trace() first"
    );
    assert_eq!(told(profiler.stop_trace()), "cannot stop a trace: call start_trace() first");
    op("aten::early");
    profiler.start_trace().unwrap();
    assert_eq!(told(profiler.start_trace()), "cannot start a trace: call prepare_trace() first");
    assert_eq!(told(profiler.start()), "cannot start: the profiler is running already");
    op("aten::add");
    assert_eq!(
        profiler.events().err().unwrap().to_string(),
        "cannot read events: nothing is complete yet, call stop() first"
    );
    profiler.stop_trace().unwrap();
    assert_eq!(names(&profiler), ["aten::add"]);
    profiler.start().unwrap();
    assert_eq!(
        told(profiler.prepare_trace()),
        "cannot prepare a trace: start() has taken over, call stop() first"
    );
    profiler.stop().unwrap();
}

#[test]
fn step_without_a_session_is_an_error() {
    let _alone = alone();
    let mut profiler = Profiler::builder().build().unwrap();
    assert_eq!(profiler.step().unwrap_err().to_string(), "cannot step: the profiler is not running");
    profiler.start().unwrap();
    profiler.stop().unwrap();
    assert!(profiler.step().is_err());
}

#[test]
fn the_state_can_be_read_at_any_time() {
    let _alone = alone();
    let schedule = Schedule::new(1, 1, 1).unwrap().repeat(1);
    let mut profiler = Profiler::builder().schedule(schedule).build().unwrap();
    assert_eq!((profiler.is_running(), profiler.trace_id()), (false, None));
    assert!(profiler.record_steps());
    let mut traces = 0;
    profiler.set_custom_trace_id(move || {
        traces += 1;
        format!("trace {traces}")
    });
    profiler.start().unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push((profiler.step_num(), profiler.current_action(), profiler.trace_id().map(str::to_owned)));
        profiler.step().unwrap();
    }
    let named = Some("trace 1".to_owned());
    assert_eq!(
        seen,
        [
            (0, Action::None, None),
            (1, Action::Warmup, named.clone()),
            (2, Action::RecordAndSave, named.clone()),
            (3, Action::None, named),
        ]
    );
    assert!(!Profiler::builder().build().unwrap().record_steps());
}

#[test]
fn warnings_are_collected_and_not_printed() {
    let _alone = alone();
    let warned = |actions: &'static [Action], acc_events: bool| {
        let schedule = Schedule::custom(|step| actions.get(step as usize).copied().unwrap_or(Action::None));
        let mut profiler = Profiler::builder().schedule(schedule).acc_events(acc_events).start().unwrap();
        (0..actions.len()).for_each(|_| profiler.step().unwrap());
        profiler.stop().unwrap();
        profiler.warnings().to_vec()
    };
    use Action::{None, Record, RecordAndSave as Save, Warmup};
    assert_eq!(warned(&[None, Warmup, Record, Save], false), []);
    assert_eq!(warned(&[Warmup, None], false), [Warning::WarmupThenNone]);
    assert_eq!(
        warned(&[Record, None, Record, Warmup], true),
        [Warning::RecordWithoutSave, Warning::WarmupThenNone]
    );
    assert_eq!(warned(&[Save, None, Save, None, Save], false), [Warning::EventsReplaced]);
    assert_eq!(warned(&[Save, None, Save], true), []);
    let profiler = Profiler::builder().schedule(Schedule::new(1, 0, 1).unwrap()).build().unwrap();
    let texts: Vec<String> = profiler.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["the schedule has no warmup, which can skew results"]);
}

#[test]
fn options_by_name_are_set_or_refused() {
    let builder = Profiler::builder().experimental("verbose", true).unwrap();
    let error = builder.experimental("verbose", false).err().unwrap().to_string();
    assert_eq!(error, "cannot set the option \"verbose\": it is always on");
    let error = Profiler::builder().experimental("trace_only", true).err().unwrap().to_string();
    assert!(error.starts_with("cannot set the option \"trace_only\": legal options are "), "{error}");
}

#[test]
fn record_function_as_guard_closure_and_macro() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            {
                let _scope = record_function("guard");
            }
            assert_eq!(record_function("closure").run(|| 7), 7);
            let i = 3;
            let _scope = record_function!("layer {} of {i}", i - 1);
        })
        .unwrap();
    assert_eq!(names(&profiler), ["guard", "closure", "layer 2 of 3"]);
}

#[test]
fn the_macro_formats_nothing_when_off() {
    struct Shown;
    impl std::fmt::Display for Shown {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("nobody watches")
        }
    }
    let _alone = alone();
    let _scope = record_function!("{}", Shown);
}
