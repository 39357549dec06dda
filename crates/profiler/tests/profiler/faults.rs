//! Panics, errors and sizes that nobody expects.

use crate::fake::{Op, alone, child, directory, is_child, op, read};
use cresset_dispatch::observe::{Span, is_watched, span};
use cresset_profiler::{Action, Event, Profiler, Schedule, record_function};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;

fn names(profiler: &Profiler) -> Vec<String> {
    profiler.events().unwrap().map(|event| event.name().to_owned()).collect()
}

/// Runs `body`, which panics with a text, and returns that; the panic is not printed.
fn panic_of<R>(body: impl FnOnce() -> R) -> &'static str {
    let Err(panic) = catch_unwind(AssertUnwindSafe(body)) else { panic!("no panic reached the caller") };
    panic.downcast_ref::<&'static str>().unwrap()
}

fn throw(text: &'static str) -> ! {
    resume_unwind(Box::new(text))
}

#[test]
fn calls_that_fail_are_recorded_and_marked() {
    let _alone = alone();
    let path = directory("failed").join("trace.json");
    let outcome = |name, outcome: Result<(), ()>| Span::end(span(&Op::new(name)), &outcome);
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            outcome("aten::good", Ok(()));
            outcome("aten::bad", Err(()));
            panic_of(|| record_function("scope").run(|| Op::new("aten::panics").run(|| throw("told to"))));
            op("aten::after");
        })
        .unwrap();
    let all: Vec<_> = profiler.events().unwrap().map(|event| (event.name(), event.is_failed())).collect();
    let expected = [
        ("aten::good", false),
        ("aten::bad", true),
        ("scope", true),
        ("aten::panics", true),
        ("aten::after", false),
    ];
    assert_eq!(all, expected);
    assert!(profiler.events().unwrap().all(|event| event.is_finished() && event.duration() > 0));
    profiler.export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    let marked = |event: &&serde_json::Value| event["args"]["failed"] == true;
    assert_eq!(trace["traceEvents"].as_array().unwrap().iter().filter(marked).count(), 3);
}

#[test]
fn a_call_made_while_the_thread_unwinds_has_not_failed() {
    struct Tidy;
    impl Drop for Tidy {
        fn drop(&mut self) {
            op("aten::tidy");
        }
    }
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            panic_of(|| {
                let _tidy = Tidy;
                throw("told to")
            });
        })
        .unwrap();
    assert!(!profiler.events().unwrap().next().unwrap().is_failed());
}

#[test]
fn a_handler_that_panics_leaves_the_profiler_ready_for_more() {
    let _alone = alone();
    let calls = Arc::new(AtomicU32::new(0));
    let seen = calls.clone();
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(0, 0, 1).unwrap())
        .on_trace_ready(move |_| -> Result<(), String> {
            if seen.fetch_add(1, Relaxed) == 0 { throw("handler") } else { Ok(()) }
        })
        .start()
        .unwrap();
    op("aten::first");
    assert_eq!(panic_of(|| profiler.step()), "handler");
    assert_eq!(names(&profiler), ["ProfilerStep#0", "aten::first"]);
    assert_eq!((profiler.step_num(), profiler.current_action()), (1, Action::RecordAndSave));
    op("aten::second");
    profiler.stop().unwrap();
    assert_eq!(names(&profiler), ["ProfilerStep#1", "aten::second"]);
    assert_eq!(calls.load(Relaxed), 2);
    assert!(!is_watched());
}

#[test]
fn a_handler_that_panics_at_the_stop_leaves_nothing_running() {
    let _alone = alone();
    let handler = |_: &Profiler| -> Result<(), String> { throw("handler") };
    let mut profiler = Profiler::builder().on_trace_ready(handler).build().unwrap();
    assert_eq!(panic_of(|| profiler.run(|_| op("aten::add"))), "handler");
    assert!(!profiler.is_running() && !is_watched());
    assert_eq!(names(&profiler), ["aten::add"]);
}

#[test]
fn a_handler_that_fails_does_not_end_the_schedule() {
    let _alone = alone();
    let schedule = Schedule::new(0, 0, 1).unwrap();
    let mut profiler =
        Profiler::builder().schedule(schedule).on_trace_ready(|_| Err("disk is on fire")).start().unwrap();
    for step in 0..3 {
        op("aten::add");
        assert_eq!(profiler.step().unwrap_err().to_string(), "on_trace_ready failed: disk is on fire");
        assert_eq!(names(&profiler), [format!("ProfilerStep#{step}"), "aten::add".to_owned()]);
    }
}

#[test]
fn a_schedule_that_panics_changes_nothing() {
    let _alone = alone();
    let panics = AtomicU32::new(0);
    let schedule = Schedule::custom(move |step| match step {
        1 if panics.fetch_add(1, Relaxed) == 0 => throw("schedule"),
        0 => Action::Record,
        _ => Action::RecordAndSave,
    });
    let mut profiler = Profiler::builder().schedule(schedule).start().unwrap();
    op("aten::first");
    assert_eq!(panic_of(|| profiler.step()), "schedule");
    assert_eq!((profiler.step_num(), profiler.current_action()), (0, Action::Record));
    op("aten::second");
    profiler.step().unwrap();
    profiler.stop().unwrap();
    let expected = ["ProfilerStep#0", "aten::first", "aten::second", "ProfilerStep#1"];
    assert_eq!(names(&profiler), expected);
}

#[test]
fn a_schedule_that_panics_at_the_start_starts_nothing() {
    let _alone = alone();
    let schedule = Schedule::custom(|_| throw("schedule"));
    let mut profiler = Profiler::builder().schedule(schedule).build().unwrap();
    assert_eq!(panic_of(|| profiler.start()), "schedule");
    assert!(!profiler.is_running() && !is_watched());
}

#[test]
fn a_trace_id_that_panics_does_not_stop_the_recording() {
    let _alone = alone();
    let mut profiler = Profiler::builder().custom_trace_id(|| throw("id")).build().unwrap();
    assert_eq!(panic_of(|| profiler.start()), "id");
    op("aten::add");
    profiler.stop().unwrap();
    assert_eq!(names(&profiler), ["aten::add"]);
    assert_eq!(profiler.trace_id().unwrap().len(), 32);
}

#[test]
fn a_session_dropped_mid_scope_leaves_nothing_behind() {
    let _alone = alone();
    let profiler = Profiler::builder().profile_memory(true).start().unwrap();
    let scope = record_function("open");
    drop(profiler);
    assert!(!is_watched());
    drop(scope);
    let ((), next) = Profiler::builder().run(|_| op("aten::add")).unwrap();
    assert_eq!(names(&next), ["aten::add"]);
}

#[test]
fn a_process_that_never_stops_its_session_exits_as_it_would_without() {
    let name = "faults::a_process_that_never_stops_its_session_exits_as_it_would_without";
    if is_child() {
        let profiler = Profiler::builder().profile_memory(true).start().unwrap();
        op("aten::add");
        std::mem::forget((profiler, record_function("open")));
        std::process::exit(7);
    }
    let output = child(name, "").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

#[test]
fn sessions_on_different_threads_are_each_complete() {
    let _alone = alone();
    const THREADS: usize = 4;
    let barrier = Barrier::new(THREADS);
    let ours = ["aten::0", "aten::1", "aten::2", "aten::3"];
    let session = |own: &'static str| {
        let mut all = Profiler::builder().start().unwrap();
        let mut one = Profiler::builder().all_threads(false).start().unwrap();
        barrier.wait();
        (0..5000).for_each(|_| op(own));
        barrier.wait();
        one.stop().unwrap();
        all.stop().unwrap();
        (all, one)
    };
    let sessions: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = ours.map(|own| scope.spawn(|| session(own))).into_iter().collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (own, (all, one)) in ours.iter().zip(&sessions) {
        assert_eq!(all.events().unwrap().count(), THREADS * 5000);
        assert!(names(one).iter().all(|name| name == own));
        assert_eq!(one.events().unwrap().count(), 5000);
    }
}

#[test]
fn ten_million_steps_are_counted() {
    let _alone = alone();
    const STEPS: u64 = 10_000_000;
    let schedule = Schedule::new(STEPS - 1, 0, 1).unwrap().repeat(1);
    let mut sparse = Profiler::builder().schedule(schedule).start().unwrap();
    let mut all = Profiler::builder().start().unwrap();
    for _ in 0..STEPS - 1 {
        sparse.step().unwrap();
        all.step().unwrap();
    }
    op("aten::last");
    sparse.stop().unwrap();
    all.stop().unwrap();
    let steps = |profiler: &Profiler| -> Vec<(String, u32)> {
        profiler.events().unwrap().map(|event| (event.name().to_owned(), event.step())).collect()
    };
    let last = ("aten::last".to_owned(), 9_999_999);
    assert_eq!(steps(&all), std::slice::from_ref(&last));
    assert_eq!(steps(&sparse), [("ProfilerStep#9999999".to_owned(), 9_999_999), last]);
}

#[test]
fn a_hundred_thousand_nested_scopes_are_averaged_and_exported() {
    let _alone = alone();
    const DEPTH: usize = 100_000;
    let path = directory("deep").join("trace.json");
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            let mut scopes: Vec<_> = (0..DEPTH).map(|i| record_function(["deep", "down"][i % 2])).collect();
            while let Some(scope) = scopes.pop() {
                drop(scope);
            }
        })
        .unwrap();
    let innermost = profiler.events().unwrap().last().unwrap();
    assert_eq!(std::iter::successors(Some(innermost), Event::parent).count(), DEPTH);
    assert_eq!(profiler.key_averages().unwrap().iter().map(|row| row.count).sum::<u64>(), DEPTH as u64);
    profiler.export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    let slices = trace["traceEvents"].as_array().unwrap().iter();
    assert_eq!(slices.filter(|event| event["cat"] == "user_annotation").count(), DEPTH);
}

#[test]
fn names_of_a_megabyte_and_of_any_letters_come_back() {
    let _alone = alone();
    let path = directory("huge").join("trace.json.gz");
    let every: String = (0..0x3000).chain(0x1_f300..0x1_f700).filter_map(char::from_u32).collect();
    let huge: Vec<String> =
        ["a", "ü", "🎉", "\"", "\0"].iter().map(|text| text.repeat((1 << 20) / text.len())).collect();
    let asked: Vec<&str> = huge.iter().map(String::as_str).chain([every.as_str(), "\u{2028}", ""]).collect();
    let body = |_: &mut Profiler| asked.iter().for_each(|name| record_function(name).run(|| op("aten::add")));
    let ((), profiler) = Profiler::builder().record_shapes(true).run(body).unwrap();
    profiler.export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    let scopes = trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["cat"] == "user_annotation");
    let exact = |event: &serde_json::Value| {
        event["args"].get("exact_name").unwrap_or(&event["name"]).as_str().unwrap().to_owned()
    };
    assert!(scopes.map(exact).eq(asked.iter().map(|name| name.to_string())));
}

#[test]
fn metadata_of_any_text_gives_a_file_that_parses() {
    let _alone = alone();
    let path = directory("metadata").join("trace.json");
    let values =
        ["{not json", "", "NaN", "1e999", "\"open", "[1,]", "nul\0", "\u{feff}{}", "{}}", "\"\\ud800\""];
    let deep = "[".repeat(100_000);
    let mut profiler = Profiler::builder().start().unwrap();
    let keyed: Vec<(String, &str)> =
        (0..).map(|i| format!("key \"{i}\"\n")).zip(values.into_iter().chain([deep.as_str()])).collect();
    for (key, value) in &keyed {
        profiler.add_metadata_json(key, value).unwrap();
    }
    profiler.stop().unwrap();
    profiler.export_chrome_trace(&path).unwrap();
    let trace = read(&path);
    for (key, value) in &keyed {
        assert_eq!(trace[key], **value);
    }
}
