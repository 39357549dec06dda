//! Many threads record while sessions come and go: no event is lost, and none is there twice.

use crate::fake::{Op, alone};
use cresset_profiler::{Profiler, record_function};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

const THREADS: usize = 16;
const CALLS: u64 = 5000;

/// Call number `number` of thread `thread`; the trace shows both as FLOPs.
fn call(thread: usize, number: u64) {
    let op = Op::new("aten::add").flops(((thread as u64) << 32) | (number + 1));
    match number % 3 {
        0 => op.run(|| ()),
        1 => record_function("scope").run(|| op.run(|| ())),
        _ => op.run(|| Op::new("aten::inner").run(|| ())),
    }
}

/// The numbers that a session has of each thread, in the order they were made.
fn numbers(profiler: &Profiler) -> BTreeMap<usize, Vec<u64>> {
    let mut threads: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for event in profiler.events().unwrap().filter(|event| event.name() == "aten::add") {
        threads.entry((event.flops() >> 32) as usize).or_default().push(event.flops() & 0xffff_ffff);
    }
    threads
}

/// Sessions one after the other, as long as threads are at work; all of them must be without gaps.
fn come_and_go(working: &AtomicUsize, all_threads: bool) -> usize {
    let mut sessions = 0;
    while working.load(Relaxed) > 0 {
        let mut profiler = Profiler::builder().with_flops(true).all_threads(all_threads).start().unwrap();
        call(THREADS, 7);
        thread::yield_now();
        profiler.stop().unwrap();
        let found = numbers(&profiler);
        assert!(found[&THREADS].contains(&8), "a session lacks what its own thread did");
        for numbers in found.iter().filter(|(thread, _)| **thread < THREADS).map(|(_, numbers)| numbers) {
            assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
        }
        sessions += 1;
    }
    sessions
}

#[test]
fn sixteen_threads_lose_and_double_no_event_while_sessions_come_and_go() {
    let _alone = alone();
    let working = &AtomicUsize::new(THREADS);
    let mut outer = Profiler::builder().with_flops(true).start().unwrap();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                (0..CALLS).for_each(|number| call(thread, number));
                working.fetch_sub(1, Relaxed);
            });
        }
        let sessions: Vec<_> =
            [true, true, false, false].map(|all| scope.spawn(move || come_and_go(working, all))).into();
        let sessions: usize = sessions.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(sessions > 0);
    });
    outer.stop().unwrap();
    let found = numbers(&outer);
    for thread in 0..THREADS {
        assert!(found[&thread].iter().copied().eq(1..=CALLS), "thread {thread}");
    }
    let inner = outer.events().unwrap().filter(|event| event.name() == "aten::inner").count();
    assert!(inner >= THREADS * (CALLS as usize / 3));
}

#[test]
fn a_session_started_and_stopped_by_different_threads_is_complete() {
    let _alone = alone();
    let mut profiler =
        thread::spawn(|| Profiler::builder().with_flops(true).start().unwrap()).join().unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || (0..CALLS).for_each(|number| call(thread, number)));
        }
    });
    let profiler = thread::spawn(move || profiler.stop().map(|()| profiler)).join().unwrap().unwrap();
    assert!(numbers(&profiler).values().all(|numbers| numbers.iter().copied().eq(1..=CALLS)));
    assert_eq!(numbers(&profiler).len(), 4);
}
