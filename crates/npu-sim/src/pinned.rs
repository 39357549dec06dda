//! Host memory that the device reaches by itself: from `aclrtMallocHost`, or registered by its owner.

#![expect(unsafe_code, reason = "allocates by hand, as C frees by address")]

use crate::error::{Result, fail};
use crate::memory::Span;
use cresset_acl::code;
use parking_lot::{Mutex, MutexGuard};
use std::alloc::{self, Layout};
use std::collections::BTreeMap;

/// Blocks by address.
type Blocks = BTreeMap<usize, Block>;

/// Live blocks.
static PINNED: Mutex<Blocks> = Mutex::new(BTreeMap::new());

/// A block, which may be memory of others.
struct Block {
    layout: Layout,
    ours: bool,
}

/// A new block.
pub(crate) fn allocate(bytes: usize) -> Result<usize> {
    let Ok(layout) = Layout::from_size_align(bytes, 64) else {
        fail!(code::BAD_ALLOC, "cannot allocate {bytes} bytes of host memory");
    };
    if bytes == 0 {
        fail!(code::INVALID_PARAM, "asked for 0 bytes of host memory");
    }
    // SAFETY: the size is not zero.
    let start = unsafe { alloc::alloc_zeroed(layout) } as usize;
    if start == 0 {
        fail!(code::BAD_ALLOC, "cannot allocate {bytes} bytes of host memory");
    }
    PINNED.lock().insert(start, Block { layout, ours: true });
    Ok(start)
}

/// Ends a block.
pub(crate) fn free(address: usize) -> Result {
    let Some(Block { layout, .. }) = remove(address, true) else {
        fail!(code::RT_PARAM_INVALID, "{address:#x} is not host memory of aclrtMallocHost in use");
    };
    // SAFETY: allocated above with this layout, and just taken off the list, so freed once.
    unsafe { alloc::dealloc(address as *mut u8, layout) };
    Ok(())
}

fn remove(address: usize, ours: bool) -> Option<Block> {
    let mut blocks = PINNED.lock();
    if blocks.get(&address)?.ours != ours { None } else { blocks.remove(&address) }
}

/// Lets the device reach memory of the caller.
pub(crate) fn register(span: Span) -> Result {
    let Ok(layout) = Layout::from_size_align(span.bytes, 1) else {
        fail!(code::RT_PARAM_INVALID, "{} bytes are too many", span.bytes);
    };
    if span.start == 0 || span.bytes == 0 {
        fail!(code::INVALID_PARAM, "there is no memory of {} bytes at {:#x}", span.bytes, span.start);
    }
    let mut blocks = PINNED.lock();
    let last = Span { start: span.end() - 1, bytes: 1 };
    if holds(&blocks, Span { bytes: 1, ..span }) || holds(&blocks, last) {
        fail!(code::HOST_MEMORY_ALREADY_REGISTERED, "the device knows memory at {:#x} already", span.start);
    }
    blocks.insert(span.start, Block { layout, ours: false });
    Ok(())
}

/// Undoes [`register`].
pub(crate) fn unregister(address: usize) -> Result {
    match remove(address, false) {
        Some(_) => Ok(()),
        None => fail!(code::HOST_MEMORY_NOT_REGISTERED, "{address:#x} is not registered host memory"),
    }
}

/// Whether a span lies in one block.
pub(crate) fn contains(span: Span) -> bool {
    holds(&PINNED.lock(), span)
}

/// Keeps the block around a span alive while the result is held; `None` if it is gone.
pub(crate) fn keep(span: Span) -> Option<MutexGuard<'static, impl Sized>> {
    let blocks = PINNED.lock();
    holds(&blocks, span).then_some(blocks)
}

fn holds(blocks: &Blocks, span: Span) -> bool {
    let block = blocks.range(..=span.start).next_back();
    block.is_some_and(|(&start, block)| Span { start, bytes: block.layout.size() }.contains(span))
}
