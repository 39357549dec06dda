//! Memory reports.

use crate::fake::{Allocator, Op, alone, npu, op};
use cresset_dispatch::{Device, memory};
use cresset_profiler::{MemoryEvent, Profiler, Schedule};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::thread;

#[test]
fn profile_memory_disabled_has_no_npu_memory_fields() {
    let _alone = alone();
    let allocator = Allocator::new(npu());
    let ((), profiler) =
        Profiler::builder().run(|_| Op::new("aten::add").on(npu()).run(|| allocator.report(64, 8))).unwrap();
    let trace = profiler.trace().unwrap();
    assert!(trace.memory_events().is_empty());
    assert!(trace.events().all(|event| event.memory().is_none()));
}

#[test]
fn profile_memory_adds_npu_memory_fields() {
    let _alone = alone();
    let allocator = Allocator::new(npu());
    let ((), profiler) = Profiler::builder()
        .profile_memory(true)
        .run(|_| {
            Op::new("aten::add").on(npu()).run(|| allocator.report(64, 512));
            Op::new("aten::mul").on(npu()).run(|| {
                allocator.report(128, 256);
                allocator.report(64, -512);
            });
            Op::new("aten::view").on(npu()).run(|| ());
        })
        .unwrap();
    let used: Vec<_> = profiler
        .events()
        .unwrap()
        .map(|event| event.memory().map(|used| (used.before, used.after, used.delta())).unwrap())
        .collect();
    assert_eq!(used, [(1000, 1512, 512), (1512, 1256, -256), (1256, 1256, 0)]);
    let rows = profiler.key_averages().unwrap();
    let device: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.device_memory_usage)).collect();
    assert_eq!(device, [("aten::add", 512), ("aten::mul", -256), ("aten::view", 0)]);
}

#[test]
fn memory_belongs_to_the_call_of_its_own_thread() {
    let _alone = alone();
    let allocator = Allocator::new(Device::CPU);
    let ((), profiler) = Profiler::builder()
        .profile_memory(true)
        .run(|_| {
            Op::new("aten::outer").run(|| {
                Op::new("aten::inner").run(|| allocator.report(64, 4));
                thread::scope(|scope| {
                    scope.spawn(|| Op::new("aten::elsewhere").run(|| allocator.report(128, 16)));
                });
            });
            allocator.report(256, 1);
        })
        .unwrap();
    let rows = profiler.key_averages().unwrap();
    let usage: Vec<_> =
        rows.iter().map(|row| (row.key.as_str(), row.cpu_memory_usage, row.self_cpu_memory_usage)).collect();
    assert_eq!(
        usage,
        [("aten::outer", 4, 0), ("aten::inner", 4, 4), ("aten::elsewhere", 16, 16), ("[memory]", 1, 1)]
    );
}

#[test]
fn memory_is_heard_only_in_recorded_steps() {
    let _alone = alone();
    let allocator = Allocator::new(Device::CPU);
    let schedule = Schedule::new(1, 1, 1).unwrap().repeat(1);
    let mut profiler = Profiler::builder().schedule(schedule).profile_memory(true).start().unwrap();
    for step in 1..=4 {
        op("aten::add");
        allocator.report(step, step as i64);
        profiler.step().unwrap();
    }
    profiler.stop().unwrap();
    let bytes: Vec<_> = profiler.trace().unwrap().memory_events().iter().map(|e| e.report.bytes).collect();
    assert_eq!(bytes, [3]);
}

/// Reports of four threads, made by `report(address, bytes)`.
fn raced(report: impl Fn(usize, i64) + Sync) -> Profiler {
    let work = |thread: usize| {
        for i in 0..20_000 {
            report(thread << 32 | i, (thread << 20 | i) as i64);
            report(thread << 32 | i, -((thread << 20 | i) as i64));
        }
    };
    let body = |_: &mut Profiler| {
        thread::scope(|scope| (1..=4).for_each(|thread| drop(scope.spawn(move || work(thread)))));
    };
    let ((), profiler) = Profiler::builder().profile_memory(true).run(body).unwrap();
    profiler
}

#[test]
fn running_totals_are_exact_for_an_allocator_with_a_lock() {
    let _alone = alone();
    let allocator = Allocator::new(Device::CPU);
    let profiler = raced(|address, bytes| allocator.report(address, bytes));
    let events = profiler.trace().unwrap().memory_events();
    assert_eq!(events.len(), 4 * 40_000);
    let goes_on = |pair: &[MemoryEvent]| {
        pair[0].report.allocated.checked_add_signed(pair[1].report.bytes) == Some(pair[1].report.allocated)
    };
    assert!(events.windows(2).all(goes_on));
}

/// Without a lock, the order of two threads' reports cannot always be told from the totals.
/// What is certain: none is lost, time goes forward, and each thread's are in order.
#[test]
fn reports_of_an_allocator_without_a_lock_are_all_there() {
    let _alone = alone();
    let total = AtomicI64::new(1 << 40);
    let profiler = raced(|address, bytes| {
        let allocated = (total.fetch_add(bytes, Relaxed) + bytes) as u64;
        memory::report(|| memory::Report { device: Device::CPU, address, bytes, allocated, reserved: 0 });
    });
    let events = profiler.trace().unwrap().memory_events();
    assert_eq!(events.len(), 4 * 40_000);
    assert!(events.is_sorted_by_key(|event| event.time));
    for thread in 1..=4 {
        let own: Vec<_> =
            events.iter().filter(|e| e.report.address >> 32 == thread).map(|e| e.report).collect();
        assert_eq!(own.len(), 40_000);
        assert!(
            own.chunks(2).all(|pair| pair[0].bytes == -pair[1].bytes && pair[0].address == pair[1].address)
        );
    }
    // How many the search could not place, for those who want to know.
    let jumps = events
        .windows(2)
        .filter(|pair| {
            pair[0].report.allocated as i64 + pair[1].report.bytes != pair[1].report.allocated as i64
        })
        .count();
    println!("{jumps} of {} reports do not go on from the one before", events.len());
}
