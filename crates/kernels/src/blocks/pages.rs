//! Memory straight from the system, cleared.
//!
//! Pages should be huge ones: the processor remembers where some thousand pages lie, and with pages of
//! 4 KiB a step over many tensors asks for more of them than that (AdamW over 100 parameters of 100 000
//! elements: 40 GB/s with small pages, 54 with huge ones). A large block is huge pages of its own;
//! smaller ones are cut from regions of huge pages, one behind the other. Miri, which knows no pages, gets them
//! from the heap as other systems do.

#[cfg(any(not(target_os = "linux"), miri))]
pub(super) use heap::{map, unmap};
#[cfg(all(target_os = "linux", not(miri)))]
pub(super) use system::{map, unmap};

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use parking_lot::Mutex;
    use std::collections::BTreeMap;
    use std::ptr::{NonNull, null_mut};

    /// From here on a block has a mapping of its own.
    const OWN: usize = 1 << 22;
    /// What is asked of the system for smaller blocks: addresses, which cost nothing until they are used.
    const REGION: usize = 1 << 26;

    static REGIONS: Mutex<Regions> = Mutex::new(Regions { rest: 0..0, vacant: BTreeMap::new() });

    /// Addresses that smaller blocks are cut from.
    struct Regions {
        /// What is left of the newest region.
        rest: std::ops::Range<usize>,
        /// Where blocks were whose memory went back, by their size.
        vacant: BTreeMap<usize, Vec<usize>>,
    }

    impl Regions {
        fn cut(&mut self, size: usize) -> Option<NonNull<u8>> {
            if let Some(start) = self.vacant.get_mut(&size).and_then(Vec::pop) {
                return NonNull::new(start as *mut u8);
            }
            if self.rest.len() < size {
                let start = new_mapping(REGION)?.as_ptr() as usize;
                self.rest = start..start + REGION;
            }
            let start = self.rest.start;
            self.rest.start += size;
            NonNull::new(start as *mut u8)
        }
    }

    pub(in super::super) fn map(size: usize) -> Option<NonNull<u8>> {
        if size >= OWN { new_mapping(size) } else { REGIONS.lock().cut(size) }
    }

    /// # Safety
    /// `start` came from `map` with the same size, and nobody uses it.
    pub(in super::super) unsafe fn unmap(start: NonNull<u8>, size: usize) {
        if size >= OWN {
            // SAFETY: the caller's promise.
            unsafe { libc::munmap(start.as_ptr().cast(), size) };
            return;
        }
        // SAFETY: the caller's promise; the pages are private, and will be cleared ones if used again.
        let refused = unsafe { libc::madvise(start.as_ptr().cast(), size, libc::MADV_DONTNEED) } != 0;
        if refused {
            // SAFETY: the caller's promise. Pages larger than the block stay, and are to be cleared.
            unsafe { start.as_ptr().write_bytes(0, size) };
        }
        REGIONS.lock().vacant.entry(size).or_default().push(start.as_ptr() as usize);
    }

    fn new_mapping(size: usize) -> Option<NonNull<u8>> {
        let (readable, private) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new pages, anywhere.
        let start = unsafe { libc::mmap(null_mut(), size, readable, private, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: advice on pages just mapped; that it is not taken does no harm.
        unsafe { libc::madvise(start, size, libc::MADV_HUGEPAGE) };
        NonNull::new(start.cast())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_piece_that_went_back_is_cut_again_and_clear() {
            // A size that no other test has.
            let size = 37 << 12;
            let piece = map(size).unwrap();
            // SAFETY: the piece is this test's alone until it goes back, and again afterwards.
            let again = unsafe {
                piece.as_ptr().write_bytes(7, size);
                unmap(piece, size);
                let again = map(size).unwrap();
                assert!(std::slice::from_raw_parts(again.as_ptr(), size).iter().all(|&byte| byte == 0));
                again
            };
            assert_eq!(again, piece);
        }

        #[test]
        fn pieces_lie_behind_each_other_and_do_not_overlap() {
            let mut pieces: Vec<usize> = (0..40).map(|_| map(1 << 21).unwrap().as_ptr() as usize).collect();
            pieces.sort_unstable();
            assert!(pieces.windows(2).all(|pair| pair[1] - pair[0] >= 1 << 21));
        }
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod heap {
    use crate::blocks::ALIGN;
    use std::alloc::{self, Layout as Allocation};
    use std::ptr::NonNull;

    fn allocation(size: usize) -> Option<Allocation> {
        Allocation::from_size_align(size, ALIGN).ok()
    }

    pub(in super::super) fn map(size: usize) -> Option<NonNull<u8>> {
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { alloc::alloc_zeroed(allocation(size)?) })
    }

    /// # Safety
    /// `start` came from `map` with the same size.
    pub(in super::super) unsafe fn unmap(start: NonNull<u8>, size: usize) {
        if let Some(allocation) = allocation(size) {
            // SAFETY: the caller's promise.
            unsafe { alloc::dealloc(start.as_ptr(), allocation) };
        }
    }
}
