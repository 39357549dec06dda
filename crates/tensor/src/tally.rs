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

/// The number. What other threads do meanwhile may or may not be in it.
pub(crate) fn total() -> u64 {
    let parts: i64 = PARTS.lock().all.iter().map(|Part(part)| part.load(Relaxed)).sum();
    u64::try_from(parts + REST.load(Relaxed)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_threads_added_is_kept_and_their_parts_are_used_again() {
        // More than other tests hold meanwhile.
        const MUCH: i64 = 1 << 50;
        let before = total() as i64;
        let on_a_thread = |amount| std::thread::spawn(move || add(amount)).join().unwrap();
        (0..100).for_each(|_| on_a_thread(MUCH));
        let after = total() as i64;
        assert_eq!((after - before + MUCH / 2) / MUCH, 100);
        assert!(PARTS.lock().all.len() < 100);
        (0..100).for_each(|_| on_a_thread(-MUCH));
    }
}
