//! Values that arguments take.

/// Element types (`aclDataType`).
pub mod dtype {
    /// No type.
    pub const UNDEFINED: i32 = -1;
    /// Single precision.
    pub const FLOAT: i32 = 0;
    /// Half precision.
    pub const FLOAT16: i32 = 1;
    /// Signed, 8 bits.
    pub const INT8: i32 = 2;
    /// Signed, 32 bits.
    pub const INT32: i32 = 3;
    /// Unsigned, 8 bits.
    pub const UINT8: i32 = 4;
    /// Signed, 16 bits.
    pub const INT16: i32 = 6;
    /// Signed, 64 bits.
    pub const INT64: i32 = 9;
    /// Double precision.
    pub const DOUBLE: i32 = 11;
    /// Truth values.
    pub const BOOL: i32 = 12;
    /// Truncated single precision.
    pub const BF16: i32 = 27;
}

/// Packages of the toolkit (`aclCANNPackageName`).
pub mod package {
    /// The toolkit as a whole.
    pub const CANN: i32 = 0;
}

/// What a device has (`aclDeviceInfo`).
pub mod capability {
    /// Units for products of matrices.
    pub const AI_CORES: i32 = 0;
    /// Units for all else.
    pub const VECTOR_CORES: i32 = 1;
    /// Bytes of the cache that they share.
    pub const L2_BYTES: i32 = 2;
}

/// Storage formats (`aclFormat`).
pub mod format {
    /// Any number of dimensions, nothing implied.
    pub const ND: i32 = 2;
}

/// Directions of a copy (`aclrtMemcpyKind`).
pub mod copy {
    /// Host to host.
    pub const HOST_TO_HOST: i32 = 0;
    /// Host to device.
    pub const HOST_TO_DEVICE: i32 = 1;
    /// Device to host.
    pub const DEVICE_TO_HOST: i32 = 2;
    /// Device to device.
    pub const DEVICE_TO_DEVICE: i32 = 3;
    /// By the addresses.
    pub const DEFAULT: i32 = 4;
}

/// Where memory comes from (`aclrtMemMallocPolicy`).
pub mod malloc {
    /// Huge pages if there are any.
    pub const HUGE_FIRST: i32 = 0;
    /// Small pages.
    pub const NORMAL_ONLY: i32 = 2;
}

/// Kinds of memory to ask about (`aclrtMemAttr`).
pub mod memory {
    /// High-bandwidth memory.
    pub const HBM: i32 = 1;
}

/// What an event can do (flags of `aclrtCreateEventExWithFlag`).
pub mod event {
    /// Streams can wait for it.
    pub const SYNC: u32 = 0x1;
    /// It takes the time.
    pub const TIME_LINE: u32 = 0x8;
    /// `aclrtQueryEventStatus`: not reached.
    pub const RECORDED_NOT_READY: i32 = 0;
    /// `aclrtQueryEventStatus`: reached.
    pub const RECORDED_COMPLETE: i32 = 1;
}

/// Flags of `aclrtCreateStreamWithConfig`, and answers of `aclrtStreamQuery`.
pub mod stream {
    /// Launches take less time, for some memory.
    pub const FAST_LAUNCH: u32 = 1;
    /// The host waits for the stream by looking, not by sleeping.
    pub const FAST_SYNC: u32 = 2;
    /// Nothing is left to do.
    pub const COMPLETE: i32 = 0;
    /// Work is left.
    pub const NOT_READY: i32 = 1;
}

/// Precision of matrix products (`cubeMathType`).
pub mod cube {
    /// As the dtype says.
    pub const KEEP_DTYPE: i8 = 0;
}

/// Reductions of losses.
pub mod reduction {
    /// One value per sample.
    pub const NONE: i64 = 0;
    /// The mean.
    pub const MEAN: i64 = 1;
    /// The sum.
    pub const SUM: i64 = 2;
}
