//! Structures that functions take by pointer.

use crate::types::{c_char, c_void};

/// How to make a stream (`aclrtStreamConfigHandle`).
#[repr(C)]
pub struct StreamConfig {
    /// Memory of the caller, if any.
    pub work: *mut c_void,
    /// Its size.
    pub work_bytes: usize,
    /// As for `aclrtCreateStreamWithConfig`.
    pub flags: usize,
    /// As for `aclrtCreateStreamWithConfig`.
    pub priority: u32,
}

/// What a stream can be told (`aclrtStreamAttrValue`): which field counts is said beside it.
#[derive(Clone, Copy)]
#[repr(C)]
pub union StreamAttribute {
    /// Whether to stop at a failure.
    pub failure_mode: u64,
    /// Whether to look for overflows.
    pub overflow_switch: u32,
    /// How urgent its work is.
    pub priority: u32,
    /// As large as it will ever be.
    pub reserved: [u32; 4],
}

/// One wish of a [`MallocConfig`] (`aclrtMallocAttribute`).
#[repr(C)]
pub struct MallocAttribute {
    /// What is wished.
    pub kind: i32,
    /// How.
    pub value: [u32; 2],
}

/// How to allocate (`aclrtMallocConfig`).
#[repr(C)]
pub struct MallocConfig {
    /// The wishes.
    pub attributes: *mut MallocAttribute,
    /// How many there are.
    pub count: usize,
}

/// Where memory is (`aclrtMemLocation`).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Location {
    /// Which device.
    pub id: u32,
    /// One of [`location`](crate::constant::location).
    pub kind: i32,
}

/// What an address belongs to (`aclrtPtrAttributes`).
#[repr(C)]
pub struct PointerAttributes {
    /// Where it is.
    pub location: Location,
    /// Bytes of a page there.
    pub page: u32,
    /// Nothing yet.
    pub reserved: [u32; 4],
}

/// Memory without an address (`aclrtPhysicalMemProp`).
#[repr(C)]
pub struct PhysicalProperties {
    /// Who may have a handle to it.
    pub handle: i32,
    /// How it is held.
    pub allocation: i32,
    /// One of [`memory`](crate::constant::memory).
    pub memory: i32,
    /// Where it is.
    pub location: Location,
    /// Nothing yet.
    pub reserved: u64,
}

/// What one part of the program uses of a device (`aclrtMemUsageInfo`).
#[repr(C)]
pub struct MemoryUsage {
    /// Which part.
    pub name: [c_char; 32],
    /// Bytes in use.
    pub current: u64,
    /// The most that were.
    pub peak: u64,
    /// Nothing yet.
    pub reserved: [usize; 8],
}

/// How busy a device is, in percent (`aclrtUtilizationInfo`).
#[repr(C)]
pub struct Utilization {
    /// Units for matrix products.
    pub cube: i32,
    /// Units for vectors.
    pub vector: i32,
    /// Processors.
    pub processor: i32,
    /// Memory.
    pub memory: i32,
    /// Must be null.
    pub extended: *mut c_void,
}

/// What is wrong with a device (`aclrtErrorInfo`).
#[repr(C)]
pub struct ErrorInfo {
    /// Whether a repair may help.
    pub repairable: u8,
    /// Whether there are details.
    pub has_detail: u8,
    /// Nothing yet.
    pub reserved: [u8; 2],
    /// One of [`device_error`](crate::constant::device_error).
    pub kind: i32,
    /// Broken addresses and the like, as the kind says.
    pub detail: [u64; 321],
}

/// What a device is known by (`aclrtUuid`).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Uuid {
    /// Any bytes.
    pub bytes: [u8; 16],
}

/// Where the ends of copies are (`aclrtMemcpyBatchAttr`).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BatchAttribute {
    /// The target.
    pub to: Location,
    /// The source.
    pub from: Location,
    /// Nothing yet.
    pub reserved: [u8; 16],
}

/// A pool of memory (`aclrtMemPoolProps`).
#[repr(C)]
pub struct PoolProperties {
    /// How memory is held.
    pub allocation: i32,
    /// Who may have a handle to it.
    pub handle: i32,
    /// Where it is.
    pub location: Location,
    /// The most bytes it may hold; 0 for any.
    pub most: usize,
    /// Nothing yet.
    pub reserved: [u8; 32],
}

/// What ranks need to know to find each other (`HcclRootInfo`).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RootInfo {
    /// Whatever the library puts there.
    pub bytes: [u8; 4108],
}

/// How a group of ranks works (`HcclCommConfig`), up to what its fifth version has.
///
/// It grows with releases: the first field tells its size and version.
#[repr(C)]
pub struct CommunicatorConfig {
    /// Size, magic number and version: a [`CommunicatorConfigHead`], which C declares as plain bytes.
    pub head: [u8; 24],
    /// Megabytes of buffers.
    pub buffer_megabytes: u32,
    /// Whether sums are the same each time.
    pub deterministic: u32,
    /// The name of the group.
    pub name: [c_char; 128],
    /// A name for logs.
    pub description: [c_char; 128],
    /// Where collectives are scheduled.
    pub expansion_mode: u32,
    /// For networks.
    pub traffic_class: u32,
    /// For networks.
    pub service_level: u32,
}

/// What a [`CommunicatorConfig`] starts with.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CommunicatorConfigHead {
    /// Of the whole structure, in bytes.
    pub size: usize,
    /// 0xf0f0f0f0.
    pub magic: u32,
    /// Which fields there are.
    pub version: u32,
    /// Nothing yet.
    pub reserved: u64,
}

/// One transfer of `HcclBatchSendRecv` (`HcclSendRecvItem`).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct SendRecvItem {
    /// 0 to send, 1 to receive.
    pub kind: i32,
    /// Where the elements are, or go.
    pub buffer: *mut c_void,
    /// How many.
    pub count: u64,
    /// One of [`element`](crate::collective::element).
    pub dtype: i32,
    /// The other rank.
    pub remote: u32,
}
