//! Shared ownership under loom: every order that threads and memory can take, tried out.
//!
//! `cargo test -p cresset-kernels --test model`

#![allow(dead_code, unreachable_pub, reason = "a part of a library, as a program of its own")]

#[path = "../src/shared.rs"]
mod shared;

/// What owners and watchers are counted by, as loom has it.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering, fence};
}

/// Memory that is spoiled when it is given back, and goes back to loom at the end: what is lost, given back twice
/// or counted in afterwards is noticed.
mod waiting {
    use std::alloc::Layout;
    use std::cell::RefCell;
    use std::ptr::NonNull;

    thread_local! {
        /// Loom runs the threads of a model on one.
        static SPOILED: RefCell<Vec<(NonNull<u8>, Layout)>> = const { RefCell::new(Vec::new()) };
    }

    pub(crate) fn take<T>() -> NonNull<T> {
        // SAFETY: there are counts in everything that is shared, so that the size is not zero.
        NonNull::new(unsafe { loom::alloc::alloc(Layout::new::<T>()) }.cast()).expect("a little memory")
    }

    pub(crate) unsafe fn give_back(memory: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's promise: it was taken so, and nobody uses it.
        unsafe { memory.as_ptr().write_bytes(0xA5, layout.size()) };
        SPOILED.with_borrow_mut(|spoiled| spoiled.push((memory, layout)));
    }

    /// Ends a run of the model.
    pub(crate) fn settle() {
        for (memory, layout) in SPOILED.take() {
            // SAFETY: it was taken so, and the run is over.
            unsafe { loom::alloc::dealloc(memory.as_ptr(), layout) };
        }
    }
}

/// Tries every order of what `run` does.
fn model(run: impl Fn() + Send + Sync + 'static) {
    loom::model(move || {
        run();
        waiting::settle();
    });
}

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use shared::Shared;

/// A value that loom sees read, changed and dropped, and that counts how often it is dropped.
struct Value(UnsafeCell<u64>, Arc<AtomicUsize>);

// SAFETY: the model shows whether a change ever meets a reader.
unsafe impl Send for Value {}
// SAFETY: as above.
unsafe impl Sync for Value {}

impl Value {
    fn new() -> (Shared<Value>, Arc<AtomicUsize>) {
        let drops = Arc::new(AtomicUsize::new(0));
        (Shared::new(Value(UnsafeCell::new(7), drops.clone())), drops)
    }

    fn look(&self) -> u64 {
        // SAFETY: loom fails the model where somebody writes meanwhile.
        self.0.with(|value| unsafe { *value })
    }

    fn change(&mut self, to: u64) {
        // SAFETY: loom fails the model where somebody looks meanwhile.
        self.0.with_mut(|value| unsafe { *value = to });
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.change(0);
        self.1.fetch_add(1, Relaxed);
    }
}

#[test]
fn the_last_of_owners_on_three_threads_drops_the_value_after_all_have_looked() {
    model(|| {
        let (shared, drops) = Value::new();
        let others = [shared.clone(), shared.clone()];
        let threads = others.map(|other| thread::spawn(move || assert_eq!(other.look(), 7)));
        assert_eq!(shared.look(), 7);
        drop(shared);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn a_value_is_changed_only_when_no_other_owner_looks() {
    model(|| {
        let (mut shared, drops) = Value::new();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            assert_eq!(other.look(), 7);
            drop(other.clone());
        });
        if let Some(value) = Shared::get_mut(&mut shared) {
            value.change(8);
        }
        thread.join().unwrap();
        Shared::get_mut(&mut shared).expect("the other owner is gone").change(9);
        assert_eq!(shared.look(), 9);
        drop(shared);
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn a_watcher_finds_a_whole_value_or_none() {
    model(|| {
        let (shared, drops) = Value::new();
        let watcher = Shared::watch(&shared);
        let thread = thread::spawn(move || {
            if let Some(owner) = watcher.owner() {
                assert_eq!(owner.look(), 7);
            }
        });
        drop(shared);
        thread.join().unwrap();
        assert_eq!(drops.load(Relaxed), 1);
    });
}

#[test]
fn a_watcher_that_another_owner_made_is_seen_by_the_last_one() {
    model(|| {
        let (mut shared, drops) = Value::new();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let watcher = Shared::watch(&other);
            drop(other);
            watcher.owner().map(|owner| owner.look())
        });
        if let Some(value) = Shared::get_mut(&mut shared) {
            value.change(8);
        }
        drop(shared);
        let found = thread.join().unwrap();
        assert!(found.is_none_or(|found| found == 7), "{found:?}");
        assert_eq!(drops.load(Relaxed), 1);
    });
}
