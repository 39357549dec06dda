//! Records of the tracing library, copied out of their buffers.

use super::buffers::Filled;
use crate::sys::{Tracing, text_of};
use cresset_acl::record::{self, copy, external, kind, result};
use cresset_dispatch::activity::{Direction, Work};
use std::ptr;

/// A record as a value of our own.
pub(super) enum Record {
    /// The device did something.
    Work(DeviceWork),
    /// The host called the library.
    Api(Api),
    /// A launch belongs to a call.
    Call { correlation: u64, id: u64 },
}

pub(super) struct DeviceWork {
    pub(super) work: Work,
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) device: u32,
    pub(super) stream: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) correlation: u64,
    pub(super) bytes: u64,
}

pub(super) struct Api {
    pub(super) name: String,
    pub(super) thread: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) correlation: u64,
}

/// Visits every record of a buffer. The library keeps its place per thread and starts anew
/// only after the end, so a buffer is always read to its end.
pub(super) fn each(tracing: &Tracing, mut buffer: Filled, mut visit: impl FnMut(Record)) {
    let (start, valid) = (buffer.start(), buffer.valid);
    loop {
        let mut next = ptr::null_mut();
        // SAFETY: the library filled `valid` bytes of this buffer; the result has a place.
        let code = unsafe { (tracing.msptiActivityGetNextRecord)(start, valid, &mut next) };
        if code != result::SUCCESS || next.is_null() {
            return;
        }
        // SAFETY: the library says that a whole record is here, inside `buffer`.
        if let Some(record) = unsafe { read(next) } {
            visit(record);
        }
    }
}

/// # Safety
/// `at` points to a whole record of its kind.
unsafe fn read(at: *const u8) -> Option<Record> {
    // SAFETY: every record starts with a header.
    let header = unsafe { at.cast::<record::Header>().read_unaligned() };
    // SAFETY: the kind says which record follows, and the caller that it is whole.
    unsafe {
        match header.kind {
            kind::KERNEL => Some(kernel(at.cast::<record::Kernel>().read_unaligned())),
            kind::COMMUNICATION => Some(collective(at.cast::<record::Communication>().read_unaligned())),
            kind::API => Some(api(at.cast::<record::Api>().read_unaligned())),
            kind::MEMCPY => Some(copied(at.cast::<record::Memcpy>().read_unaligned())),
            kind::MEMSET => Some(set(at.cast::<record::Memset>().read_unaligned())),
            kind::EXTERNAL_CORRELATION => call(at.cast::<record::ExternalCorrelation>().read_unaligned()),
            _ => None,
        }
    }
}

/// # Safety
/// Its texts are null or ended by a zero byte; those of the library are, and stay.
unsafe fn kernel(record: record::Kernel) -> Record {
    Record::Work(DeviceWork {
        work: Work::Kernel,
        // SAFETY: by the caller's promise.
        name: unsafe { text_of(record.name) },
        // SAFETY: by the caller's promise.
        unit: unsafe { text_of(record.unit) },
        device: record.device,
        stream: record.stream,
        start: record.start,
        end: record.end,
        correlation: record.correlation,
        bytes: 0,
    })
}

/// What a collective's unit is called.
const COMMUNICATION: &str = "COMMUNICATION";

/// # Safety
/// As [`kernel`].
unsafe fn collective(record: record::Communication) -> Record {
    Record::Work(DeviceWork {
        work: Work::Kernel,
        // SAFETY: by the caller's promise.
        name: unsafe { text_of(record.name) },
        unit: COMMUNICATION.to_owned(),
        device: record.device,
        stream: record.stream,
        start: record.start,
        end: record.end,
        correlation: record.correlation,
        bytes: 0,
    })
}

/// # Safety
/// As [`kernel`].
unsafe fn api(record: record::Api) -> Record {
    Record::Api(Api {
        // SAFETY: by the caller's promise.
        name: unsafe { text_of(record.name) },
        thread: record.thread,
        start: record.start,
        end: record.end,
        correlation: record.correlation,
    })
}

fn copied(record: record::Memcpy) -> Record {
    let direction = match record.direction {
        copy::HOST_TO_HOST => Direction::HostToHost,
        copy::HOST_TO_DEVICE => Direction::HostToDevice,
        copy::DEVICE_TO_HOST => Direction::DeviceToHost,
        _ => Direction::DeviceToDevice,
    };
    Record::Work(DeviceWork {
        work: Work::Copy { direction },
        name: "Memcpy".to_owned(),
        unit: String::new(),
        device: record.device,
        stream: record.stream,
        start: record.start,
        end: record.end,
        correlation: record.correlation,
        bytes: record.bytes,
    })
}

fn set(record: record::Memset) -> Record {
    Record::Work(DeviceWork {
        work: Work::Set,
        name: "Memset".to_owned(),
        unit: String::new(),
        device: record.device,
        stream: record.stream,
        start: record.start,
        end: record.end,
        correlation: record.correlation,
        bytes: record.bytes,
    })
}

fn call(record: record::ExternalCorrelation) -> Option<Record> {
    let (correlation, id) = (record.correlation, record.id);
    (record.external == external::CUSTOM0).then_some(Record::Call { correlation, id })
}
