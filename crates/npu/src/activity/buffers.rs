//! Memory that the tracing library writes records to: lent, filled, taken back.

use parking_lot::Mutex;
use std::collections::HashMap;

/// The library warns about less than 2 MiB.
const BYTES: usize = 4 << 20;

/// So many buffers are kept for the next request: fresh ones cost more than most sessions record.
const MOST_SPARE: usize = 4;

/// Records need eight-byte alignment, so memory is made of words.
type Words = Box<[u64]>;

/// A buffer that came back, and how many of its bytes are filled.
pub(super) struct Filled {
    words: Words,
    pub(super) valid: usize,
}

impl Filled {
    pub(super) fn start(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        let mut slot = LENDING.lock();
        let spare = &mut slot.get_or_insert_default().spare;
        if spare.len() < MOST_SPARE {
            spare.push(std::mem::take(&mut self.words));
        }
    }
}

#[derive(Default)]
struct Lending {
    /// Buffers that the library has, by address.
    lent: HashMap<usize, Words>,
    filled: Vec<Filled>,
    /// Buffers whose records were read.
    spare: Vec<Words>,
}

static LENDING: Mutex<Option<Lending>> = Mutex::new(None);

/// The library wants a buffer.
///
/// # Safety
/// The pointers are null or may be written.
pub(super) unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    if buffer.is_null() || size.is_null() || most.is_null() {
        return;
    }
    let mut slot = LENDING.lock();
    let lending = slot.get_or_insert_default();
    let mut words = lending.spare.pop().unwrap_or_else(|| vec![0; BYTES / 8].into());
    let start = words.as_mut_ptr();
    lending.lent.insert(start as usize, words);
    // SAFETY: not null, so the caller vouches for them.
    unsafe {
        buffer.write(start.cast());
        size.write(BYTES);
        most.write(0);
    }
}

/// The library gives a buffer back.
///
/// # Safety
/// None: an address that was not lent is ignored.
pub(super) unsafe extern "C" fn completed(buffer: *mut u8, _size: usize, valid: usize) {
    let mut slot = LENDING.lock();
    let lending = slot.get_or_insert_default();
    if let Some(words) = lending.lent.remove(&(buffer as usize)) {
        lending.filled.push(Filled { valid: valid.min(BYTES), words });
    }
}

/// The buffers that came back since the last time, in order.
pub(super) fn take() -> Vec<Filled> {
    LENDING.lock().as_mut().map_or_else(Vec::new, |lending| std::mem::take(&mut lending.filled))
}

/// Throws away what came back.
pub(super) fn discard() {
    take();
}
