//! Communication between devices: functions of `libhccl.so`, and the values they take.

/// Hands every function for communication to the macro `$with`, as Rust signatures.
#[macro_export]
macro_rules! collective_functions {
    ($with:ident) => {
        $with! {
            fn HcclGetRootInfo(root: *mut RootInfo) -> i32;
            fn HcclCommInitRootInfo(ranks: u32, root: *const RootInfo, rank: u32, communicator: *mut Communicator) -> i32;
            fn HcclCommInitRootInfoConfig(ranks: u32, root: *const RootInfo, rank: u32, config: *const CommunicatorConfig, communicator: *mut Communicator) -> i32;
            fn HcclCommInitAll(count: u32, devices: *mut i32, communicators: *mut Communicator) -> i32;
            fn HcclCreateSubCommConfig(communicator: *mut Communicator, count: u32, ranks: *mut u32, id: u64, rank: u32, config: *mut CommunicatorConfig, sub: *mut Communicator) -> i32;
            fn HcclCommDestroy(communicator: Communicator) -> i32;
            fn HcclGetRankSize(communicator: Communicator, ranks: *mut u32) -> i32;
            fn HcclGetRankId(communicator: Communicator, rank: *mut u32) -> i32;
            fn HcclGetCommName(communicator: Communicator, name: *mut c_char) -> i32;
            fn HcclGetCommAsyncError(communicator: Communicator, error: *mut i32) -> i32;
            fn HcclGetErrorString(code: i32) -> *const c_char;
            fn HcclGetCommConfigCapability() -> u32;
            fn HcclSetConfig(option: i32, value: i32) -> i32;
            fn HcclAllReduce(send: *mut c_void, receive: *mut c_void, count: u64, dtype: i32, operation: i32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclBroadcast(buffer: *mut c_void, count: u64, dtype: i32, root: u32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclAllGather(send: *mut c_void, receive: *mut c_void, count: u64, dtype: i32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclReduceScatter(send: *mut c_void, receive: *mut c_void, count: u64, dtype: i32, operation: i32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclReduce(send: *mut c_void, receive: *mut c_void, count: u64, dtype: i32, operation: i32, root: u32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclScatter(send: *mut c_void, receive: *mut c_void, count: u64, dtype: i32, root: u32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclAlltoAll(send: *const c_void, send_count: u64, send_dtype: i32, receive: *const c_void, receive_count: u64, receive_dtype: i32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclAlltoAllV(send: *const c_void, send_counts: *const c_void, send_places: *const c_void, send_dtype: i32, receive: *const c_void, receive_counts: *const c_void, receive_places: *const c_void, receive_dtype: i32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclSend(buffer: *mut c_void, count: u64, dtype: i32, to: u32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclRecv(buffer: *mut c_void, count: u64, dtype: i32, from: u32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclBatchSendRecv(items: *mut SendRecvItem, count: u32, communicator: Communicator, stream: Stream) -> i32;
            fn HcclBarrier(communicator: Communicator, stream: Stream) -> i32;
        }
    };
}

/// Results (`HcclResult`).
pub mod result {
    /// All is well.
    pub const SUCCESS: i32 = 0;
    /// A wrong argument.
    pub const PARAMETER: i32 = 1;
    /// A null pointer.
    pub const POINTER: i32 = 2;
    /// The library failed within itself.
    pub const INTERNAL: i32 = 4;
    /// This device or version cannot do it.
    pub const NOT_SUPPORT: i32 = 5;
    /// There is no such thing.
    pub const NOT_FOUND: i32 = 6;
    /// Something the system should do failed.
    pub const SYSCALL: i32 = 8;
    /// Others did not come in time.
    pub const TIMEOUT: i32 = 9;
    /// The runtime failed.
    pub const RUNTIME: i32 = 15;
    /// Another rank failed.
    pub const REMOTE: i32 = 21;

    /// The vendor's name of a result; empty for one that is not known.
    pub fn name(code: i32) -> &'static str {
        match code {
            SUCCESS => "HCCL_SUCCESS",
            PARAMETER => "HCCL_E_PARA",
            POINTER => "HCCL_E_PTR",
            INTERNAL => "HCCL_E_INTERNAL",
            NOT_SUPPORT => "HCCL_E_NOT_SUPPORT",
            NOT_FOUND => "HCCL_E_NOT_FOUND",
            SYSCALL => "HCCL_E_SYSCALL",
            TIMEOUT => "HCCL_E_TIMEOUT",
            RUNTIME => "HCCL_E_RUNTIME",
            REMOTE => "HCCL_E_REMOTE",
            _ => "",
        }
    }
}

/// What becomes of elements of all ranks (`HcclReduceOp`).
pub mod operation {
    /// Their sum.
    pub const SUM: i32 = 0;
    /// Their product.
    pub const PRODUCT: i32 = 1;
    /// The greatest.
    pub const MAXIMUM: i32 = 2;
    /// The least.
    pub const MINIMUM: i32 = 3;
}

/// Element types (`HcclDataType`), numbered otherwise than those of tensors.
pub mod element {
    /// Signed, 8 bits.
    pub const INT8: i32 = 0;
    /// Signed, 16 bits.
    pub const INT16: i32 = 1;
    /// Signed, 32 bits.
    pub const INT32: i32 = 2;
    /// Half precision.
    pub const FLOAT16: i32 = 3;
    /// Single precision.
    pub const FLOAT: i32 = 4;
    /// Signed, 64 bits.
    pub const INT64: i32 = 5;
    /// Unsigned, 64 bits.
    pub const UINT64: i32 = 6;
    /// Unsigned, 8 bits.
    pub const UINT8: i32 = 7;
    /// Unsigned, 16 bits.
    pub const UINT16: i32 = 8;
    /// Unsigned, 32 bits.
    pub const UINT32: i32 = 9;
    /// Double precision.
    pub const DOUBLE: i32 = 10;
    /// Truncated single precision.
    pub const BF16: i32 = 11;
}

/// Numbers of a [`CommunicatorConfig`](crate::structure::CommunicatorConfig).
pub mod config {
    /// What it starts with, after its size.
    pub const MAGIC: u32 = 0xf0f0_f0f0;
    /// The version that has the fields of our declaration.
    pub const VERSION: u32 = 5;
    /// Of that version, in bytes.
    pub const BYTES: usize = 300;
    /// A number that is not set.
    pub const UNSET: u32 = u32::MAX;
}
