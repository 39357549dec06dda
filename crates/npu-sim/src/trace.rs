//! Activity records: what ran when, tied to the call that launched it.

use crate::buffers;
use crate::clock::realtime;
use crate::stream::Stream;
use cresset_acl::record::{self, kind};
use parking_lot::Mutex;
use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A bit per kind of record that somebody wants.
static ENABLED: AtomicU32 = AtomicU32::new(0);
/// Whether the embedding program reaches us through `symbol`, so that no preloading is needed.
static EMBEDDED: AtomicBool = AtomicBool::new(false);
/// Pushed ids, a stack per kind. Shared by all threads, as in the vendor's library.
static EXTERNAL: Mutex<[Vec<u64>; EXTERNAL_KINDS]> = Mutex::new([const { Vec::new() }; EXTERNAL_KINDS]);
const EXTERNAL_KINDS: usize = 5;

const KINDS: [u32; 5] = [kind::KERNEL, kind::API, kind::MEMSET, kind::MEMCPY, kind::EXTERNAL_CORRELATION];

fn wants(kind: u32) -> bool {
    ENABLED.load(Ordering::Relaxed) & (1 << kind) != 0
}

/// Remembers that this library is embedded.
pub(crate) fn embed() {
    EMBEDDED.store(true, Ordering::Relaxed);
}

/// Starts to collect a kind; the result is one of [`record::result`].
pub(crate) fn enable(kind: u32) -> i32 {
    if !KINDS.contains(&kind) {
        return record::result::INVALID_PARAMETER;
    }
    if matches!(kind, kind::MEMCPY | kind::MEMSET) && !interposed() {
        return record::result::WITHOUT_LD_PRELOAD;
    }
    ENABLED.fetch_or(1 << kind, Ordering::Relaxed);
    record::result::SUCCESS
}

/// Stops collecting a kind.
pub(crate) fn disable(kind: u32) -> i32 {
    if !KINDS.contains(&kind) {
        return record::result::INVALID_PARAMETER;
    }
    ENABLED.fetch_and(!(1 << kind), Ordering::Relaxed);
    record::result::SUCCESS
}

/// The vendor's library sees copies only if it was loaded before the runtime.
fn interposed() -> bool {
    let ours = |list: String| list.contains("mspti") || list.contains("cresset_npu_sim");
    EMBEDDED.load(Ordering::Relaxed) || std::env::var("LD_PRELOAD").is_ok_and(ours)
}

/// Ties the launches that follow to `id`.
pub(crate) fn push(kind: u32, id: u64) -> i32 {
    match EXTERNAL.lock().get_mut(kind as usize) {
        Some(stack) if kind > 0 => stack.push(id),
        _ => return record::result::INVALID_PARAMETER,
    }
    record::result::SUCCESS
}

/// Undoes the last push of a kind, and gives its id.
pub(crate) fn pop(kind: u32) -> Option<u64> {
    EXTERNAL.lock().get_mut(kind as usize)?.pop()
}

/// A call that gives work to the device, from its start until dropped.
pub(crate) struct Launch {
    /// Shared by all records of this launch; 0 if nobody collects.
    pub(crate) correlation: u64,
    function: &'static CStr,
    start: u64,
}

impl Launch {
    #[inline]
    pub(crate) fn new(function: &'static CStr) -> Launch {
        if ENABLED.load(Ordering::Relaxed) == 0 {
            return Launch { correlation: 0, function, start: 0 };
        }
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let correlation = NEXT.fetch_add(1, Ordering::Relaxed);
        if wants(kind::EXTERNAL_CORRELATION) {
            correlate(correlation);
        }
        Launch { correlation, function, start: realtime() }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if self.correlation == 0 || !wants(kind::API) {
            return;
        }
        buffers::write(record::Api {
            kind: kind::API,
            start: self.start,
            end: realtime(),
            process: std::process::id(),
            thread: thread_id(),
            correlation: self.correlation,
            name: self.function.as_ptr(),
            padding: [0; 4],
        });
    }
}

fn correlate(correlation: u64) {
    let tops: Vec<(usize, u64)> = {
        let stacks = EXTERNAL.lock();
        stacks.iter().enumerate().filter_map(|(kind, stack)| Some((kind, *stack.last()?))).collect()
    };
    for (external, id) in tops {
        buffers::write(record::ExternalCorrelation {
            kind: kind::EXTERNAL_CORRELATION,
            external: external as u32,
            id,
            correlation,
            padding: [],
        });
    }
}

/// What the device did for a launch.
pub(crate) enum Activity {
    Kernel { unit: &'static CStr, name: &'static CStr },
    Copy { direction: u32, bytes: usize, asynchronous: bool },
    Set { value: u32, bytes: usize, asynchronous: bool },
}

impl Activity {
    /// Runs `body`, and writes down when.
    #[inline]
    pub(crate) fn during<R>(&self, stream: &Stream, correlation: u64, body: impl FnOnce() -> R) -> R {
        let kind = match self {
            Activity::Kernel { .. } => kind::KERNEL,
            Activity::Copy { .. } => kind::MEMCPY,
            Activity::Set { .. } => kind::MEMSET,
        };
        if correlation == 0 || !wants(kind) {
            return body();
        }
        let start = realtime();
        let result = body();
        self.write(stream, correlation, start, realtime());
        result
    }

    fn write(&self, stream: &Stream, correlation: u64, start: u64, end: u64) {
        let (device, stream) = (stream.device.id as u32, stream.id as u32);
        match *self {
            Activity::Kernel { unit, name } => buffers::write(record::Kernel {
                kind: kind::KERNEL,
                start,
                end,
                device,
                stream,
                correlation,
                unit: unit.as_ptr(),
                name: name.as_ptr(),
                padding: [0; 4],
            }),
            Activity::Copy { direction, bytes, asynchronous } => buffers::write(record::Memcpy {
                kind: kind::MEMCPY,
                direction,
                bytes: bytes as u64,
                start,
                end,
                device,
                stream,
                correlation,
                asynchronous: asynchronous as u8,
                padding: [0; 7],
            }),
            Activity::Set { value, bytes, asynchronous } => buffers::write(record::Memset {
                kind: kind::MEMSET,
                value,
                bytes: bytes as u64,
                start,
                end,
                device,
                stream,
                correlation,
                asynchronous: asynchronous as u8,
                padding: [0; 7],
            }),
        }
    }
}

/// The system's number of this thread; asking for it each time would cost more than a record.
#[expect(unsafe_code, reason = "asks the system")]
fn thread_id() -> u32 {
    thread_local!(static ID: Cell<u32> = const { Cell::new(0) });
    if ID.get() == 0 {
        // SAFETY: has no preconditions.
        ID.set(unsafe { libc::gettid() } as u32);
    }
    ID.get()
}
