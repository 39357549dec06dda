//! Every stack once, by number.
//!
//! Each thread remembers the stacks it has seen, so that all but the first of a kind are
//! found without a lock.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Default)]
struct Table {
    numbers: HashMap<Arc<[usize]>, u64>,
    stacks: HashMap<u64, Arc<[usize]>>,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);
/// Numbers are never used twice: one that was forgotten leads to nothing, not to another stack.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Counts how often the table was cleared.
static CLEARED: AtomicU64 = AtomicU64::new(0);

/// A thread that calls from more places than this begins anew.
const REMEMBERED: usize = 1 << 14;

#[derive(Default)]
struct Cache {
    cleared: u64,
    known: HashMap<u64, (u64, Arc<[usize]>), BuildHasherDefault<AsItIs>>,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

/// The number of this stack.
#[inline]
pub(super) fn number(frames: &[usize]) -> u64 {
    let hash = hash(frames);
    let found = CACHE.try_with(|cache| {
        let mut cache = cache.borrow_mut();
        if cache.cleared != CLEARED.load(Relaxed) || cache.known.len() > REMEMBERED {
            *cache = Cache { cleared: CLEARED.load(Relaxed), ..Cache::default() };
        }
        match cache.known.get(&hash) {
            Some((number, known)) if **known == *frames => *number,
            _ => {
                let (number, stack) = insert(frames);
                cache.known.insert(hash, (number, stack));
                number
            }
        }
    });
    // A thread that is being torn down remembers nothing.
    found.unwrap_or_else(|_| insert(frames).0)
}

#[cold]
fn insert(frames: &[usize]) -> (u64, Arc<[usize]>) {
    let mut table = TABLE.lock();
    let table = table.get_or_insert_with(Table::default);
    if let Some((stack, &number)) = table.numbers.get_key_value(frames) {
        return (number, stack.clone());
    }
    let (stack, number) = (Arc::from(frames), NEXT.fetch_add(1, Relaxed));
    table.numbers.insert(Arc::clone(&stack), number);
    table.stacks.insert(number, Arc::clone(&stack));
    (number, stack)
}

/// The stack with this number, if it was not forgotten.
pub(crate) fn get(number: u64) -> Option<Arc<[usize]>> {
    TABLE.lock().as_ref()?.stacks.get(&number).cloned()
}

static KEPT: AtomicU64 = AtomicU64::new(0);

/// Keeps all stacks, for one who will ask later.
#[derive(Debug)]
pub(crate) struct Kept(());

pub(crate) fn keep() -> Kept {
    KEPT.fetch_add(1, Relaxed);
    Kept(())
}

impl Drop for Kept {
    fn drop(&mut self) {
        KEPT.fetch_sub(1, Relaxed);
    }
}

/// Forgets all stacks: nobody wants any more.
pub(crate) fn clear() {
    if KEPT.load(Relaxed) > 0 {
        return;
    }
    if TABLE.lock().take().is_some() {
        CLEARED.fetch_add(1, Relaxed);
    }
}

/// Two sums side by side, because each step waits for the one before it.
#[inline]
fn hash(frames: &[usize]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, frame: usize| (sum.rotate_left(5) ^ frame as u64).wrapping_mul(FACTOR);
    let (pairs, rest) = frames.as_chunks::<2>();
    let (mut a, mut b) = (frames.len() as u64, FACTOR);
    for pair in pairs {
        (a, b) = (step(a, pair[0]), step(b, pair[1]));
    }
    rest.iter().fold(step(a, b as usize), |sum, &frame| step(sum, frame))
}

/// Hashes what is a hash already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_one_number_on_all_threads() {
        let frames = [0x1000, 0x2000, 0x3000];
        let here = number(&frames);
        assert_eq!(number(&frames), here);
        assert_eq!(std::thread::spawn(move || number(&frames)).join().unwrap(), here);
        assert_ne!(number(&frames[1..]), here);
        assert_eq!(get(here).as_deref(), Some(&frames[..]));
        assert_eq!(get(u64::MAX), None);
    }

    #[test]
    fn the_order_of_frames_matters_to_the_hash() {
        assert_ne!(hash(&[1, 2, 3]), hash(&[2, 1, 3]));
        assert_ne!(hash(&[1, 2]), hash(&[1, 2, 0]));
        assert_ne!(hash(&[]), hash(&[0]));
    }
}
