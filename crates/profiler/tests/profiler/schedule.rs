//! Schedules, steps and saves.

use crate::fake::{alone, op};
use cresset_profiler::{Action, EventKind, Profiler, Schedule, record_function};
use parking_lot::Mutex;
use std::sync::Arc;

fn train(profiler: &mut Profiler, steps: usize) {
    for _ in 0..steps {
        op("aten::add");
        profiler.step().unwrap();
    }
}

#[test]
fn only_the_scheduled_steps_are_recorded() {
    let _alone = alone();
    let schedule = Schedule::new(1, 1, 1).unwrap().repeat(1);
    let mut profiler = Profiler::builder().schedule(schedule).start().unwrap();
    train(&mut profiler, 3);
    assert_eq!((profiler.step_num(), profiler.current_action()), (3, Action::None));
    profiler.stop().unwrap();
    let events: Vec<_> =
        profiler.events().unwrap().map(|event| (event.name().to_owned(), event.step())).collect();
    assert_eq!(events, [("ProfilerStep#2".to_owned(), 2), ("aten::add".to_owned(), 2)]);
}

#[test]
fn each_save_is_handed_over_once() {
    let _alone = alone();
    let saves = Arc::new(Mutex::new(Vec::new()));
    let seen = saves.clone();
    let mut profiler = Profiler::builder()
        .schedule(Schedule::new(0, 1, 2).unwrap())
        .on_trace_ready(move |profiler| -> Result<(), String> {
            let names: Vec<_> = profiler.events().unwrap().map(|event| event.name().to_owned()).collect();
            seen.lock().push((profiler.step_num(), names.join(" ")));
            Ok(())
        })
        .start()
        .unwrap();
    train(&mut profiler, 7);
    assert_eq!(profiler.current_action(), Action::Record);
    op("aten::last");
    profiler.stop().unwrap();
    let both = |a, b| format!("ProfilerStep#{a} aten::add ProfilerStep#{b} aten::add");
    let last = "ProfilerStep#7 aten::last".to_owned();
    assert_eq!(*saves.lock(), [(3, both(1, 2)), (6, both(4, 5)), (7, last)]);
}

#[test]
fn an_error_of_the_handler_reaches_the_caller() {
    let _alone = alone();
    let mut profiler = Profiler::builder().on_trace_ready(|_| Err("disk is on fire")).start().unwrap();
    let error = profiler.stop().unwrap_err();
    assert_eq!(error.to_string(), "on_trace_ready failed: disk is on fire");
    assert!(profiler.trace().is_ok());
}

#[test]
fn cycles_accumulate_only_when_asked() {
    let _alone = alone();
    for (keep, expected) in [(false, 2), (true, 6)] {
        let schedule = Schedule::new(0, 0, 1).unwrap().repeat(3);
        let mut profiler = Profiler::builder().schedule(schedule).acc_events(keep).start().unwrap();
        train(&mut profiler, 4);
        profiler.stop().unwrap();
        assert_eq!(profiler.events().unwrap().count(), expected);
        let count: u64 = profiler.key_averages().unwrap().iter().map(|row| row.count).sum();
        assert_eq!(count, expected as u64);
    }
}

#[test]
fn without_a_schedule_there_are_no_step_scopes() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder().run(|profiler| train(profiler, 2)).unwrap();
    assert!(profiler.events().unwrap().all(|event| event.kind() == EventKind::Operator));
}

#[test]
fn steps_enclose_what_happens_in_them() {
    let _alone = alone();
    let mut profiler = Profiler::builder().schedule(Schedule::new(0, 0, 2).unwrap()).start().unwrap();
    train(&mut profiler, 2);
    let events: Vec<_> = profiler.events().unwrap().collect();
    assert_eq!(events[1].parent().unwrap().name(), "ProfilerStep#0");
    assert_eq!(events[3].parent().unwrap().name(), "ProfilerStep#1");
    assert!(events[0].end() <= events[2].start());
}

#[test]
fn a_scope_across_steps_puts_them_on_their_own_track() {
    let _alone = alone();
    let mut profiler = Profiler::builder().schedule(Schedule::new(0, 0, 2).unwrap()).start().unwrap();
    op("aten::first");
    let epoch = record_function("epoch");
    train(&mut profiler, 1);
    drop(epoch);
    train(&mut profiler, 1);
    let steps: Vec<_> = profiler.events().unwrap().filter(|event| event.kind() == EventKind::Step).collect();
    assert_eq!(steps.len(), 2);
    assert!(steps.iter().all(|step| step.thread().name.as_deref() == Some("steps")));
    let epoch = profiler.events().unwrap().find(|event| event.name() == "epoch").unwrap();
    assert!(epoch.end() > steps[1].start() && epoch.parent().is_none());
}

#[test]
fn odd_schedules_do_what_torch_does() {
    let _alone = alone();
    let saves = Arc::new(Mutex::new(0));
    let seen = saves.clone();
    let actions = [Action::Warmup, Action::None, Action::Record, Action::None, Action::RecordAndSave];
    let mut profiler = Profiler::builder()
        .schedule(Schedule::custom(move |step| actions[step as usize % actions.len()]))
        .on_trace_ready(move |_| -> Result<(), String> {
            *seen.lock() += 1;
            Ok(())
        })
        .start()
        .unwrap();
    train(&mut profiler, 5);
    profiler.stop().unwrap();
    assert_eq!(*saves.lock(), 1);
}

#[test]
fn a_trace_can_be_named() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder().custom_trace_id(|| "run 7".to_owned()).run(|_| ()).unwrap();
    assert_eq!(profiler.trace().unwrap().trace_id(), "run 7");
    let ((), profiler) = Profiler::builder().run(|_| ()).unwrap();
    let id = profiler.trace_id().unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
}

#[test]
fn thirty_schedules_give_every_step_the_action_that_torch_gives_it() {
    let recorded = include_str!("schedules.txt").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in recorded {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        let schedule = Schedule::new(number(0), number(1), number(2)).unwrap();
        let schedule = schedule.repeat(number(3)).skip_first(number(4)).skip_first_wait(number(5) == 1);
        let letter = |step| match schedule.action(step) {
            Action::None => 'N',
            Action::Warmup => 'W',
            Action::Record => 'R',
            Action::RecordAndSave => 'S',
        };
        assert_eq!((0..24).map(letter).collect::<String>(), words[6], "{line}");
        count += 1;
    }
    assert_eq!(count, 30);
}
