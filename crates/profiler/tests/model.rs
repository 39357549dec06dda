//! The slots of a chunk under loom: every order that threads and memory can take, tried out.
//!
//! `cargo test -p cresset-profiler --test model`

#![allow(dead_code, reason = "the model needs a part of them")]

#[path = "../src/slots.rs"]
mod slots;

/// What the slots share memory by, as loom has it.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize};

    pub(crate) type Region<T> = Vec<T>;
}

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, Ordering::Relaxed};
use loom::thread;
use slots::{Slot, Slots};

/// Two words, so that half of one could be seen.
type Value = [u64; 2];

fn value(number: u64) -> Value {
    [number, !number]
}

fn slots(capacity: usize) -> Slots<Value> {
    Slots::new((0..capacity).map(|_| Slot::default()).collect())
}

/// Pushes the numbers from `first` on, until all slots are filled.
fn fill(slots: &Slots<Value>, first: u64) {
    for at in 0..slots.capacity() {
        // SAFETY: one thread at a time calls this, and it begins with an empty list.
        assert!(unsafe { slots.push(at, value(first + at as u64)) });
    }
}

#[test]
fn readers_see_a_growing_prefix_of_whole_values() {
    loom::model(|| {
        let slots = Arc::new(slots(3));
        let shared = slots.clone();
        let filler = thread::spawn(move || {
            fill(&shared, 10);
            shared.end(1, 77);
            // SAFETY: still the only thread that pushes.
            assert!(!unsafe { shared.push(3, value(0)) });
        });
        let mut seen = 0;
        for _ in 0..2 {
            let found: Vec<_> = slots.iter().collect();
            assert!(found.len() >= seen);
            seen = found.len();
            for (at, (found, end)) in found.into_iter().enumerate() {
                assert_eq!(found, value(10 + at as u64));
                assert!(end == 0 || at == 1 && end == 77);
            }
        }
        filler.join().unwrap();
        let ends: Vec<u64> = slots.iter().map(|(_, end)| end).collect();
        assert_eq!(ends, [0, 77, 0]);
    });
}

#[test]
fn what_was_written_beside_a_slot_before_it_was_filled_is_seen_with_it() {
    loom::model(|| {
        let shared = Arc::new((slots(2), [AtomicU8::new(0), AtomicU8::new(0)]));
        let (slots, arena) = &*shared.clone();
        let filler = thread::spawn(move || {
            for (at, byte) in shared.1.iter().enumerate() {
                byte.store(5 + at as u8, Relaxed);
                // SAFETY: the one thread that pushes.
                unsafe { shared.0.push(at, value(at as u64)) };
            }
        });
        for ([at, _], _) in slots.iter() {
            assert_eq!(arena[at as usize].load(Relaxed), 5 + at as u8);
        }
        filler.join().unwrap();
    });
}

#[test]
fn slots_are_used_again_only_when_nobody_reads_them() {
    loom::model(|| {
        let mut slots = Arc::new(slots(2));
        fill(&slots, 10);
        let reader = slots.clone();
        let reader = thread::spawn(move || {
            let found: Vec<Value> = reader.iter().map(|(value, _)| value).collect();
            assert_eq!(found, [value(10), value(11)]);
        });
        if let Some(own) = Arc::get_mut(&mut slots) {
            own.clear();
            fill(own, 20);
        }
        reader.join().unwrap();
    });
}
