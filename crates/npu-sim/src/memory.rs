//! Memory of one device: addresses that the host cannot follow, and who may touch what.
//!
//! Two ranges of the same size are mapped. Addresses come from the first, which nobody can
//! read or write, so a host that follows one faults. The bytes are in the second, a
//! constant distance away, reached only through a [`Claim`].
//!
//! A claim checks that its spans lie in live blocks, and waits for other claims on the same
//! bytes. Two kernels that race because a program forgot an event thus give one of two
//! orders, and never undefined behaviour here.

#![expect(unsafe_code, reason = "maps memory, and lends it under claims")]

use crate::blocks::{Blocks, Rounding};
use crate::error::{Result, fail};
use cresset_acl::code;
use cresset_kernels::{Buffer, Reading};
use parking_lot::{Condvar, Mutex};

/// Some bytes by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

impl Span {
    pub(crate) fn end(self) -> usize {
        self.start.saturating_add(self.bytes)
    }

    pub(crate) fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end() <= self.end()
    }

    pub(crate) fn meets(self, other: Span) -> bool {
        self.start < other.end() && other.start < self.end() && self.bytes > 0 && other.bytes > 0
    }
}

/// A NaN in every floating-point type, whatever the alignment.
const FRESH: u32 = 0x7fff_7fff;
/// Blocks of this size give their pages back to the system when freed.
const LARGE: usize = 1 << 20;
const PAGE: usize = 4096;

/// The memory of one device.
pub(crate) struct Memory {
    range: Span,
    /// Where the bytes of `range` really are.
    shadow: usize,
    state: Mutex<State>,
    released: Condvar,
}

struct State {
    blocks: Blocks,
    claims: Vec<Held>,
    next: u64,
    waiting: usize,
}

/// One span of a claim in force.
struct Held {
    claim: u64,
    span: Span,
    writes: bool,
}

impl Memory {
    /// Memory of `capacity` bytes, none of it in use.
    pub(crate) fn new(capacity: usize) -> Memory {
        // Twice the room, so that fragments seldom make it seem fuller than it is.
        let bytes = capacity.saturating_mul(2).next_multiple_of(PAGE).max(PAGE);
        let range = Span { start: map(bytes, libc::PROT_NONE), bytes };
        let shadow = map(bytes, libc::PROT_READ | libc::PROT_WRITE);
        let blocks = Blocks::new(range, capacity);
        let state = State { blocks, claims: Vec::new(), next: 0, waiting: 0 };
        Memory { range, shadow, state: Mutex::new(state), released: Condvar::new() }
    }

    /// Whether an address is one of this device.
    pub(crate) fn owns(&self, address: usize) -> bool {
        self.range.start <= address && address < self.range.end()
    }

    /// A new block, filled with NaN.
    pub(crate) fn allocate(&self, bytes: usize, rounding: Rounding) -> Result<usize> {
        let Some(start) = self.state.lock().blocks.allocate(bytes, rounding) else {
            let (free, total) = self.room();
            fail!(
                code::RT_MEMORY_ALLOCATION,
                "out of device memory: asked for {bytes} bytes, {free} of {total} are free"
            );
        };
        self.freshen(Span { start, bytes })?;
        Ok(start)
    }

    /// Fills with NaN what nobody has written.
    fn freshen(&self, span: Span) -> Result {
        let mut claim = self.claim(&[], &[span])?;
        let (_, mut fresh) = claim.bytes();
        let (words, rest) = fresh[0].as_chunks_mut::<4>();
        words.fill(FRESH.to_le_bytes());
        rest.fill(0x7f);
        Ok(())
    }

    /// Takes addresses without memory.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<usize> {
        match self.state.lock().blocks.reserve(bytes) {
            Some(start) => Ok(start),
            None => fail!(code::RT_MEMORY_ALLOCATION, "there are no {bytes} addresses left"),
        }
    }

    /// Gives such addresses back.
    pub(crate) fn unreserve(&self, start: usize) -> Result {
        if !self.state.lock().blocks.unreserve(start) {
            fail!(code::RT_PARAM_INVALID, "{start:#x} is not the start of reserved addresses without memory");
        }
        Ok(())
    }

    /// Takes memory without addresses.
    pub(crate) fn take(&self, bytes: usize) -> Result {
        if !self.state.lock().blocks.take(bytes) {
            let (free, total) = self.room();
            fail!(
                code::RT_MEMORY_ALLOCATION,
                "out of device memory: asked for {bytes} bytes, {free} of {total} are free"
            );
        }
        Ok(())
    }

    /// Gives such memory back.
    pub(crate) fn give(&self, bytes: usize) {
        self.state.lock().blocks.give(bytes);
    }

    /// Puts memory at reserved addresses, filled with NaN.
    pub(crate) fn map(&self, span: Span) -> Result {
        if !self.state.lock().blocks.map(span.start, span.bytes) {
            fail!(code::RT_PARAM_INVALID, "{:#x} is not reserved, or in use", span.start);
        }
        self.freshen(span)
    }

    /// Takes it away again.
    pub(crate) fn unmap(&self, start: usize) -> Result {
        match self.state.lock().blocks.unmap(start) {
            Some(_) => Ok(()),
            None => fail!(code::RT_PARAM_INVALID, "{start:#x} is not the start of mapped memory"),
        }
    }

    /// Ends a block, and gives its size. Does not wait for queued work, as the hardware does not.
    pub(crate) fn free(&self, address: usize) -> Result<usize> {
        let block = self.state.lock().blocks.around(address).filter(|block| block.start == address);
        let Some(block) = block else {
            fail!(code::RT_PARAM_INVALID, "{address:#x} is not the start of device memory in use");
        };
        if block.bytes >= LARGE {
            self.return_pages(block)?;
        }
        self.state.lock().blocks.release(address);
        Ok(block.bytes)
    }

    /// Bytes in use, and the most that ever were.
    pub(crate) fn usage(&self) -> (usize, usize) {
        self.state.lock().blocks.usage()
    }

    /// Free bytes and all bytes.
    pub(crate) fn room(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.blocks.free(), state.blocks.capacity())
    }

    /// The right to read some spans and to write others, once nobody else is in the way.
    ///
    /// Fails if a span is not inside one live block, or two written spans share a byte.
    pub(crate) fn claim(&self, reads: &[Span], writes: &[Span]) -> Result<Claim<'_>> {
        let mut state = self.state.lock();
        for &span in reads.iter().chain(writes) {
            self.check(&state.blocks, span)?;
        }
        for (at, &span) in writes.iter().enumerate() {
            if let Some(other) = writes[..at].iter().find(|&&other| other.meets(span)) {
                fail!(code::RT_AICORE_EXCEPTION, "outputs overlap: {span:x?} and {other:x?}");
            }
        }
        while state.blocked(reads, writes) {
            state.waiting += 1;
            self.released.wait(&mut state);
            state.waiting -= 1;
        }
        let claim = state.next;
        state.next += 1;
        let held = |writes| move |&span: &Span| Held { claim, span, writes };
        state.claims.extend(reads.iter().map(held(false)).chain(writes.iter().map(held(true))));
        Ok(Claim { memory: self, id: claim, reads: reads.into(), writes: writes.into() })
    }

    /// Fails unless a span lies in one live block. Never waits.
    pub(crate) fn holds(&self, span: Span) -> Result {
        self.check(&self.state.lock().blocks, span)
    }

    fn check(&self, blocks: &Blocks, span: Span) -> Result {
        if span.bytes == 0 || blocks.around(span.start).is_some_and(|block| block.contains(span)) {
            return Ok(());
        }
        let what = match blocks.around(span.start) {
            Some(block) => format!("reaches beyond the block of {} bytes at {:#x}", block.bytes, block.start),
            None if self.owns(span.start) => "is freed or was never allocated".into(),
            None => "is not memory of this device".into(),
        };
        fail!(code::RT_AICORE_EXCEPTION, "access to {} bytes at {:#x}: {what}", span.bytes, span.start);
    }

    fn return_pages(&self, block: Span) -> Result {
        let mut claim = self.claim(&[], &[block])?;
        let (_, mut bytes) = claim.bytes();
        let start = bytes[0].as_mut_ptr();
        let skip = start.align_offset(PAGE).min(block.bytes);
        let length = (block.bytes - skip) / PAGE * PAGE;
        // SAFETY: whole pages inside a block that the claim gives us alone; they read as
        // zero afterwards, which is initialised.
        unsafe { libc::madvise(start.add(skip).cast(), length, libc::MADV_DONTNEED) };
        Ok(())
    }

    fn shadow(&self, span: Span) -> *mut u8 {
        (self.shadow + (span.start - self.range.start)) as *mut u8
    }
}

impl State {
    fn blocked(&self, reads: &[Span], writes: &[Span]) -> bool {
        self.claims.iter().any(|held| {
            writes.iter().any(|&span| span.meets(held.span))
                || held.writes && reads.iter().any(|&span| span.meets(held.span))
        })
    }
}

/// The right to touch spans of device memory, until dropped.
pub(crate) struct Claim<'a> {
    memory: &'a Memory,
    id: u64,
    reads: Vec<Span>,
    writes: Vec<Span>,
}

/// Bytes to read.
pub(crate) enum Source<'a> {
    /// Where they are.
    Lent(&'a [u8]),
    /// A copy, for they will change meanwhile.
    Copied(Buffer),
}

impl Claim<'_> {
    /// What was claimed: bytes to read, and bytes to write.
    ///
    /// Bytes to read that are also written come as a copy.
    pub(crate) fn bytes(&mut self) -> (Vec<Source<'_>>, Vec<&mut [u8]>) {
        let reads = self.reads.iter().map(|&span| {
            let bytes = self.lend(span);
            if self.writes.iter().any(|&written| written.meets(span)) {
                copied(bytes)
            } else {
                Source::Lent(bytes)
            }
        });
        let reads = reads.collect();
        let writes = self.writes.iter().map(|&span| match span.bytes {
            0 => Default::default(),
            // SAFETY: inside a live block, so mapped and initialised; this claim alone may
            // touch it, its written spans share no byte, and what it reads of it was copied.
            bytes => unsafe { std::slice::from_raw_parts_mut(self.memory.shadow(span), bytes) },
        });
        (reads, writes.collect())
    }

    fn lend(&self, span: Span) -> &[u8] {
        if span.bytes == 0 {
            return &[];
        }
        // SAFETY: inside a live block, so mapped and initialised; nobody else writes it
        // while the claim is held, and `bytes` lends no slice for writing of it before.
        unsafe { std::slice::from_raw_parts(self.memory.shadow(span), span.bytes) }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.memory.state.lock();
        state.claims.retain(|held| held.claim != self.id);
        if state.waiting > 0 {
            self.memory.released.notify_all();
        }
    }
}

impl Source<'_> {
    /// The bytes, for as long as the lease is held.
    pub(crate) fn lease(&self) -> Lease<'_> {
        match self {
            Source::Lent(bytes) => Lease::Lent(bytes),
            Source::Copied(buffer) => Lease::Copied(buffer.read()),
        }
    }
}

/// Bytes of a [`Source`] to look at.
pub(crate) enum Lease<'a> {
    Lent(&'a [u8]),
    Copied(Reading<'a>),
}

impl Lease<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Lease::Lent(bytes) => bytes,
            Lease::Copied(reading) => reading.bytes(),
        }
    }
}

/// A copy of `bytes` that any element type may lie in.
pub(crate) fn copied(bytes: &[u8]) -> Source<'static> {
    let buffer = Buffer::zeroed(bytes.len()).expect("the host has room for a copy of device memory");
    buffer.write().bytes().copy_from_slice(bytes);
    Source::Copied(buffer)
}

fn map(bytes: usize, protection: i32) -> usize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping that overlaps nothing.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert!(start != libc::MAP_FAILED, "cannot reserve {bytes} bytes of addresses for device memory");
    start as usize
}
