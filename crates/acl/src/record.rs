//! Activity records: what the device's tracing library writes into buffers.
//!
//! Records are packed and padded to eight bytes, so 64-bit fields sit at odd multiples of
//! four. Read a field by copying it; never borrow it.

use crate::types::c_char;

/// Results of the tracing library.
pub mod result {
    /// All is well.
    pub const SUCCESS: i32 = 0;
    /// A wrong argument.
    pub const INVALID_PARAMETER: i32 = 1;
    /// Somebody subscribed already.
    pub const MULTIPLE_SUBSCRIBERS: i32 = 2;
    /// No further record in this buffer.
    pub const MAX_LIMIT_REACHED: i32 = 3;
    /// The kind is collected only when the library was preloaded.
    pub const WITHOUT_LD_PRELOAD: i32 = 6;
    /// The library failed within itself.
    pub const INNER: i32 = 999;
}

/// Kinds of records.
pub mod kind {
    /// [`Marker`](super::Marker).
    pub const MARKER: u32 = 1;
    /// [`Kernel`](super::Kernel).
    pub const KERNEL: u32 = 2;
    /// [`Api`](super::Api).
    pub const API: u32 = 3;
    /// [`Hccl`](super::Hccl).
    pub const HCCL: u32 = 4;
    /// [`Memory`](super::Memory).
    pub const MEMORY: u32 = 5;
    /// [`Memset`](super::Memset).
    pub const MEMSET: u32 = 6;
    /// [`Memcpy`](super::Memcpy).
    pub const MEMCPY: u32 = 7;
    /// [`ExternalCorrelation`](super::ExternalCorrelation).
    pub const EXTERNAL_CORRELATION: u32 = 8;
    /// [`Communication`](super::Communication).
    pub const COMMUNICATION: u32 = 9;
    /// [`Api`](super::Api), of the runtime's functions.
    pub const ACL_API: u32 = 10;
    /// [`Api`](super::Api), of operators.
    pub const NODE_API: u32 = 11;
    /// [`Api`](super::Api), of the layer below the runtime.
    pub const RUNTIME_API: u32 = 12;
}

/// What a [`Marker`] is.
pub mod flag {
    /// A point in time.
    pub const INSTANT: u32 = 1;
    /// The start of a range.
    pub const START: u32 = 2;
    /// The end of a range.
    pub const END: u32 = 4;
    /// A point in time that a stream passes too.
    pub const INSTANT_WITH_DEVICE: u32 = 8;
    /// The start of a range that a stream passes too.
    pub const START_WITH_DEVICE: u32 = 16;
    /// The end of a range that a stream passes too.
    pub const END_WITH_DEVICE: u32 = 32;
}

/// Who passed a [`Marker`].
pub mod source {
    /// A thread.
    pub const HOST: u32 = 0;
    /// A stream.
    pub const DEVICE: u32 = 1;
}

/// What happened to memory in a [`Memory`] record.
pub mod memory {
    /// It was allocated.
    pub const ALLOCATION: u32 = 0;
    /// It was freed.
    pub const RELEASE: u32 = 1;
    /// It is memory of a device.
    pub const DEVICE: u32 = 1;
}

/// Whose id an [`ExternalCorrelation`] carries.
pub mod external {
    /// The first of three for frameworks.
    pub const CUSTOM0: u32 = 2;
}

/// Directions in a [`Memcpy`] record.
pub mod copy {
    /// Host to host.
    pub const HOST_TO_HOST: u32 = 1;
    /// Host to device.
    pub const HOST_TO_DEVICE: u32 = 2;
    /// Device to host.
    pub const DEVICE_TO_HOST: u32 = 3;
    /// Device to device.
    pub const DEVICE_TO_DEVICE: u32 = 4;
}

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident, $size:literal { $($(#[$field_doc:meta])* $field:ident: $ty:ty,)* } pad $pad:literal)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(C, packed)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
            /// Pads to a multiple of eight.
            pub padding: [u8; $pad],
        }

        const _: () = assert!(size_of::<$name>() == $size);
    )*};
}

records! {
    /// The start of every record.
    Header, 8 {
        /// One of [`kind`].
        kind: u32,
    } pad 4

    /// A kernel ran on the device.
    Kernel, 56 {
        /// [`kind::KERNEL`].
        kind: u32,
        /// Nanoseconds since 1970.
        start: u64,
        /// Nanoseconds since 1970.
        end: u64,
        /// Which device.
        device: u32,
        /// Which stream.
        stream: u32,
        /// The launch it belongs to.
        correlation: u64,
        /// Which unit ran it.
        unit: *const c_char,
        /// The kernel's name.
        name: *const c_char,
    } pad 4

    /// A function of the library was called on the host.
    Api, 48 {
        /// [`kind::API`].
        kind: u32,
        /// Nanoseconds since 1970.
        start: u64,
        /// Nanoseconds since 1970.
        end: u64,
        /// The process.
        process: u32,
        /// The OS thread.
        thread: u32,
        /// The launch it made.
        correlation: u64,
        /// The function's name.
        name: *const c_char,
    } pad 4

    /// Memory was set to one value.
    Memset, 56 {
        /// [`kind::MEMSET`].
        kind: u32,
        /// The byte written.
        value: u32,
        /// How many bytes.
        bytes: u64,
        /// Nanoseconds since 1970.
        start: u64,
        /// Nanoseconds since 1970.
        end: u64,
        /// Which device.
        device: u32,
        /// Which stream.
        stream: u32,
        /// The launch it belongs to.
        correlation: u64,
        /// Whether the caller did not wait.
        asynchronous: u8,
    } pad 7

    /// Memory was copied.
    Memcpy, 56 {
        /// [`kind::MEMCPY`].
        kind: u32,
        /// One of [`copy`].
        direction: u32,
        /// How many bytes.
        bytes: u64,
        /// Nanoseconds since 1970.
        start: u64,
        /// Nanoseconds since 1970.
        end: u64,
        /// Which device.
        device: u32,
        /// Which stream.
        stream: u32,
        /// The launch it belongs to.
        correlation: u64,
        /// Whether the caller did not wait.
        asynchronous: u8,
    } pad 7

    /// Ties a launch to an id that the framework pushed.
    ExternalCorrelation, 24 {
        /// [`kind::EXTERNAL_CORRELATION`].
        kind: u32,
        /// One of [`external`].
        external: u32,
        /// The id that was pushed.
        id: u64,
        /// The launch.
        correlation: u64,
    } pad 0

    /// A point that the program named, or one end of a range.
    Marker, 56 {
        /// [`kind::MARKER`].
        kind: u32,
        /// One of [`flag`].
        flag: u32,
        /// One of [`source`].
        source: u32,
        /// Nanoseconds since 1970.
        time: u64,
        /// The same for both ends of a range.
        id: u64,
        /// Process and thread, or device and stream.
        whose: [u32; 2],
        /// What the program called it.
        name: *const c_char,
        /// Which part of the program.
        domain: *const c_char,
    } pad 4

    /// Devices communicated, as the host saw it.
    Hccl, 56 {
        /// [`kind::HCCL`].
        kind: u32,
        /// Nanoseconds since 1970.
        start: u64,
        /// Nanoseconds since 1970.
        end: u64,
        /// Which device.
        device: u32,
        /// Which stream.
        stream: u32,
        /// Gigabytes a second.
        bandwidth: f64,
        /// The function's name.
        name: *const c_char,
        /// The name of the group.
        group: *const c_char,
    } pad 4

    /// Memory was allocated or freed.
    Memory, 64 {
        /// [`kind::MEMORY`].
        kind: u32,
        /// One of [`memory`].
        operation: u32,
        /// [`memory::DEVICE`].
        memory: u32,
        /// The call it belongs to.
        correlation: u64,
        /// Nanoseconds since 1970.
        start: u64,
        /// Nanoseconds since 1970.
        end: u64,
        /// Where it is.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// The process.
        process: u32,
        /// Which device.
        device: u32,
        /// Which stream.
        stream: u32,
    } pad 0

    /// Devices communicated.
    Communication, 72 {
        /// [`kind::COMMUNICATION`].
        kind: u32,
        /// One of [`element`](crate::collective::element).
        dtype: u32,
        /// How many elements.
        count: u64,
        /// Which device.
        device: u32,
        /// Which stream.
        stream: u32,
        /// Nanoseconds since 1970.
        start: u64,
        /// Nanoseconds since 1970.
        end: u64,
        /// How it was done.
        algorithm: *const c_char,
        /// What was done.
        name: *const c_char,
        /// The name of the group.
        group: *const c_char,
        /// The launch it belongs to.
        correlation: u64,
    } pad 0
}
