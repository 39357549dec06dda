//! Plain functions of ways to use the device that are not offered: operators by name, offline models,
//! captured graphs, kernels from files, memory shared between processes, the vendor's own profiler.
//!
//! Programs link against some of them, so they must be there to be found; called, they refuse.

/// Hands functions that only refuse to the macro `$with`, as Rust signatures.
#[macro_export]
macro_rules! refused_functions {
    ($with:ident) => {
        $with! {
            fn aclCreateDataBuffer(data: *mut c_void, bytes: usize) -> *mut c_void;
            fn aclDestroyDataBuffer(buffer: *const c_void) -> Status;
            fn aclCreateTensorDesc(dtype: i32, rank: i32, shape: *const i64, format: i32) -> *mut c_void;
            fn aclDestroyTensorDesc(description: *const c_void) -> ();
            fn aclGetTensorDescDimV2(description: *const c_void, index: usize, size: *mut i64) -> Status;
            fn aclGetTensorDescFormat(description: *const c_void) -> i32;
            fn aclGetTensorDescNumDims(description: *const c_void) -> usize;
            fn aclGetTensorDescType(description: *const c_void) -> i32;
            fn aclSetTensorDescName(description: *mut c_void, name: *const c_char) -> ();
            fn aclSetTensorFormat(description: *mut c_void, format: i32) -> Status;
            fn aclSetTensorPlaceMent(description: *mut c_void, memory: i32) -> Status;
            fn aclSetTensorShape(description: *mut c_void, rank: i32, shape: *const i64) -> Status;
            fn aclopCompileAndExecute(operator: *const c_char, input_count: i32, input_descriptions: *const *const c_void, inputs: *const *const c_void, output_count: i32, output_descriptions: *const *const c_void, outputs: *const *mut c_void, attributes: *const c_void, engine: i32, compile: i32, path: *const c_char, stream: Stream) -> Status;
            fn aclopCompileAndExecuteV2(operator: *const c_char, input_count: i32, input_descriptions: *mut *mut c_void, inputs: *mut *mut c_void, output_count: i32, output_descriptions: *mut *mut c_void, outputs: *mut *mut c_void, attributes: *mut c_void, engine: i32, compile: i32, path: *const c_char, stream: Stream) -> Status;
            fn aclopCreateAttr() -> *mut c_void;
            fn aclopDestroyAttr(attributes: *const c_void) -> ();
            fn aclopSetAttrBool(attributes: *mut c_void, name: *const c_char, value: u8) -> Status;
            fn aclopSetAttrDataType(attributes: *mut c_void, name: *const c_char, value: i32) -> Status;
            fn aclopSetAttrFloat(attributes: *mut c_void, name: *const c_char, value: f32) -> Status;
            fn aclopSetAttrInt(attributes: *mut c_void, name: *const c_char, value: i64) -> Status;
            fn aclopSetAttrListBool(attributes: *mut c_void, name: *const c_char, count: i32, values: *const u8) -> Status;
            fn aclopSetAttrListFloat(attributes: *mut c_void, name: *const c_char, count: i32, values: *const f32) -> Status;
            fn aclopSetAttrListInt(attributes: *mut c_void, name: *const c_char, count: i32, values: *const i64) -> Status;
            fn aclopSetAttrListListInt(attributes: *mut c_void, name: *const c_char, lists: i32, counts: *const i32, values: *const *const i64) -> Status;
            fn aclopSetAttrString(attributes: *mut c_void, name: *const c_char, value: *const c_char) -> Status;
            fn aclopStartDumpArgs(kind: u32, path: *const c_char) -> Status;
            fn aclopStopDumpArgs(kind: u32) -> Status;
            fn aclCreateGraphDumpOpt() -> *mut c_void;
            fn aclDestroyGraphDumpOpt(option: *const c_void) -> Status;
            fn aclGenGraphAndDumpForOp(operator: *const c_char, input_count: i32, input_descriptions: *const *const c_void, inputs: *const *const c_void, output_count: i32, output_descriptions: *const *const c_void, outputs: *const *mut c_void, attributes: *const c_void, engine: i32, path: *const c_char, option: *const c_void) -> Status;

            fn aclmdlInitDump() -> Status;
            fn aclmdlSetDump(config: *const c_char) -> Status;
            fn aclmdlFinalizeDump() -> Status;
            fn aclmdlRICaptureBegin(stream: Stream, mode: i32) -> Status;
            fn aclmdlRICaptureEnd(stream: Stream, model: *mut *mut c_void) -> Status;
            fn aclmdlRICaptureTaskGrpBegin(stream: Stream) -> Status;
            fn aclmdlRICaptureTaskGrpEnd(stream: Stream, handle: *mut *mut c_void) -> Status;
            fn aclmdlRICaptureTaskUpdateBegin(stream: Stream, handle: *mut c_void) -> Status;
            fn aclmdlRICaptureTaskUpdateEnd(stream: Stream) -> Status;
            fn aclmdlRICaptureThreadExchangeMode(mode: *mut i32) -> Status;
            fn aclmdlRIDebugPrint(model: *mut c_void) -> Status;
            fn aclmdlRIDebugJsonPrint(model: *mut c_void, path: *const c_char, flags: u32) -> Status;
            fn aclmdlRIExecuteAsync(model: *mut c_void, stream: Stream) -> Status;
            fn aclmdlRIDestroy(model: *mut c_void) -> Status;

            fn aclrtBinaryLoadFromData(data: *const c_void, bytes: usize, options: *const c_void, binary: *mut *mut c_void) -> Status;
            fn aclrtBinaryGetFunction(binary: *mut c_void, name: *const c_char, function: *mut *mut c_void) -> Status;
            fn aclrtGetFunctionAddr(function: *mut c_void, cube: *mut *mut c_void, vector: *mut *mut c_void) -> Status;
            fn aclrtLaunchKernelWithHostArgs(function: *mut c_void, blocks: u32, stream: Stream, config: *mut c_void, arguments: *mut c_void, bytes: usize, places: *mut c_void, place_count: usize) -> Status;
            fn aclrtCmoAsync(address: *mut c_void, bytes: usize, kind: i32, stream: Stream) -> Status;
            fn aclrtValueWait(address: *mut c_void, value: u64, flags: u32, stream: Stream) -> Status;
            fn aclrtValueWrite(address: *mut c_void, value: u64, flags: u32, stream: Stream) -> Status;
            fn aclrtGetHardwareSyncAddr(address: *mut *mut c_void) -> Status;

            fn aclrtMemExportToShareableHandle(handle: *mut c_void, kind: i32, flags: u64, shareable: *mut u64) -> Status;
            fn aclrtMemImportFromShareableHandle(shareable: u64, device: i32, handle: *mut *mut c_void) -> Status;
            fn aclrtMemSetPidToShareableHandle(shareable: u64, processes: *mut i32, count: usize) -> Status;
            fn aclrtIpcMemGetExportKey(address: *mut c_void, bytes: usize, key: *mut c_char, length: usize, flags: u64) -> Status;
            fn aclrtIpcMemSetImportPid(key: *const c_char, processes: *mut i32, count: usize) -> Status;
            fn aclrtIpcMemImportByKey(address: *mut *mut c_void, key: *const c_char, flags: u64) -> Status;
            fn aclrtIpcMemClose(key: *const c_char) -> Status;
            fn aclrtIpcGetEventHandle(event: Event, handle: *mut c_void) -> Status;
            fn aclrtGetMemUceInfo(device: i32, info: *mut c_void, places: usize, count: *mut usize) -> Status;
            fn aclrtMemUceRepair(device: i32, info: *mut c_void, count: usize) -> Status;
            fn aclrtRepairError(device: i32, error: *const c_void) -> Status;

            fn aclrtGetDeviceResLimit(device: i32, kind: i32, value: *mut u32) -> Status;
            fn aclrtSetDeviceResLimit(device: i32, kind: i32, value: u32) -> Status;
            fn aclrtResetDeviceResLimit(device: i32) -> Status;
            fn aclrtGetStreamResLimit(stream: Stream, kind: i32, value: *mut u32) -> Status;
            fn aclrtSetStreamResLimit(stream: Stream, kind: i32, value: u32) -> Status;
            fn aclrtResetStreamResLimit(stream: Stream) -> Status;
            fn aclrtUseStreamResInCurrentThread(stream: Stream) -> Status;
            fn aclrtUnuseStreamResInCurrentThread(stream: Stream) -> Status;
            fn aclrtGetResInCurrentThread(kind: i32, value: *mut u32) -> Status;

            fn aclprofInit(path: *const c_char, length: usize) -> Status;
            fn aclprofFinalize() -> Status;
            fn aclprofCreateConfig(devices: *mut u32, count: u32, metrics: i32, events: *const c_void, types: u64) -> *mut c_void;
            fn aclprofDestroyConfig(config: *const c_void) -> Status;
            fn aclprofSetConfig(kind: i32, config: *const c_char, length: usize) -> Status;
            fn aclprofStart(config: *const c_void) -> Status;
            fn aclprofStop(config: *const c_void) -> Status;
            fn aclprofCreateStepInfo() -> *mut c_void;
            fn aclprofDestroyStepInfo(step: *mut c_void) -> ();
            fn aclprofGetStepTimestamp(step: *mut c_void, tag: i32, stream: Stream) -> Status;
            fn aclprofMarkEx(message: *const c_char, length: usize, stream: Stream) -> Status;
            fn MsprofRegisterCallback(module: u32, callback: *const c_void) -> i32;
            fn MsprofReportApi(flag: u32, api: *const c_void) -> i32;
            fn MsprofReportCompactInfo(flag: u32, data: *mut c_void, length: u32) -> i32;
            fn MsprofReportAdditionalInfo(flag: u32, data: *mut c_void, length: u32) -> i32;
            fn MsprofGetHashId(text: *const c_char, length: usize) -> u64;
            fn MsprofSysCycleTime() -> u64;
        }
    };
}

/// Hands functions that are declared in no public header and only refuse to the macro `$with`.
///
/// Nobody outside knows their arguments, so they are declared without any, and never look at them.
#[macro_export]
macro_rules! undeclared_functions {
    ($with:ident) => {
        $with! {
            fn rtDevBinaryRegister() -> i32;
            fn rtFunctionRegister() -> i32;
            fn rtKernelLaunch() -> i32;
        }
    };
}
