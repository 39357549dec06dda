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
    /// Unsigned, 16 bits.
    pub const UINT16: i32 = 7;
    /// Unsigned, 32 bits.
    pub const UINT32: i32 = 8;
    /// Signed, 64 bits.
    pub const INT64: i32 = 9;
    /// Unsigned, 64 bits.
    pub const UINT64: i32 = 10;
    /// Double precision.
    pub const DOUBLE: i32 = 11;
    /// Truth values.
    pub const BOOL: i32 = 12;
    /// Two of single precision.
    pub const COMPLEX64: i32 = 16;
    /// Two of double precision.
    pub const COMPLEX128: i32 = 17;
    /// Signed, 4 bits, two in a byte.
    pub const INT4: i32 = 29;
    /// One bit, eight in a byte.
    pub const UINT1: i32 = 30;
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
    /// Not told.
    pub const UNDEFINED: i32 = -1;
    /// Samples, channels, height, width.
    pub const NCHW: i32 = 0;
    /// Samples, height, width, channels.
    pub const NHWC: i32 = 1;
    /// Samples, depth, height, width, channels.
    pub const NDHWC: i32 = 27;
    /// Matrices in tiles.
    pub const FRACTAL_NZ: i32 = 29;
    /// Samples, channels, depth, height, width.
    pub const NCDHW: i32 = 30;
    /// Samples, channels.
    pub const NC: i32 = 35;
    /// Samples, channels, length.
    pub const NCL: i32 = 47;
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
    /// Host to device, through a buffer.
    pub const HOST_TO_BUF_TO_DEVICE: i32 = 5;
}

/// Where memory comes from (`aclrtMemMallocPolicy`).
pub mod malloc {
    /// Huge pages if there are any.
    pub const HUGE_FIRST: i32 = 0;
    /// Small pages.
    pub const NORMAL_ONLY: i32 = 2;
    /// Huge pages or none.
    pub const HUGE_ONLY: i32 = 1;
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
    /// It can be asked how far a stream came.
    pub const CAPTURE_STREAM_PROGRESS: u32 = 0x2;
    /// Only the device waits for it.
    pub const DEVICE_USE_ONLY: u32 = 0x10;
    /// A captured graph leaves it to others.
    pub const EXTERNAL: u32 = 0x20;
    /// Other processes can wait for it.
    pub const IPC: u32 = 0x40;
    /// `aclrtQueryEvent`: reached.
    pub const COMPLETE: i32 = 0;
    /// `aclrtQueryEvent`: not reached.
    pub const NOT_READY: i32 = 1;
    /// `aclrtQueryEventWaitStatus`: every stream that waited has gone on.
    pub const WAIT_COMPLETE: i32 = 0;
    /// `aclrtQueryEventWaitStatus`: a stream waits.
    pub const WAIT_NOT_READY: i32 = 1;
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

/// What a stream does after a failure (`aclrtSetStreamFailureMode`).
pub mod failure {
    /// Later work is done whatever failed before.
    pub const CONTINUE: u64 = 0;
    /// After a failure nothing more is done.
    pub const STOP: u64 = 1;
}

/// What `aclrtSetStreamAttribute` is told (`aclrtStreamAttr`).
pub mod stream_attribute {
    /// One of [`failure`](super::failure).
    pub const FAILURE_MODE: i32 = 1;
    /// Whether to look for overflows.
    pub const OVERFLOW_SWITCH: i32 = 2;
    /// A number for the caller.
    pub const CUSTOM_TAG: i32 = 3;
    /// Whether to keep what operators were called with.
    pub const CACHE_OPERATOR: i32 = 4;
    /// How urgent its work is.
    pub const PRIORITY: i32 = 5;
}

/// Where memory is (`aclrtMemLocationType`).
pub mod location {
    /// On the host, known to the device.
    pub const HOST: i32 = 0;
    /// On a device.
    pub const DEVICE: i32 = 1;
    /// On the host, unknown to the device.
    pub const UNREGISTERED: i32 = 2;
}

/// How host memory is made known to a device (`aclrtHostRegisterV2`).
pub mod register {
    /// The device has an address for it.
    pub const MAPPED: u32 = 0x2;
    /// It stays where it is.
    pub const PINNED: u32 = 0x1000_0000;
}

/// Where a program runs (`aclrtRunMode`).
pub mod run_mode {
    /// On the device itself.
    pub const DEVICE: i32 = 0;
    /// On a host with a card.
    pub const HOST: i32 = 1;
}

/// Settings of the runtime (`aclSysParamOpt`).
pub mod parameter {
    /// The same result each time.
    pub const DETERMINISTIC: i32 = 0;
    /// Kernels that check themselves.
    pub const DEBUG_KERNEL: i32 = 1;
    /// The same result for all shapes.
    pub const STRONG_CONSISTENCY: i32 = 2;
}

/// What an installation can do (`aclCannAttr`).
pub mod attribute {
    /// Floats have infinities and NaN.
    pub const INF_NAN: i32 = 0;
    /// There is truncated single precision.
    pub const BF16: i32 = 1;
    /// Operators are compiled as they come.
    pub const JIT_COMPILE: i32 = 2;
}

/// What is wrong with a device (`aclrtErrorType`).
pub mod device_error {
    /// Nothing.
    pub const NONE: i32 = 0;
    /// Something that has no kind of its own.
    pub const OTHERS: i32 = 0xFFFF;
}

/// What a device has (`aclrtDevAttr`).
pub mod device_attribute {
    /// Processors.
    pub const AICPU_CORES: i32 = 1;
    /// Units for matrix products.
    pub const AI_CORES: i32 = 101;
    /// Units for matrix products.
    pub const CUBE_CORES: i32 = 102;
    /// Units for vectors.
    pub const VECTOR_CORES: i32 = 201;
    /// Bytes of memory.
    pub const MEMORY_BYTES: i32 = 301;
    /// Bytes of cache.
    pub const CACHE_BYTES: i32 = 302;
    /// Which chip it is.
    pub const CHIP: i32 = 402;
    /// Whether it is a part of one.
    pub const IS_VIRTUAL: i32 = 501;
}

/// What floats do when they become too large (`aclrtFloatOverflowMode`).
pub mod overflow {
    /// They stay at the largest.
    pub const SATURATION: i32 = 0;
    /// They become infinite.
    pub const INF_NAN: i32 = 1;
}

/// Settings of the compiler of operators (`aclCompileOpt`).
pub mod compile {
    /// Whether operators are compiled as they come.
    pub const JIT: i32 = 10;
}

/// Who is blocked by a callback (`aclrtCallbackBlockType`).
pub mod callback {
    /// Nobody.
    pub const NO_BLOCK: i32 = 0;
    /// The stream.
    pub const BLOCK: i32 = 1;
}
