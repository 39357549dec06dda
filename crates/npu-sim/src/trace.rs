//! Activity records: what ran when, tied to the call that launched it.

use crate::buffers;
use crate::clock::{Cost, realtime};
use crate::config::CONFIG;
use crate::process;
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

const KINDS: std::ops::RangeInclusive<u32> = kind::MARKER..=kind::RUNTIME_API;
/// What the vendor's library collects only if it was loaded before the runtime.
const INTERPOSED: [u32; 4] = [kind::HCCL, kind::MEMORY, kind::MEMSET, kind::MEMCPY];

/// Whether somebody collects records of a kind.
pub(crate) fn wants(kind: u32) -> bool {
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
    if INTERPOSED.contains(&kind) && !interposed() {
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
        let launch = Launch::without_work(function);
        if launch.correlation != 0 && wants(kind::EXTERNAL_CORRELATION) {
            correlate(launch.correlation);
        }
        launch
    }

    /// A call that is recorded too, but gives the device nothing to do, so that pushed ids are not for it.
    #[inline]
    pub(crate) fn without_work(function: &'static CStr) -> Launch {
        if ENABLED.load(Ordering::Relaxed) == 0 {
            return Launch { correlation: 0, function, start: 0 };
        }
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Launch { correlation: NEXT.fetch_add(1, Ordering::Relaxed), function, start: realtime() }
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        if self.correlation == 0 {
            return;
        }
        let operator = self.function.to_bytes().starts_with(b"aclnn");
        let narrow = if operator { kind::NODE_API } else { kind::ACL_API };
        let end = realtime();
        for kind in [kind::API, narrow].into_iter().filter(|kind| wants(*kind)) {
            buffers::write(record::Api {
                kind,
                start: self.start,
                end,
                process: process::id(),
                thread: thread_id(),
                correlation: self.correlation,
                name: self.function.as_ptr(),
                padding: [0; 4],
            });
        }
    }
}

/// Writes down that device memory was allocated or freed by the call that `launch` is.
pub(crate) fn memory(launch: &Launch, operation: u32, device: usize, address: usize, bytes: usize) {
    if launch.correlation == 0 || !wants(kind::MEMORY) {
        return;
    }
    buffers::write(record::Memory {
        kind: kind::MEMORY,
        operation,
        memory: record::memory::DEVICE,
        correlation: launch.correlation,
        start: launch.start,
        end: realtime(),
        address: address as u64,
        bytes: bytes as u64,
        process: process::id(),
        device: device as u32,
        stream: 0,
        padding: [],
    });
}

fn correlate(correlation: u64) {
    let tops = EXTERNAL.lock().each_ref().map(|stack| stack.last().copied());
    for (external, id) in tops.into_iter().enumerate().filter_map(|(kind, id)| Some((kind, id?))) {
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
    Communication { name: &'static CStr, group: &'static CStr, dtype: i32, count: u64, bytes: usize },
}

impl Activity {
    /// Runs `body`, and writes down when.
    #[inline]
    pub(crate) fn during<R>(
        &self,
        stream: &Stream,
        correlation: u64,
        cost: Cost,
        body: impl FnOnce() -> R,
    ) -> R {
        if correlation == 0 && !CONFIG.modelled {
            return body();
        }
        let (result, start, end) = stream.queue().timeline.take(cost, body);
        if correlation != 0 {
            self.write(stream, correlation, start, end);
        }
        result
    }

    fn write(&self, stream: &Stream, correlation: u64, start: u64, end: u64) {
        let (device, stream) = (stream.device.id as u32, stream.id as u32);
        match *self {
            Activity::Kernel { .. } if !wants(kind::KERNEL) => {}
            Activity::Copy { .. } if !wants(kind::MEMCPY) => {}
            Activity::Set { .. } if !wants(kind::MEMSET) => {}
            Activity::Communication { name, group, dtype, count, bytes } => {
                if wants(kind::COMMUNICATION) {
                    buffers::write(record::Communication {
                        kind: kind::COMMUNICATION,
                        dtype: dtype as u32,
                        count,
                        device,
                        stream,
                        start,
                        end,
                        algorithm: c"shared memory (simulated)".as_ptr(),
                        name: name.as_ptr(),
                        group: group.as_ptr(),
                        correlation,
                        padding: [],
                    });
                }
                if wants(kind::HCCL) {
                    let bandwidth = bytes as f64 / (end - start).max(1) as f64;
                    let (name, group) = (name.as_ptr(), group.as_ptr());
                    let padding = [0; 4];
                    let kind = kind::HCCL;
                    buffers::write(record::Hccl {
                        kind,
                        start,
                        end,
                        device,
                        stream,
                        bandwidth,
                        name,
                        group,
                        padding,
                    });
                }
            }
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
pub(crate) fn thread_id() -> u32 {
    thread_local!(static ID: Cell<u32> = const { Cell::new(0) });
    if ID.get() == 0 {
        // SAFETY: has no preconditions.
        ID.set(unsafe { libc::gettid() } as u32);
    }
    ID.get()
}
