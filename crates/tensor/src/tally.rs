//! A number that many threads change and few read: each thread has a part of its own.
//!
//! Every tensor adds to it when it is made and when it goes: two locked instructions, if all threads
//! shared one counter, and small tensors would notice. Who must know the total after each change
//! pays for one: such changes all go to one part, whose order is theirs.

use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// What one thread has added, alone in its cache line. Only its thread writes to it.
#[repr(align(64))]
struct Part {
    amount: AtomicI64,
    next: OnceLock<&'static Part>,
}

impl Part {
    const fn new() -> Part {
        Part { amount: AtomicI64::new(0), next: OnceLock::new() }
    }
}

/// The first of all parts there ever were: what is added by those who want to know the total, or
/// while a thread ends and has no part of its own any more.
static SHARED: Part = Part::new();
/// Parts whose thread has ended. They keep what they count, and the next thread goes on from there.
static FREE: Mutex<Vec<&'static Part>> = Mutex::new(Vec::new());

struct Mine(&'static Part);

impl Mine {
    fn take() -> Mine {
        let free = FREE.lock().pop();
        Mine(free.unwrap_or_else(|| {
            let part: &'static Part = Box::leak(Box::new(Part::new()));
            let mut last = &SHARED;
            // Somebody may append at the same moment: then ours comes after theirs.
            while let Err(part) = last.next.set(part) {
                last = last.next.get().copied().unwrap_or(part);
            }
            part
        }))
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        FREE.lock().push(self.0);
    }
}

thread_local! {
    static MINE: Mine = Mine::take();
}

/// Adds to the number.
#[inline]
pub(crate) fn add(amount: i64) {
    let added = MINE.try_with(|Mine(part)| part.amount.store(part.amount.load(Relaxed) + amount, Relaxed));
    if added.is_err() {
        SHARED.amount.fetch_add(amount, Relaxed);
    }
}

/// Adds to the number and tells it. Threads that all call this see totals one after the other.
pub(crate) fn add_and_total(amount: i64) -> u64 {
    let shared = SHARED.amount.fetch_add(amount, Relaxed) + amount;
    u64::try_from(shared + threads()).unwrap_or(0)
}

/// The number. What other threads do meanwhile may or may not be in it.
pub(crate) fn total() -> u64 {
    u64::try_from(SHARED.amount.load(Relaxed) + threads()).unwrap_or(0)
}

/// The sum over the parts of threads.
fn threads() -> i64 {
    let parts = std::iter::successors(SHARED.next.get(), |part| part.next.get());
    parts.map(|part| part.amount.load(Relaxed)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_threads_end_or_take_turns() {
        // More than other tests hold meanwhile.
        const MUCH: i64 = 1 << 50;
        let before = total() as i64;
        let on_a_thread = |amount| std::thread::spawn(move || add(amount)).join().unwrap();
        (0..100).for_each(|_| on_a_thread(MUCH));
        let after = total() as i64;
        assert_eq!((after - before + MUCH / 2) / MUCH, 100);
        assert!(std::iter::successors(SHARED.next.get(), |part| part.next.get()).count() < 100);
        (0..100).for_each(|_| on_a_thread(-MUCH));
        take_turns(MUCH);
    }

    /// Each total is that of some other thread, or one's own, and one more: none is seen twice.
    fn take_turns(much: i64) {
        let first = total() as i64 / much + 1;
        let seen = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let totals: Vec<i64> = (0..50).map(|_| add_and_total(much) as i64 / much).collect();
                    seen.lock().extend(totals);
                });
            }
        });
        let mut seen = seen.into_inner();
        seen.sort_unstable();
        assert_eq!(seen, (first..first + 200).collect::<Vec<_>>());
        add(-200 * much);
    }
}
