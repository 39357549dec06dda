//! Plain functions: the runtime, the descriptors, the tracing library.

/// Hands every runtime function to the macro `$with`, as Rust signatures.
#[macro_export]
macro_rules! runtime_functions {
    ($with:ident) => {
        $with! {
            fn aclInit(config: *const c_char) -> Status;
            fn aclFinalize() -> Status;
            fn aclGetRecentErrMsg() -> *const c_char;
            fn aclrtGetVersion(major: *mut i32, minor: *mut i32, patch: *mut i32) -> Status;
            fn aclrtGetSocName() -> *const c_char;
            fn aclrtGetDeviceCount(count: *mut u32) -> Status;
            fn aclrtSetDevice(device: i32) -> Status;
            fn aclrtGetDevice(device: *mut i32) -> Status;
            fn aclrtResetDevice(device: i32) -> Status;
            fn aclrtSynchronizeDevice() -> Status;
            fn aclrtSynchronizeDeviceWithTimeout(milliseconds: i32) -> Status;
            fn aclrtCreateContext(context: *mut Context, device: i32) -> Status;
            fn aclrtDestroyContext(context: Context) -> Status;
            fn aclrtSetCurrentContext(context: Context) -> Status;
            fn aclrtGetCurrentContext(context: *mut Context) -> Status;
            fn aclrtCreateStream(stream: *mut Stream) -> Status;
            fn aclrtCreateStreamWithConfig(stream: *mut Stream, priority: u32, flags: u32) -> Status;
            fn aclrtDestroyStream(stream: Stream) -> Status;
            fn aclrtSynchronizeStream(stream: Stream) -> Status;
            fn aclrtSynchronizeStreamWithTimeout(stream: Stream, milliseconds: i32) -> Status;
            fn aclrtStreamQuery(stream: Stream, status: *mut i32) -> Status;
            fn aclrtStreamGetId(stream: Stream, id: *mut i32) -> Status;
            fn aclrtStreamWaitEvent(stream: Stream, event: Event) -> Status;
            fn aclrtCreateEvent(event: *mut Event) -> Status;
            fn aclrtCreateEventExWithFlag(event: *mut Event, flags: u32) -> Status;
            fn aclrtDestroyEvent(event: Event) -> Status;
            fn aclrtRecordEvent(event: Event, stream: Stream) -> Status;
            fn aclrtQueryEventStatus(event: Event, status: *mut i32) -> Status;
            fn aclrtSynchronizeEvent(event: Event) -> Status;
            fn aclrtEventElapsedTime(milliseconds: *mut f32, start: Event, end: Event) -> Status;
            fn aclrtMalloc(address: *mut *mut c_void, bytes: usize, policy: i32) -> Status;
            fn aclrtFree(address: *mut c_void) -> Status;
            fn aclrtMallocHost(address: *mut *mut c_void, bytes: usize) -> Status;
            fn aclrtFreeHost(address: *mut c_void) -> Status;
            fn aclrtGetMemInfo(kind: i32, free: *mut usize, total: *mut usize) -> Status;
            fn aclrtMemcpy(to: *mut c_void, most: usize, from: *const c_void, bytes: usize, kind: i32) -> Status;
            fn aclrtMemcpyAsync(to: *mut c_void, most: usize, from: *const c_void, bytes: usize, kind: i32, stream: Stream) -> Status;
            fn aclrtMemset(address: *mut c_void, most: usize, value: i32, bytes: usize) -> Status;
            fn aclrtMemsetAsync(address: *mut c_void, most: usize, value: i32, bytes: usize, stream: Stream) -> Status;
        }
    };
}

/// Hands every runtime function that a program must do without where a release lacks it to the macro
/// `$with`, as Rust signatures.
#[macro_export]
macro_rules! probed_functions {
    ($with:ident) => {
        $with! {
            fn aclsysGetVersionNum(package: *mut c_char, number: *mut i32) -> Status;
            fn aclsysGetCANNVersion(package: i32, version: *mut PackageVersion) -> Status;
            fn aclGetDeviceCapability(device: u32, which: i32, value: *mut i64) -> Status;
            fn aclrtDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) -> Status;
            fn aclrtDeviceEnablePeerAccess(peer: i32, flags: u32) -> Status;
            fn aclrtGetThreadLastTaskId(task: *mut u32) -> Status;
            fn aclrtSetExceptionInfoCallback(callback: Option<Callback>) -> Status;
            fn aclrtGetDeviceIdFromExceptionInfo(info: *const c_void) -> u32;
            fn aclrtGetStreamIdFromExceptionInfo(info: *const c_void) -> u32;
            fn aclrtGetTaskIdFromExceptionInfo(info: *const c_void) -> u32;
            fn aclrtDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) -> Status;
        }
    };
}

/// Hands every function on descriptors to the macro `$with`, as Rust signatures.
#[macro_export]
macro_rules! object_functions {
    ($with:ident) => {
        $with! {
            fn aclCreateTensor(shape: *const i64, rank: u64, dtype: i32, strides: *const i64, offset: i64, format: i32, storage: *const i64, storage_rank: u64, address: *mut c_void) -> *mut TensorHandle;
            fn aclDestroyTensor(tensor: *const TensorHandle) -> Status;
            fn aclCreateScalar(value: *mut c_void, dtype: i32) -> *mut ScalarHandle;
            fn aclDestroyScalar(scalar: *const ScalarHandle) -> Status;
            fn aclCreateIntArray(values: *const i64, count: u64) -> *mut IntArrayHandle;
            fn aclDestroyIntArray(array: *const IntArrayHandle) -> Status;
            fn aclCreateBoolArray(values: *const bool, count: u64) -> *mut BoolArrayHandle;
            fn aclDestroyBoolArray(array: *const BoolArrayHandle) -> Status;
            fn aclCreateTensorList(tensors: *const *const TensorHandle, count: u64) -> *mut TensorListHandle;
            fn aclDestroyTensorList(list: *const TensorListHandle) -> Status;
            fn aclDestroyAclOpExecutor(executor: *mut Executor) -> Status;
        }
    };
}

/// Hands every function of the tracing library to the macro `$with`, as Rust signatures.
#[macro_export]
macro_rules! activity_functions {
    ($with:ident) => {
        $with! {
            fn msptiSubscribe(subscriber: *mut *mut c_void, callback: ActivityCallback, data: *mut c_void) -> i32;
            fn msptiUnsubscribe(subscriber: *mut c_void) -> i32;
            fn msptiActivityRegisterCallbacks(requested: BufferRequested, completed: BufferCompleted) -> i32;
            fn msptiActivityEnable(kind: u32) -> i32;
            fn msptiActivityDisable(kind: u32) -> i32;
            fn msptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) -> i32;
            fn msptiActivityFlushAll(flag: u32) -> i32;
            fn msptiActivityPushExternalCorrelationId(kind: u32, id: u64) -> i32;
            fn msptiActivityPopExternalCorrelationId(kind: u32, last: *mut u64) -> i32;
        }
    };
}
