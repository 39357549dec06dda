//! Device activities carry the number of the call that launched them.

use crate::library::{shared_library, toolkit};
use crate::support::{alone, npu, numbers};
use cresset_dispatch::activity::{Activity, Direction, Source, Work, sources};
use cresset_dispatch::observe::{Call, Observer, Slot};
use cresset_npu::{Library, info, init};
use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex};

/// The names of calls by their number.
struct Names(Mutex<BTreeMap<u64, String>>);

impl Observer for Names {
    fn enter(&self, id: u64, call: &dyn Call) -> u64 {
        self.0.lock().unwrap().insert(id, call.name().as_str().to_owned());
        0
    }

    fn exit(&self, _: u64, _: bool) {}
}

static NAMES: Names = Names(Mutex::new(BTreeMap::new()));

fn source() -> &'static dyn Source {
    sources().next().expect("init registers the devices")
}

fn drained() -> Vec<Activity> {
    let mut activities = Vec::new();
    source().drain(&mut |activity| activities.push(activity)).unwrap();
    activities
}

fn name_of(call: u64) -> String {
    NAMES.0.lock().unwrap().get(&call).cloned().unwrap_or_default()
}

#[test]
fn kernels_carry_the_call_that_launched_them() {
    alone("activity::kernels_carry_the_call_that_launched_them", &[], || {
        let npu = npu();
        let slot = Slot::claim(&NAMES).expect("a slot is free");
        let host = numbers(&[8, 8], 1);
        source().start().unwrap();
        assert!(source().start().is_err(), "it was started before");
        slot.set_active(true);
        let x = host.to(npu).unwrap();
        x.mm(&x).unwrap().add(&x).unwrap().exp().unwrap().to_vec::<f32>().unwrap();
        slot.set_active(false);
        let activities = drained();
        let of = |work: Work| activities.iter().filter(move |activity| activity.work == work);
        let kernels: Vec<(String, String)> =
            of(Work::Kernel).map(|kernel| (kernel.name.clone(), name_of(kernel.call))).collect();
        let pair = |kernel: &str, call: &str| (kernel.to_owned(), call.to_owned());
        assert_eq!(
            kernels,
            [pair("MatMulV2", "aten::mm"), pair("Add", "aten::add"), pair("Exp", "aten::exp")]
        );
        for kernel in of(Work::Kernel) {
            let launch = of(Work::Launch).find(|launch| launch.correlation == kernel.correlation);
            let launch = launch.expect("every kernel was launched");
            assert_eq!((launch.call, launch.device), (kernel.call, npu));
            assert!(launch.name.starts_with("aclnn") && launch.lane > 0, "{launch:?}");
            assert!(kernel.unit.starts_with("KERNEL_") && kernel.start <= kernel.end, "{kernel:?}");
        }
        let copies: Vec<_> = activities.iter().filter(|a| matches!(a.work, Work::Copy { .. })).collect();
        let directions = [Direction::HostToDevice, Direction::DeviceToHost];
        assert_eq!(copies.len(), directions.len());
        for (copy, direction) in copies.iter().zip(directions) {
            assert_eq!((copy.work, copy.bytes), (Work::Copy { direction }, 256));
        }
        assert_eq!(name_of(copies[0].call), "aten::copy_");
        assert!(drained().is_empty(), "each is handed over once");
        source().stop().unwrap();
        x.add(1).unwrap();
        source().start().unwrap();
        assert!(drained().is_empty(), "nothing was collected meanwhile");
        source().stop().unwrap();
        let mut devices = Vec::new();
        source().devices(&mut |device| devices.push(device));
        assert_eq!(devices.len(), 1);
        assert!(devices[0].name.contains("simulated") && devices[0].memory > 0, "{devices:?}");
    });
}

#[test]
fn polls_and_a_drain_together_tell_everything_once() {
    alone("activity::polls_and_a_drain_together_tell_everything_once", &[], || {
        const LAUNCHES: usize = 500;
        let slot = Slot::claim(&NAMES).expect("a slot is free");
        let x = numbers(&[16], 1).to(npu()).unwrap();
        source().start().unwrap();
        slot.set_active(true);
        let mut activities = Vec::new();
        for launch in 0..LAUNCHES {
            x.exp().unwrap();
            if launch % 50 == 0 {
                source().poll(&mut |activity| activities.push(activity)).unwrap();
            }
        }
        slot.set_active(false);
        let began = std::time::Instant::now();
        while activities.is_empty() && began.elapsed().as_secs() < 60 {
            source().poll(&mut |activity| activities.push(activity)).unwrap();
        }
        assert!(!activities.is_empty(), "nothing was told before the end");
        activities.extend(drained());
        source().stop().unwrap();
        let of = |work: Work| activities.iter().filter(move |activity| activity.work == work);
        let launches: BTreeMap<u64, &Activity> =
            of(Work::Launch).map(|launch| (launch.correlation, launch)).collect();
        assert_eq!((of(Work::Launch).count(), launches.len()), (LAUNCHES, LAUNCHES));
        assert_eq!(of(Work::Kernel).count(), LAUNCHES);
        for kernel in of(Work::Kernel) {
            assert_eq!(launches[&kernel.correlation].call, kernel.call);
            assert_eq!(name_of(kernel.call), "aten::exp");
        }
    });
}

/// How many copies are recorded of one, with the simulator as a shared library.
fn copies_of_shared_library() -> usize {
    init(Library::at(shared_library())).unwrap();
    source().start().unwrap();
    numbers(&[4], 1).to(cresset_npu::device(0)).unwrap();
    let copies = drained().iter().filter(|activity| matches!(activity.work, Work::Copy { .. })).count();
    source().stop().unwrap();
    copies
}

#[test]
fn copies_are_not_seen_unless_the_tracing_library_is_preloaded() {
    alone("activity::copies_are_not_seen_unless_the_tracing_library_is_preloaded", &[], || {
        assert_eq!(copies_of_shared_library(), 0);
        let untraced = info().unwrap().untraced;
        assert_eq!(untraced[0], "copies: start the program with LD_PRELOAD=libmspti.so");
    });
}

#[test]
fn a_preloaded_tracing_library_is_searched_first() {
    let home = toolkit("preload");
    let library = home.join("lib64/libmspti.so");
    let variables = [("LD_PRELOAD", library.to_str().expect("plain text"))];
    alone("activity::a_preloaded_tracing_library_is_searched_first", &variables, || {
        assert_eq!(copies_of_shared_library(), 1);
        let info = info().unwrap();
        assert!(info.library.starts_with("this process, ") && info.untraced.is_empty(), "{info}");
    });
    std::fs::remove_dir_all(home).expect("it was made above");
}

#[test]
fn threads_do_not_mix_up_their_calls() {
    alone("activity::threads_do_not_mix_up_their_calls", &[], || {
        const LAUNCHES: usize = 5000;
        let npu = npu();
        let slot = Slot::claim(&NAMES).expect("a slot is free");
        let x = numbers(&[16], 1).to(npu).unwrap();
        source().start().unwrap();
        slot.set_active(true);
        let both = Barrier::new(2);
        let many = |launch: &dyn Fn()| {
            both.wait();
            (0..LAUNCHES).for_each(|_| launch());
        };
        std::thread::scope(|scope| {
            scope.spawn(|| many(&|| drop(x.exp().unwrap())));
            scope.spawn(|| many(&|| drop(x.neg().unwrap())));
        });
        slot.set_active(false);
        let kernels: Vec<Activity> = drained().into_iter().filter(|a| a.work == Work::Kernel).collect();
        assert_eq!(kernels.len(), 2 * LAUNCHES);
        for kernel in kernels {
            let expected = if kernel.name == "Exp" { "aten::exp" } else { "aten::neg" };
            assert_eq!(name_of(kernel.call), expected);
        }
        source().stop().unwrap();
    });
}

#[test]
fn without_the_tracing_library_events_tell_the_times() {
    alone("activity::without_the_tracing_library_events_tell_the_times", &[], || {
        init(Library::embedded("untraced", |name| match name.starts_with("mspti") {
            true => None,
            false => cresset_npu_sim::symbol(name),
        }))
        .unwrap();
        let npu = cresset_npu::device(0);
        assert!(info().unwrap().untraced[0].starts_with("names of kernels"));
        let slot = Slot::claim(&NAMES).expect("a slot is free");
        slot.set_active(true);
        source().start().unwrap();
        let x = numbers(&[64, 64], 1).to(npu).unwrap();
        x.mm(&x).unwrap().exp().unwrap().to_vec::<f32>().unwrap();
        slot.set_active(false);
        let activities = drained();
        let works: Vec<(&str, String)> = activities
            .iter()
            .filter(|activity| activity.work != Work::Launch)
            .map(|activity| (activity.name.as_str(), name_of(activity.call)))
            .collect();
        let pair = |name, call: &str| (name, call.to_owned());
        assert_eq!(
            works[..3],
            [pair("Memcpy", "aten::copy_"), pair("Mm", "aten::mm"), pair("Exp", "aten::exp")]
        );
        assert_eq!(works.len(), 4, "{works:?}");
        for work in activities.iter().filter(|activity| activity.work != Work::Launch) {
            let launch = activities
                .iter()
                .find(|launch| launch.work == Work::Launch && launch.correlation == work.correlation);
            let launch = launch.expect("every piece of work was launched");
            assert!(launch.start <= work.start && work.start <= work.end, "{launch:?} {work:?}");
            assert_eq!(launch.call, work.call);
        }
        let ends: Vec<u64> = activities.iter().filter(|a| a.work != Work::Launch).map(|a| a.end).collect();
        assert!(ends.is_sorted(), "a stream works in order");
        source().stop().unwrap();
        x.add(1).unwrap();
        source().start().unwrap();
        assert!(drained().is_empty());
        source().stop().unwrap();
    });
}
