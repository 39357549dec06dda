//! Recording allocates nothing but a block now and then, and nothing at all when off.

use cresset_dispatch::Device;
use cresset_dispatch::observe::{self, Argument, Call, Name, TensorArgument};
use cresset_profiler::{Profiler, record_function};
use parking_lot::{Mutex, MutexGuard};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

/// The system's allocator, counted: requests per thread, bytes in all, because one thread
/// may free what another recorded.
struct Counted;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}
static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);

fn count(allocations: usize, bytes: isize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + allocations);
    LIVE_BYTES.fetch_add(bytes, Relaxed);
}

/// One test at a time: bytes are counted for the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock()
}

#[expect(unsafe_code, reason = "an allocator is unsafe by nature")]
// SAFETY: every request is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as isize);
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, -(layout.size() as isize));
        // SAFETY: the block came from `alloc` above, so from the system.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

struct Add;

impl Call for Add {
    fn name(&self) -> Name<'_> {
        Name::Static("aten::add")
    }

    fn device(&self) -> Option<Device> {
        Some(Device::CPU)
    }

    fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        let tensor = TensorArgument { shape: &[2, 2], strides: &[2, 1], dtype: "f32", source: None };
        visit(Argument::Tensor(tensor));
        visit(Argument::Tensor(tensor));
    }
}

fn calls(count: usize) {
    for _ in 0..count {
        let _scope = record_function("scope");
        let _span = observe::span(&Add);
    }
}

fn allocations(body: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    body();
    ALLOCATIONS.get() - before
}

#[test]
fn nothing_is_allocated_when_off() {
    let _alone = alone();
    assert_eq!(allocations(|| calls(10_000)), 0);
    let mut profiler = Profiler::builder().all_threads(false).start().unwrap();
    calls(10);
    profiler.stop().unwrap();
    assert_eq!(allocations(|| calls(10_000)), 0);
}

#[test]
fn recording_allocates_only_chunks() {
    let _alone = alone();
    let mut profiler = Profiler::builder().all_threads(false).record_shapes(true).start().unwrap();
    calls(1024);
    let allocated = allocations(|| calls(100_000));
    // 200 000 events fill up to 7 blocks: the slots, their arena, the block itself; now and then the
    // list of blocks grows. Some come from earlier sessions, and large ones not from the allocator.
    assert!((1..=7 * 3 + 3).contains(&allocated), "{allocated}");
    profiler.stop().unwrap();
}

/// By how many bytes the process and its allocations grow.
fn growth_over_200_sessions() -> [isize; 2] {
    let session = || {
        let mut profiler = Profiler::builder().all_threads(false).start().unwrap();
        calls(1024);
        profiler.stop().unwrap();
    };
    // A thread's blocks grow until they are as large as they get.
    (0..40).for_each(|_| session());
    let before = [resident(), LIVE_BYTES.load(Relaxed)];
    (0..200).for_each(|_| session());
    [resident() - before[0], LIVE_BYTES.load(Relaxed) - before[1]]
}

/// Bytes of memory the process has.
fn resident() -> isize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    4096 * pages.split(' ').nth(1).unwrap().parse::<isize>().unwrap()
}

#[test]
fn sessions_leave_nothing_behind() {
    let _alone = alone();
    let growth = growth_over_200_sessions();
    assert!(growth.iter().all(|&bytes| bytes < 1 << 18), "{growth:?} bytes");
}

#[test]
fn a_session_does_not_keep_what_it_cannot_see() {
    let _alone = alone();
    let (done, wait) = mpsc::channel::<()>();
    let (started, ready) = mpsc::channel();
    let elsewhere = thread::spawn(move || {
        let _profiler = Profiler::builder().all_threads(false).start().unwrap();
        started.send(()).unwrap();
        wait.recv().unwrap_err();
    });
    ready.recv().unwrap();
    let growth = growth_over_200_sessions();
    drop(done);
    elsewhere.join().unwrap();
    assert!(growth.iter().all(|&bytes| bytes < 1 << 18), "{growth:?} bytes");
}
