//! Small numbers for threads, so that a call made on one can be named on another.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// This thread's number, 1 for the first thread that asked.
#[inline]
pub fn number() -> u32 {
    match NUMBER.get() {
        0 => first_number(),
        number => number,
    }
}

#[cold]
fn first_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NUMBER.set(NEXT.fetch_add(1, Relaxed));
    NUMBER.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_keeps_its_own_number() {
        let here = number();
        assert_eq!(number(), here);
        let there = std::thread::spawn(number).join().expect("the thread only counts");
        assert_ne!(there, here);
    }
}
