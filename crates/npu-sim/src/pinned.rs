//! Host memory from `aclrtMallocHost`, which the device reaches by itself.

#![expect(unsafe_code, reason = "allocates by hand, as C frees by address")]

use crate::error::{Result, fail};
use crate::memory::Span;
use cresset_acl::code;
use parking_lot::{Mutex, MutexGuard};
use std::alloc::{self, Layout};
use std::collections::BTreeMap;

/// Live blocks, by address.
static PINNED: Mutex<BTreeMap<usize, Layout>> = Mutex::new(BTreeMap::new());

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
    PINNED.lock().insert(start, layout);
    Ok(start)
}

/// Ends a block.
pub(crate) fn free(address: usize) -> Result {
    let Some(layout) = PINNED.lock().remove(&address) else {
        fail!(code::RT_PARAM_INVALID, "{address:#x} is not host memory of aclrtMallocHost in use");
    };
    // SAFETY: allocated above with this layout, and just taken off the list, so freed once.
    unsafe { alloc::dealloc(address as *mut u8, layout) };
    Ok(())
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

fn holds(blocks: &BTreeMap<usize, Layout>, span: Span) -> bool {
    let block = blocks.range(..=span.start).next_back();
    block.is_some_and(|(&start, layout)| Span { start, bytes: layout.size() }.contains(span))
}
