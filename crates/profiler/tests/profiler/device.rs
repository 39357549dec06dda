//! Device activities, joined to the calls that launched them.

use crate::fake::{NPU, Op, alone, launch_copy, launch_kernel, now, npu, op, plug_in};
use cresset_dispatch::activity::{Failure, Properties, Source, Work, register};
use cresset_profiler::{Activity, EventKind, Profiler, record_function};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

#[test]
fn profiler_npu_event_device_type() {
    let _alone = alone();
    plug_in();
    let ((), profiler) = Profiler::builder().run(|_| Op::new("aten::add").on(npu()).run(|| ())).unwrap();
    assert_eq!(profiler.events().unwrap().next().unwrap().device_type(), "NPU");
}

#[test]
fn a_kernel_is_joined_to_its_launch_and_its_call() {
    let _alone = alone();
    plug_in();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            record_function("scope").run(|| {
                Op::new("aten::add").on(npu()).run(|| launch_kernel("Add", 3000));
                Op::new("aten::copy_").on(npu()).run(|| launch_copy(1 << 20, 2000));
            });
        })
        .unwrap();
    let trace = profiler.trace().unwrap();
    let names: Vec<_> = trace.events().map(|event| (event.name(), event.kind(), event.depth())).collect();
    assert_eq!(
        names,
        [
            ("scope", EventKind::Scope, 0),
            ("aten::add", EventKind::Operator, 1),
            ("aclnnAdd", EventKind::Launch, 2),
            ("aten::copy_", EventKind::Operator, 1),
            ("aclrtMemcpyAsync", EventKind::Launch, 2),
        ]
    );
    let scope = trace.event(0).unwrap();
    assert_eq!((scope.device_time(), scope.self_device_time()), (5000, 0));
    assert_eq!(trace.event(1).unwrap().self_device_time(), 3000);
    assert_eq!(trace.event(1).unwrap().runtime_name(), Some("aclnnAdd"));
    let work: Vec<_> = trace
        .device_events()
        .map(|work| (work.name(), work.stream(), work.call().unwrap().name(), work.launch().unwrap().name()))
        .collect();
    assert_eq!(
        work,
        [
            ("Add", 1, "aten::add", "aclnnAdd"),
            ("Memcpy HtoD (Pageable -> Device)", 1, "aten::copy_", "aclrtMemcpyAsync")
        ]
    );
}

#[test]
fn device_time_counts_device_slices_only() {
    let _alone = alone();
    plug_in();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            (0..4).for_each(|_| {
                Op::new("aten::add").on(npu()).run(|| {
                    launch_kernel("Add", 3000);
                })
            })
        })
        .unwrap();
    let rows = profiler.key_averages().unwrap();
    let find = |key: &str, on_device| rows.iter().find(|r| r.key == key && r.on_device == on_device).unwrap();
    assert_eq!(find("aten::add", false).device_time_total, 12_000);
    assert_eq!(find("Add", true).self_device_time_total, 12_000);
    assert_eq!(find("Add", true).cpu_time_total, 0);
    assert_eq!(find("aclnnAdd", false).device_time_total, 0);
    assert_eq!(rows.self_device_time_total(), 12_000);
    let table = rows.table().to_string();
    for column in ["Self NPU ", "Self NPU %", "NPU total", "NPU time avg", "Self NPU time total: 12.000us"] {
        assert!(table.contains(column), "{table}");
    }
}

#[test]
fn sessions_share_the_device() {
    let _alone = alone();
    plug_in();
    let mut outer = Profiler::builder().start().unwrap();
    Op::new("aten::one").run(|| launch_kernel("One", 10));
    let mut inner = Profiler::builder().start().unwrap();
    Op::new("aten::two").run(|| launch_kernel("Two", 10));
    inner.stop().unwrap();
    assert!(NPU.running.load(Relaxed));
    Op::new("aten::three").run(|| launch_kernel("Three", 10));
    outer.stop().unwrap();
    assert!(!NPU.running.load(Relaxed));
    let kernels = |profiler: &Profiler| {
        profiler.trace().unwrap().device_events().map(|work| work.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kernels(&outer), ["One", "Two", "Three"]);
    assert_eq!(kernels(&inner), ["Two"]);
}

#[test]
fn a_device_that_fails_is_an_error_and_the_host_is_kept() {
    let _alone = alone();
    plug_in();
    let mut profiler = Profiler::builder().start().unwrap();
    op("aten::add");
    NPU.fails_to_drain.store(true, Relaxed);
    let error = profiler.stop().unwrap_err();
    NPU.fails_to_drain.store(false, Relaxed);
    assert_eq!(error.to_string(), "cannot drain device activities: device lost");
    assert_eq!(profiler.events().unwrap().count(), 1);

    NPU.fails_to_start.store(true, Relaxed);
    let mut profiler = Profiler::builder().build().unwrap();
    let error = profiler.start().unwrap_err();
    NPU.fails_to_start.store(false, Relaxed);
    assert_eq!(error.to_string(), "cannot start device activities: profiling is switched off in the driver");
    op("aten::add");
    profiler.stop().unwrap();
    assert_eq!(profiler.events().unwrap().count(), 1);
}

#[test]
fn only_what_was_asked_for_is_watched() {
    let _alone = alone();
    plug_in();
    let run = |activities: &[Activity]| {
        let builder = Profiler::builder().activities(activities.iter().copied());
        let work = |_: &mut Profiler| {
            Op::new("aten::add").on(npu()).run(|| {
                launch_kernel("Add", 10);
            })
        };
        let ((), profiler) = builder.run(work).unwrap();
        let names = profiler.events().unwrap().map(|event| event.name().to_owned()).collect::<Vec<_>>();
        (names.join(" "), profiler.trace().unwrap().device_events().len())
    };
    assert_eq!(run(&[Activity::Cpu]), ("aten::add".to_owned(), 0));
    assert_eq!(run(&[Activity::Device]), ("aclnnAdd".to_owned(), 1));
    assert_eq!(run(&[Activity::Cpu, Activity::Device]), ("aten::add aclnnAdd".to_owned(), 1));
}

/// A device that is made ready while a session runs; silent unless it is told to speak.
struct Late {
    speaks: AtomicBool,
    /// When it was started; 0 if it was not.
    started: AtomicU64,
}

static LATE: Late = Late { speaks: AtomicBool::new(true), started: AtomicU64::new(0) };

impl Source for Late {
    fn start(&self) -> Result<(), Failure> {
        self.started.store(now(), Relaxed);
        Ok(())
    }

    fn drain(&self, sink: &mut dyn FnMut(cresset_dispatch::activity::Activity)) -> Result<(), Failure> {
        if self.speaks.swap(false, Relaxed) {
            let (name, start) = ("LateKernel".to_owned(), self.started.load(Relaxed));
            sink(cresset_dispatch::activity::Activity {
                work: Work::Kernel,
                name,
                unit: String::new(),
                device: npu(),
                lane: 9,
                start,
                end: start + 40,
                correlation: 1 << 40,
                call: 0,
                bytes: 0,
            });
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn devices(&self, _visit: &mut dyn FnMut(Properties)) {}
}

#[test]
fn a_device_that_is_made_ready_during_a_session_is_seen_by_it() {
    let _alone = alone();
    let ((), profiler) = Profiler::builder()
        .run(|_| {
            assert!(register(&LATE));
            assert_ne!(LATE.started.load(Relaxed), 0, "a session is open");
            op("aten::add");
        })
        .unwrap();
    let work: Vec<_> = profiler.trace().unwrap().device_events().map(|work| work.name().to_owned()).collect();
    assert_eq!(work, ["LateKernel"]);
}
