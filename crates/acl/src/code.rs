//! Status codes, and what they are called.

use crate::types::Status;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $c:literal;)*) => {
        $($(#[$doc])* pub const $name: Status = $value;)*

        /// Every code and the vendor's name of it.
        pub const ALL: &[(Status, &str)] = &[$(($value, $c)),*];

        /// The vendor's name of a code; empty for one that we do not know.
        pub fn name(code: Status) -> &'static str {
            match code {
                $($value => $c,)*
                _ => "",
            }
        }
    };
}

codes! {
    /// All is well.
    SUCCESS = 0, "ACL_SUCCESS";
    /// An argument the call itself checks is wrong.
    INVALID_PARAM = 100000, "ACL_ERROR_INVALID_PARAM";
    /// `aclInit` was not called.
    UNINITIALIZE = 100001, "ACL_ERROR_UNINITIALIZE";
    /// `aclInit` was called before; counts as one more use.
    REPEAT_INITIALIZE = 100002, "ACL_ERROR_REPEAT_INITIALIZE";
    /// `aclFinalize` was called before.
    REPEAT_FINALIZE = 100037, "ACL_ERROR_REPEAT_FINALIZE";
    /// The stub that only serves linking was loaded instead of the library.
    COMPILING_STUB_MODE = 100039, "ACL_ERROR_COMPILING_STUB_MODE";
    /// An argument the runtime checks is wrong.
    RT_PARAM_INVALID = 107000, "ACL_ERROR_RT_PARAM_INVALID";
    /// No such device.
    RT_INVALID_DEVICEID = 107001, "ACL_ERROR_RT_INVALID_DEVICEID";
    /// The thread has set no device.
    RT_CONTEXT_NULL = 107002, "ACL_ERROR_RT_CONTEXT_NULL";
    /// The stream belongs to another context.
    RT_STREAM_CONTEXT = 107003, "ACL_ERROR_RT_STREAM_CONTEXT";
    /// The event has no time yet.
    RT_EVENT_TIMESTAMP_INVALID = 107006, "ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID";
    /// A timestamp before that of the start.
    RT_EVENT_TIMESTAMP_REVERSAL = 107007, "ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL";
    /// The stream is subscribed, or is not.
    RT_STREAM_SUBSCRIBE = 107011, "ACL_ERROR_RT_STREAM_SUBSCRIBE";
    /// The thread is subscribed, or is not.
    RT_THREAD_SUBSCRIBE = 107012, "ACL_ERROR_RT_THREAD_SUBSCRIBE";
    /// Nobody subscribed to callbacks of the stream.
    RT_STREAM_NO_CB_REG = 107015, "ACL_ERROR_RT_STREAM_NO_CB_REG";
    /// A handle that is not alive.
    RT_INVALID_HANDLE = 107017, "ACL_ERROR_RT_INVALID_HANDLE";
    /// Nothing was reported in time.
    RT_WAIT_TIMEOUT = 107019, "ACL_ERROR_RT_WAIT_TIMEOUT";
    /// A task took too long.
    RT_TASK_TIMEOUT = 107020, "ACL_ERROR_RT_TASK_TIMEOUT";
    /// The work of the device was given up.
    RT_DEVICE_TASK_ABORT = 107022, "ACL_ERROR_RT_DEVICE_TASK_ABORT";
    /// The work of the stream was given up.
    RT_STREAM_ABORT = 107023, "ACL_ERROR_RT_STREAM_ABORT";
    /// The host is out of memory.
    BAD_ALLOC = 200000, "ACL_ERROR_BAD_ALLOC";
    /// The function is there, but not offered.
    API_NOT_SUPPORT = 200001, "ACL_ERROR_API_NOT_SUPPORT";
    /// This device or version cannot do it.
    FEATURE_UNSUPPORTED = 200006, "ACL_ERROR_FEATURE_UNSUPPORTED";
    /// The runtime cannot do it.
    RT_FEATURE_NOT_SUPPORT = 207000, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT";
    /// The device is out of memory.
    RT_MEMORY_ALLOCATION = 207001, "ACL_ERROR_RT_MEMORY_ALLOCATION";
    /// There are no devices.
    RT_NO_DEVICE = 207004, "ACL_ERROR_RT_NO_DEVICE";
    /// Too many events.
    RT_NO_EVENT_RESOURCE = 207007, "ACL_ERROR_RT_NO_EVENT_RESOURCE";
    /// Too many streams.
    RT_NO_STREAM_RESOURCE = 207008, "ACL_ERROR_RT_NO_STREAM_RESOURCE";
    /// The runtime failed within itself.
    RT_INTERNAL_ERROR = 507000, "ACL_ERROR_RT_INTERNAL_ERROR";
    /// The device does not answer any more.
    RT_LOST_HEARTBEAT = 507010, "ACL_ERROR_RT_LOST_HEARTBEAT";
    /// No callback came in time.
    RT_REPORT_TIMEOUT = 507012, "ACL_ERROR_RT_REPORT_TIMEOUT";
    /// A kernel ran too long.
    RT_AICORE_TIMEOUT = 507014, "ACL_ERROR_RT_AICORE_TIMEOUT";
    /// A kernel failed.
    RT_AICORE_EXCEPTION = 507015, "ACL_ERROR_RT_AICORE_EXCEPTION";
    /// A kernel for vectors failed.
    RT_VECTOR_CORE_EXCEPTION = 507035, "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION";
    /// Waiting for a stream took too long.
    RT_STREAM_SYNC_TIMEOUT = 507046, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT";
    /// Waiting for an event took too long.
    RT_EVENT_SYNC_TIMEOUT = 507047, "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT";
    /// Memory of the device is broken.
    RT_DEVICE_MEM_ERROR = 507053, "ACL_ERROR_RT_DEVICE_MEM_ERROR";
    /// Memory of the device is broken beyond correction.
    RT_HBM_MULTI_BIT_ECC_ERROR = 507054, "ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR";
    /// Memory of the device may be broken.
    RT_SUSPECT_DEVICE_MEM_ERROR = 507055, "ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR";
    /// The link between devices is broken.
    RT_LINK_ERROR = 507056, "ACL_ERROR_RT_LINK_ERROR";
    /// The driver failed within itself.
    RT_DRV_INTERNAL_ERROR = 507899, "ACL_ERROR_RT_DRV_INTERNAL_ERROR";
    /// Host memory is known to the device already.
    HOST_MEMORY_ALREADY_REGISTERED = 507910, "ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED";
    /// Host memory is not known to the device.
    HOST_MEMORY_NOT_REGISTERED = 507911, "ACL_ERROR_HOST_MEMORY_NOT_REGISTERED";
    /// An operator was given a null where something must be.
    NN_PARAM_NULLPTR = 161001, "ACLNN_ERR_PARAM_NULLPTR";
    /// An operator was given dtypes, shapes or formats that it cannot take.
    NN_PARAM_INVALID = 161002, "ACLNN_ERR_PARAM_INVALID";
    /// An operator failed in the runtime.
    NN_RUNTIME_ERROR = 361001, "ACLNN_ERR_RUNTIME_ERROR";
    /// An operator failed within itself.
    NN_INNER = 561000, "ACLNN_ERR_INNER";
    /// An operator has no kernel for this device.
    NN_FIND_KERNEL = 561003, "ACLNN_ERR_INNER_FIND_KERNEL_ERROR";
}
