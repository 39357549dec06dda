//! Shared memory of a group: counters by which ranks wait for each other, and room for their data.
//!
//! The memory has a name until all ranks have it, then only they know it, so that nothing is left behind by a
//! process that is killed. All zeros is the state before anybody came.

#![expect(unsafe_code, reason = "maps memory that other processes share")]

use super::Id;
use crate::error::{Result, fail};
use cresset_acl::collective::result;
use std::ffi::CString;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The most ranks of a group.
pub(super) const MOST_RANKS: usize = 64;
/// Bytes that each rank can lay out for all others at once.
pub(super) const SLOT: usize = 1 << 20;
/// Bytes that one rank can have on the way to another.
pub(super) const MAIL: usize = 1 << 16;

/// What all ranks see.
#[repr(C)]
pub(super) struct Head {
    /// How many ranks have come.
    pub(super) joined: AtomicU32,
    /// One more than the number of a rank that gave up; 0 if none did.
    pub(super) failed: AtomicU32,
    pub(super) ranks: [RankState; MOST_RANKS],
}

/// One rank, as the others see it.
#[repr(C)]
pub(super) struct RankState {
    /// Its process; 0 before it came.
    pub(super) process: AtomicU32,
    /// Whether it left.
    pub(super) left: AtomicU32,
    /// How many meetings it has come to.
    pub(super) step: AtomicU64,
}

/// What is on the way from one rank to another.
#[repr(C)]
pub(super) struct Mailbox {
    /// Messages laid in.
    pub(super) sent: AtomicU64,
    /// Messages taken out.
    pub(super) received: AtomicU64,
    /// Bytes of the one that is in.
    pub(super) bytes: AtomicU64,
}

/// A mapping of the shared memory.
pub(super) struct Region {
    start: *mut u8,
    bytes: usize,
    ranks: usize,
    name: CString,
}

// SAFETY: the memory is mapped until the region is dropped, from whatever thread; what lies in it is atomic, or
// lent under the protocol of `meeting`.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

const PAGE: usize = 4096;

impl Region {
    /// Where slots start.
    fn slots(ranks: usize) -> usize {
        (size_of::<Head>() + ranks * ranks * size_of::<Mailbox>()).next_multiple_of(PAGE)
    }

    /// Maps the memory of a group, which is made if nobody was there before.
    pub(super) fn open(id: &Id, ranks: usize) -> Result<Region> {
        let mut name = String::from("/cresset-hccl-");
        id.iter().for_each(|byte| write!(name, "{byte:02x}").expect("text grows"));
        let name = CString::new(name).expect("has no zero byte");
        let bytes = Region::slots(ranks) + ranks * SLOT + ranks * ranks * MAIL;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC;
        // SAFETY: the name ends with a zero byte.
        let file = unsafe { libc::shm_open(name.as_ptr(), flags, 0o600) };
        if file < 0 {
            let error = std::io::Error::last_os_error();
            fail!(result::SYSCALL, "cannot open shared memory: {error}");
        }
        // SAFETY: an open file; all ranks ask for the same size, and what is there stays.
        let sized = unsafe { libc::ftruncate(file, bytes as libc::off_t) } == 0;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping that overlaps nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file, 0) };
        let error = std::io::Error::last_os_error();
        // SAFETY: an open file that nobody uses any more; the mapping stays.
        unsafe { libc::close(file) };
        if !sized || start == libc::MAP_FAILED {
            fail!(result::SYSCALL, "cannot map {bytes} bytes of shared memory: {error}");
        }
        Ok(Region { start: start.cast(), bytes, ranks, name })
    }

    /// Takes the name away: whoever has not come by now never will.
    pub(super) fn forget_name(&self) {
        // SAFETY: the name ends with a zero byte; it may be gone already.
        unsafe { libc::shm_unlink(self.name.as_ptr()) };
    }

    pub(super) fn head(&self) -> &Head {
        // SAFETY: mapped and aligned to a page, and all of it atomic, of which every bit pattern is valid.
        unsafe { &*self.start.cast() }
    }

    pub(super) fn mailbox(&self, from: usize, to: usize) -> &Mailbox {
        assert!(from < self.ranks && to < self.ranks, "ranks are checked before");
        let offset = size_of::<Head>() + (from * self.ranks + to) * size_of::<Mailbox>();
        // SAFETY: mapped, and aligned as the head ends at a multiple of eight; all of it atomic.
        unsafe { &*self.start.add(offset).cast() }
    }

    /// The bytes that a rank lays out, to be read.
    ///
    /// # Safety
    /// That rank does not write them meanwhile.
    pub(super) unsafe fn slot(&self, rank: usize) -> &[u8] {
        // SAFETY: mapped, and nobody writes, by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.slot_start(rank), SLOT) }
    }

    /// The bytes that a rank lays out, to be written.
    ///
    /// # Safety
    /// It is this rank's, and no other reads them meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the memory belongs to all ranks, and by turns to one")]
    pub(super) unsafe fn slot_mut(&self, rank: usize) -> &mut [u8] {
        // SAFETY: mapped, and nobody else touches it, by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.slot_start(rank), SLOT) }
    }

    fn slot_start(&self, rank: usize) -> *mut u8 {
        assert!(rank < self.ranks, "ranks are checked before");
        // SAFETY: inside the mapping.
        unsafe { self.start.add(Region::slots(self.ranks) + rank * SLOT) }
    }

    /// The bytes on the way from one rank to another.
    ///
    /// # Safety
    /// By the mailbox's counters they are this rank's to read or to write.
    #[expect(clippy::mut_from_ref, reason = "the memory belongs to two ranks, and by turns to one")]
    pub(super) unsafe fn mail(&self, from: usize, to: usize) -> &mut [u8] {
        assert!(from < self.ranks && to < self.ranks, "ranks are checked before");
        let offset = Region::slots(self.ranks) + self.ranks * SLOT + (from * self.ranks + to) * MAIL;
        // SAFETY: inside the mapping, and nobody else touches it, by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), MAIL) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and nobody borrows from it any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
