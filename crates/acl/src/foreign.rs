//! Plain functions that other programs call and this project's backend does not.
//!
//! The simulated device offers them so that software written for Ascend finds all it asks for.

/// Hands runtime functions for other programs to the macro `$with`, as Rust signatures.
#[macro_export]
macro_rules! foreign_runtime_functions {
    ($with:ident) => {
        $with! {
            fn aclFinalizeReference(uses: *mut u64) -> Status;
            fn aclrtPeekAtLastError(level: i32) -> Status;
            fn aclrtGetLastError(level: i32) -> Status;
            fn aclsysGetVersionStr(package: *mut c_char, version: *mut c_char) -> Status;
            fn aclGetCannAttribute(attribute: i32, value: *mut i32) -> Status;
            fn aclGetCannAttributeList(attributes: *mut *const i32, count: *mut usize) -> Status;
            fn aclrtGetDeviceInfo(device: u32, attribute: i32, value: *mut i64) -> Status;
            fn aclDataTypeSize(dtype: i32) -> usize;
            fn aclrtSetSysParamOpt(option: i32, value: i64) -> Status;
            fn aclrtGetSysParamOpt(option: i32, value: *mut i64) -> Status;
            fn aclrtCtxSetSysParamOpt(option: i32, value: i64) -> Status;
            fn aclrtCtxGetSysParamOpt(option: i32, value: *mut i64) -> Status;
            fn aclSetCompileopt(option: i32, value: *const c_char) -> Status;
            fn aclGetCompileopt(option: i32, value: *mut c_char, length: usize) -> Status;
            fn aclGetCompileoptSize(option: i32) -> usize;
            fn aclAppLog(level: i32, function: *const c_char, file: *const c_char, line: u32, format: *const c_char) -> ();

            fn aclrtResetDeviceForce(device: i32) -> Status;
            fn aclrtGetRunMode(mode: *mut i32) -> Status;
            fn aclrtQueryDeviceStatus(device: i32, status: *mut i32) -> Status;
            fn aclrtGetErrorVerbose(device: i32, error: *mut ErrorInfo) -> Status;
            fn aclrtGetDeviceUtilizationRate(device: i32, utilization: *mut Utilization) -> Status;
            fn aclrtDeviceDisablePeerAccess(peer: i32) -> Status;
            fn aclrtCtxGetCurrentDefaultStream(stream: *mut Stream) -> Status;
            fn aclrtGetPrimaryCtxState(device: i32, flags: *mut u32, active: *mut i32) -> Status;
            fn aclrtSetDeviceSatMode(mode: i32) -> Status;
            fn aclrtGetDeviceSatMode(mode: *mut i32) -> Status;
            fn aclrtSetOpWaitTimeout(seconds: u32) -> Status;
            fn aclrtSetOpExecuteTimeOut(seconds: u32) -> Status;
            fn aclrtSetOpExecuteTimeOutV2(microseconds: u64, actual: *mut u64) -> Status;
            fn aclrtDeviceTaskAbort(device: i32, milliseconds: u32) -> Status;
            fn aclrtRegDeviceStateCallback(name: *const c_char, callback: Option<DeviceCallback>, data: *mut c_void) -> Status;
            fn aclrtDeviceGetUuid(device: i32, uuid: *mut Uuid) -> Status;
            fn aclrtDeviceGetBareTgid(process: *mut i32) -> Status;
            fn aclrtGetLogicDevIdByUserDevId(user: i32, logic: *mut i32) -> Status;

            fn aclrtCreateStreamV2(stream: *mut Stream, config: *const StreamConfig) -> Status;
            fn aclrtDestroyStreamForce(stream: Stream) -> Status;
            fn aclrtStreamGetPriority(stream: Stream, priority: *mut u32) -> Status;
            fn aclrtStreamGetFlags(stream: Stream, flags: *mut u32) -> Status;
            fn aclrtGetStreamAvailableNum(count: *mut u32) -> Status;
            fn aclrtSetStreamFailureMode(stream: Stream, mode: u64) -> Status;
            fn aclrtSetStreamAttribute(stream: Stream, attribute: i32, value: *mut StreamAttribute) -> Status;
            fn aclrtGetStreamAttribute(stream: Stream, attribute: i32, value: *mut StreamAttribute) -> Status;
            fn aclrtSetStreamOverflowSwitch(stream: Stream, flag: u32) -> Status;
            fn aclrtGetStreamOverflowSwitch(stream: Stream, flag: *mut u32) -> Status;
            fn aclrtStreamAbort(stream: Stream) -> Status;
            fn aclrtRegStreamStateCallback(name: *const c_char, callback: Option<StreamCallback>, data: *mut c_void) -> Status;

            fn aclrtCreateEventWithFlag(event: *mut Event, flags: u32) -> Status;
            fn aclrtResetEvent(event: Event, stream: Stream) -> Status;
            fn aclrtQueryEvent(event: Event, status: *mut i32) -> Status;
            fn aclrtQueryEventWaitStatus(event: Event, status: *mut i32) -> Status;
            fn aclrtSynchronizeEventWithTimeout(event: Event, milliseconds: i32) -> Status;
            fn aclrtStreamWaitEventWithTimeout(stream: Stream, event: Event, seconds: i32) -> Status;
            fn aclrtEventGetTimestamp(event: Event, microseconds: *mut u64) -> Status;
            fn aclrtGetEventId(event: Event, id: *mut u32) -> Status;
            fn aclrtGetEventAvailNum(count: *mut u32) -> Status;

            fn aclrtMallocAlign32(address: *mut *mut c_void, bytes: usize, policy: i32) -> Status;
            fn aclrtMallocCached(address: *mut *mut c_void, bytes: usize, policy: i32) -> Status;
            fn aclrtMallocWithCfg(address: *mut *mut c_void, bytes: usize, policy: i32, config: *mut MallocConfig) -> Status;
            fn aclrtFreeWithDevSync(address: *mut c_void) -> Status;
            fn aclrtMallocHostWithCfg(address: *mut *mut c_void, bytes: u64, config: *mut MallocConfig) -> Status;
            fn aclrtFreeHostWithDevSync(address: *mut c_void) -> Status;
            fn aclrtHostRegister(address: *mut c_void, bytes: u64, kind: i32, device: *mut *mut c_void) -> Status;
            fn aclrtHostRegisterV2(address: *mut c_void, bytes: u64, flags: u32) -> Status;
            fn aclrtHostGetDevicePointer(address: *mut c_void, device: *mut *mut c_void, flags: u32) -> Status;
            fn aclrtHostUnregister(address: *mut c_void) -> Status;
            fn aclrtPointerGetAttributes(address: *const c_void, attributes: *mut PointerAttributes) -> Status;
            fn aclrtGetMemUsageInfo(device: i32, usage: *mut MemoryUsage, places: usize, count: *mut usize) -> Status;
            fn aclrtMemcpy2d(to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: i32) -> Status;
            fn aclrtMemcpy2dAsync(to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: i32, stream: Stream) -> Status;
            fn aclrtMemcpyBatch(to: *mut *mut c_void, most: *mut usize, from: *mut *mut c_void, bytes: *mut usize, count: usize, attributes: *mut BatchAttribute, indices: *mut usize, attribute_count: usize, failed: *mut usize) -> Status;
            fn aclrtMemcpyBatchAsync(to: *mut *mut c_void, most: *mut usize, from: *mut *mut c_void, bytes: *mut usize, count: usize, attributes: *mut BatchAttribute, indices: *mut usize, attribute_count: usize, failed: *mut usize, stream: Stream) -> Status;
            fn aclrtMemcpyAsyncWithCondition(to: *mut c_void, most: usize, from: *const c_void, bytes: usize, kind: i32, stream: Stream) -> Status;
            fn aclrtMemsetD32(address: *mut c_void, most: usize, value: u32, count: usize) -> Status;
            fn aclrtMemsetD32Async(address: *mut c_void, most: usize, value: u32, count: usize, stream: Stream) -> Status;
            fn aclrtReserveMemAddress(address: *mut *mut c_void, bytes: usize, alignment: usize, expected: *mut c_void, flags: u64) -> Status;
            fn aclrtReleaseMemAddress(address: *mut c_void) -> Status;
            fn aclrtMallocPhysical(handle: *mut *mut c_void, bytes: usize, properties: *const PhysicalProperties, flags: u64) -> Status;
            fn aclrtFreePhysical(handle: *mut c_void) -> Status;
            fn aclrtMapMem(address: *mut c_void, bytes: usize, offset: usize, handle: *mut c_void, flags: u64) -> Status;
            fn aclrtUnmapMem(address: *mut c_void) -> Status;
            fn aclrtMemGetAllocationGranularity(properties: *mut PhysicalProperties, option: i32, granularity: *mut usize) -> Status;
            fn aclrtMemPoolCreate(pool: *mut *mut c_void, properties: *const PoolProperties) -> Status;
            fn aclrtMemPoolDestroy(pool: *mut c_void) -> Status;
            fn aclrtMemPoolMallocAsync(address: *mut *mut c_void, bytes: usize, pool: *mut c_void, stream: Stream) -> Status;
            fn aclrtMemPoolFreeAsync(address: *mut c_void, stream: Stream) -> Status;

            fn aclrtSubscribeReport(thread: u64, stream: Stream) -> Status;
            fn aclrtLaunchCallback(callback: Option<Callback>, data: *mut c_void, block: i32, stream: Stream) -> Status;
            fn aclrtProcessReport(milliseconds: i32) -> Status;
            fn aclrtUnSubscribeReport(thread: u64, stream: Stream) -> Status;
            fn aclrtLaunchHostFunc(stream: Stream, callback: Option<Callback>, data: *mut c_void) -> Status;
        }
    };
}

/// Hands functions on descriptors for other programs to the macro `$with`, as Rust signatures.
#[macro_export]
macro_rules! foreign_object_functions {
    ($with:ident) => {
        $with! {
            fn aclInitTensor(tensor: *mut TensorHandle, shape: *const i64, rank: u64, dtype: i32, strides: *const i64, offset: i64, format: i32, storage: *const i64, storage_rank: u64, address: *mut c_void) -> Status;
            fn aclGetViewShape(tensor: *const TensorHandle, shape: *mut *mut i64, rank: *mut u64) -> Status;
            fn aclGetStorageShape(tensor: *const TensorHandle, shape: *mut *mut i64, rank: *mut u64) -> Status;
            fn aclGetViewStrides(tensor: *const TensorHandle, strides: *mut *mut i64, rank: *mut u64) -> Status;
            fn aclGetViewOffset(tensor: *const TensorHandle, offset: *mut i64) -> Status;
            fn aclGetFormat(tensor: *const TensorHandle, format: *mut i32) -> Status;
            fn aclGetDataType(tensor: *const TensorHandle, dtype: *mut i32) -> Status;
            fn aclSetRawTensorAddr(tensor: *mut TensorHandle, address: *mut c_void) -> Status;
            fn aclGetRawTensorAddr(tensor: *const TensorHandle, address: *mut *mut c_void) -> Status;
            fn aclCreateFloatArray(values: *const f32, count: u64) -> *mut FloatArrayHandle;
            fn aclDestroyFloatArray(array: *const FloatArrayHandle) -> Status;
            fn aclCreateScalarList(scalars: *const *const ScalarHandle, count: u64) -> *mut ScalarListHandle;
            fn aclDestroyScalarList(list: *const ScalarListHandle) -> Status;
            fn aclGetIntArraySize(array: *const IntArrayHandle, count: *mut u64) -> Status;
            fn aclGetFloatArraySize(array: *const FloatArrayHandle, count: *mut u64) -> Status;
            fn aclGetBoolArraySize(array: *const BoolArrayHandle, count: *mut u64) -> Status;
            fn aclGetTensorListSize(list: *const TensorListHandle, count: *mut u64) -> Status;
            fn aclGetScalarListSize(list: *const ScalarListHandle, count: *mut u64) -> Status;
            fn aclSetAclOpExecutorRepeatable(executor: *mut Executor) -> Status;
            fn aclSetTensorAddr(executor: *mut Executor, index: usize, tensor: *mut TensorHandle, address: *mut c_void) -> Status;
            fn aclSetInputTensorAddr(executor: *mut Executor, index: usize, tensor: *mut TensorHandle, address: *mut c_void) -> Status;
            fn aclSetOutputTensorAddr(executor: *mut Executor, index: usize, tensor: *mut TensorHandle, address: *mut c_void) -> Status;
            fn aclSetDynamicTensorAddr(executor: *mut Executor, index: usize, relative: usize, list: *mut TensorListHandle, address: *mut c_void) -> Status;
            fn aclSetDynamicInputTensorAddr(executor: *mut Executor, index: usize, relative: usize, list: *mut TensorListHandle, address: *mut c_void) -> Status;
            fn aclSetDynamicOutputTensorAddr(executor: *mut Executor, index: usize, relative: usize, list: *mut TensorListHandle, address: *mut c_void) -> Status;
            fn aclnnInit(config: *const c_char) -> Status;
            fn aclnnFinalize() -> Status;
        }
    };
}

/// Hands functions of the tracing library for other programs to the macro `$with`, as Rust signatures.
#[macro_export]
macro_rules! foreign_activity_functions {
    ($with:ident) => {
        $with! {
            fn msptiActivityIsEnabled(kind: u32) -> bool;
            fn msptiActivityFlushPeriod(milliseconds: u32) -> i32;
            fn msptiActivityEnableMarkerDomain(name: *const c_char) -> i32;
            fn msptiActivityDisableMarkerDomain(name: *const c_char) -> i32;
            fn msptiEnableCallback(enable: u32, subscriber: *mut c_void, domain: i32, id: u32) -> i32;
            fn msptiEnableDomain(enable: u32, subscriber: *mut c_void, domain: i32) -> i32;

            fn mstxMarkA(message: *const c_char, stream: Stream) -> ();
            fn mstxRangeStartA(message: *const c_char, stream: Stream) -> u64;
            fn mstxRangeEnd(range: u64) -> ();
            fn mstxDomainCreateA(name: *const c_char) -> *mut c_void;
            fn mstxDomainDestroy(domain: *mut c_void) -> ();
            fn mstxDomainMarkA(domain: *mut c_void, message: *const c_char, stream: Stream) -> ();
            fn mstxDomainRangeStartA(domain: *mut c_void, message: *const c_char, stream: Stream) -> u64;
            fn mstxDomainRangeEnd(domain: *mut c_void, range: u64) -> ();
        }
    };
}
