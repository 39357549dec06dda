//! Several sessions, several threads, and misuse.

use crate::fake::{alone, op};
use cresset_dispatch::observe::is_watched;
use cresset_profiler::{Activity, Error, Profiler, record_function};
use std::sync::mpsc;
use std::thread;

fn names(profiler: &Profiler) -> Vec<String> {
    profiler.events().unwrap().map(|event| event.name().to_owned()).collect()
}

#[test]
fn nested_sessions_are_each_complete() {
    let _alone = alone();
    let mut outer = Profiler::builder().start().unwrap();
    op("aten::one");
    let mut inner = Profiler::builder().record_shapes(true).start().unwrap();
    op("aten::two");
    inner.stop().unwrap();
    op("aten::three");
    outer.stop().unwrap();
    assert_eq!(names(&outer), ["aten::one", "aten::two", "aten::three"]);
    assert_eq!(names(&inner), ["aten::two"]);
    assert!(outer.events().unwrap().all(|event| event.inputs().is_none()));
    assert!(inner.events().unwrap().all(|event| event.inputs().is_some()));
    assert!(!is_watched());
}

#[test]
fn overlapping_sessions_are_each_complete() {
    let _alone = alone();
    let mut first = Profiler::builder().start().unwrap();
    op("aten::one");
    let mut second = Profiler::builder().start().unwrap();
    (0..3000).for_each(|_| op("aten::two"));
    first.stop().unwrap();
    op("aten::three");
    second.stop().unwrap();
    assert_eq!(first.events().unwrap().count(), 3001);
    assert_eq!(second.events().unwrap().count(), 3001);
    assert_eq!(names(&second).last().unwrap(), "aten::three");
}

#[test]
fn all_threads_are_recorded_exactly() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            thread::scope(|scope| {
                for i in 0..8 {
                    let body = || (0..10_000).for_each(|_| op("aten::add"));
                    thread::Builder::new().name(format!("worker {i}")).spawn_scoped(scope, body).unwrap();
                }
            });
        })
        .unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for event in profiler.events().unwrap() {
        *counts.entry(event.thread().name.clone().unwrap()).or_insert(0) += 1;
    }
    let expected: Vec<_> = (0..8).map(|i| (format!("worker {i}"), 10_000)).collect();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn one_thread_is_recorded_when_asked() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .all_threads(false)
        .run(|_| {
            op("aten::here");
            thread::spawn(|| op("aten::there")).join().unwrap();
        })
        .unwrap();
    assert_eq!(names(&profiler), ["aten::here"]);
}

#[test]
fn a_session_of_one_thread_and_one_of_all_do_not_disturb_each_other() {
    let _alone = alone();
    let mut all = Profiler::builder().start().unwrap();
    let mut one = Profiler::builder().all_threads(false).start().unwrap();
    thread::spawn(|| op("aten::there")).join().unwrap();
    op("aten::here");
    one.stop().unwrap();
    all.stop().unwrap();
    assert_eq!(names(&one), ["aten::here"]);
    assert_eq!(all.events().unwrap().count(), 2);
}

#[test]
fn a_scope_left_open_by_a_thread_that_ended_is_unfinished() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            thread::spawn(|| {
                std::mem::forget(record_function("leaked"));
                op("aten::add");
            })
            .join()
            .unwrap();
            op("aten::later");
        })
        .unwrap();
    let leaked = profiler.events().unwrap().find(|event| event.name() == "leaked").unwrap();
    let later = profiler.events().unwrap().find(|event| event.name() == "aten::later").unwrap();
    assert!(!leaked.is_finished());
    assert!(leaked.end() <= later.start());
    assert_eq!(leaked.children().count(), 1);
}

#[test]
fn a_call_that_outlives_its_session_ends_quietly() {
    let _alone = alone();
    let mut profiler = Profiler::builder().start().unwrap();
    let scopes: Vec<_> = (0..5000).map(|_| record_function("open")).collect();
    profiler.stop().unwrap();
    scopes.into_iter().rev().for_each(drop);
    let mut next = Profiler::builder().start().unwrap();
    op("aten::add");
    next.stop().unwrap();
    assert_eq!(names(&next), ["aten::add"]);
    assert_eq!(profiler.events().unwrap().count(), 5000);
}

#[test]
fn a_session_may_stop_on_another_thread() {
    let _alone = alone();
    let profiler = Profiler::builder().all_threads(false).start().unwrap();
    op("aten::add");
    let stop = move || {
        let mut profiler = profiler;
        profiler.stop().map(|()| profiler)
    };
    let profiler = thread::spawn(stop).join().unwrap().unwrap();
    assert_eq!(names(&profiler), ["aten::add"]);
}

#[test]
fn a_dropped_profiler_stops() {
    let _alone = alone();
    let profiler = Profiler::builder().profile_memory(true).start().unwrap();
    assert!(is_watched());
    drop(profiler);
    assert!(!is_watched());
}

#[test]
fn misuse_is_an_error_that_says_what() {
    let _alone = alone();
    let mut profiler = Profiler::builder().build().unwrap();
    let text = |error: Error| error.to_string();
    assert_eq!(text(profiler.step().unwrap_err()), "cannot step: the profiler is not running");
    assert_eq!(text(profiler.stop().unwrap_err()), "cannot stop: the profiler is not running");
    assert_eq!(text(profiler.key_averages().unwrap_err()), "cannot average events: nothing was recorded yet");
    assert_eq!(
        text(profiler.export_chrome_trace("x.json").unwrap_err()),
        "cannot export a trace: nothing was recorded yet"
    );
    profiler.start().unwrap();
    assert_eq!(text(profiler.start().unwrap_err()), "cannot start: the profiler is running already");
    op("aten::add");
    profiler.stop().unwrap();
    assert!(profiler.stop().is_err());
    assert_eq!(names(&profiler), ["aten::add"]);
    assert!(matches!(Profiler::builder().activities([]).build(), Err(Error::NoActivities)));
    let error = "gpu".parse::<Activity>().unwrap_err();
    assert_eq!(text(error), "unknown activity \"gpu\": known are cpu, device, npu");
}

#[test]
fn readers_may_look_while_threads_go_on() {
    let _alone = alone();
    let (stop, stopped) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        while let Err(mpsc::TryRecvError::Empty) = stopped.try_recv() {
            record_function("outer").run(|| op("aten::add"));
        }
    });
    for _ in 0..50 {
        let ((), profiler) = Profiler::builder().run(|_| thread::yield_now()).unwrap();
        for event in profiler.events().unwrap() {
            assert!(["outer", "aten::add"].contains(&event.name()));
            assert!(event.start() <= event.end());
        }
    }
    drop(stop);
    worker.join().unwrap();
}
