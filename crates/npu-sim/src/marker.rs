//! Markers: points and ranges that a program names, as records.

use crate::buffers;
use crate::clock::realtime;
use crate::stream::Stream;
use crate::trace::{thread_id, wants};
use cresset_acl::record::{self, flag, kind, source};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A range that was started.
pub(crate) struct Range {
    pub(crate) domain: &'static CStr,
    pub(crate) message: &'static CStr,
    pub(crate) stream: Option<Arc<Stream>>,
}

/// Ranges that were started and not ended.
static OPEN: Mutex<BTreeMap<u64, Range>> = Mutex::new(BTreeMap::new());
/// Domains whose markers nobody wants.
static SILENT: Mutex<BTreeSet<CString>> = Mutex::new(BTreeSet::new());

/// Texts in records live as long as the library: each is kept once.
pub(crate) fn keep(text: &CStr) -> &'static CStr {
    static TEXTS: Mutex<BTreeSet<&'static CStr>> = Mutex::new(BTreeSet::new());
    let mut texts = TEXTS.lock();
    if let Some(kept) = texts.get(text) {
        return kept;
    }
    let kept: &'static CStr = Box::leak(text.to_owned().into_boxed_c_str());
    texts.insert(kept);
    kept
}

/// A number for a marker, or for both ends of a range.
pub(crate) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Collects markers of a domain, or no more.
pub(crate) fn listen(domain: &CStr, wanted: bool) {
    let mut silent = SILENT.lock();
    if wanted {
        silent.remove(domain)
    } else {
        silent.insert(domain.to_owned())
    };
}

/// Writes a marker of the host, and one of the stream when it is there.
pub(crate) fn mark(
    domain: &'static CStr,
    message: &'static CStr,
    id: u64,
    [on_host, with_device]: [u32; 2],
    stream: Option<Arc<Stream>>,
) {
    if !wants(kind::MARKER) || SILENT.lock().contains(domain) {
        return;
    }
    let flag = if stream.is_some() { with_device } else { on_host };
    let record = move |source, whose| record::Marker {
        kind: kind::MARKER,
        flag,
        source,
        time: realtime(),
        id,
        whose,
        name: message.as_ptr(),
        domain: domain.as_ptr(),
        padding: [0; 4],
    };
    buffers::write(record(source::HOST, [crate::process::id(), thread_id()]));
    if let Some(stream) = stream {
        let whose = [stream.device.id as u32, stream.id as u32];
        stream.push(Box::new(move || {
            buffers::write(record(source::DEVICE, whose));
            Ok(())
        }));
    }
}

impl Range {
    /// Writes its start; gives the number to end it by.
    pub(crate) fn start(self) -> u64 {
        let id = next_id();
        let flags = [flag::START, flag::START_WITH_DEVICE];
        mark(self.domain, self.message, id, flags, self.stream.clone());
        OPEN.lock().insert(id, self);
        id
    }
}

/// Writes the end of a range. One that was never started is passed over.
pub(crate) fn end(id: u64) {
    let Some(range) = OPEN.lock().remove(&id) else { return };
    mark(range.domain, range.message, id, [flag::END, flag::END_WITH_DEVICE], range.stream);
}
