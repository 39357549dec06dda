//! A number that many threads change and few read: each thread has a part of its own.
//!
//! Every tensor adds to it when it is made and when it goes: two locked instructions, if all threads
//! shared one counter, and small tensors would notice.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// What one thread has added, alone in its cache line. Only its thread writes to it.
#[derive(Default)]
#[repr(align(64))]
struct Part(AtomicI64);

/// All parts there ever were, and those whose thread has ended. They keep what they count, and
/// the next thread goes on from there.
struct Parts {
    all: Vec<&'static Part>,
    free: Vec<&'static Part>,
}

impl Parts {
    fn total(&self) -> u64 {
        let parts: i64 = self.all.iter().map(|Part(part)| part.load(Relaxed)).sum();
        u64::try_from(parts + REST.load(Relaxed)).unwrap_or(0)
    }
}

static PARTS: Mutex<Parts> = Mutex::new(Parts { all: Vec::new(), free: Vec::new() });
/// What is added while a thread ends, when it has no part any more.
static REST: AtomicI64 = AtomicI64::new(0);

struct Mine(&'static Part);

impl Mine {
    fn take() -> Mine {
        let mut parts = PARTS.lock();
        let free = parts.free.pop();
        Mine(free.unwrap_or_else(|| {
            let part: &'static Part = Box::leak(Box::default());
            parts.all.push(part);
            part
        }))
    }
}

impl Drop for Mine {
    fn drop(&mut self) {
        PARTS.lock().free.push(self.0);
    }
}

thread_local! {
    static MINE: Mine = Mine::take();
}

/// Adds to the number.
#[inline]
pub(crate) fn add(amount: i64) {
    let added = MINE.try_with(|Mine(Part(part))| part.store(part.load(Relaxed) + amount, Relaxed));
    if added.is_err() {
        REST.fetch_add(amount, Relaxed);
    }
}

/// Adds to the number and tells it: threads that all call this take turns, so that each sees what
/// those before it left.
pub(crate) fn add_and_total(amount: i64) -> u64 {
    // A thread's first call takes a part, under the same lock.
    add(0);
    let parts = PARTS.lock();
    add(amount);
    parts.total()
}

/// The number. What other threads do meanwhile may or may not be in it.
pub(crate) fn total() -> u64 {
    PARTS.lock().total()
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
        assert!(PARTS.lock().all.len() < 100);
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
