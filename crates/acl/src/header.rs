//! What the vendor's headers call our constants and structures, so that a check can compare them.
//!
//! Functions need no such list: they have their C names here already.

use crate::code;
use crate::collective::{self, element, operation};
use crate::constant::*;
use crate::structure::*;
use crate::types::PackageVersion;
use std::mem::offset_of;

/// A constant: the name in C, and our value.
pub struct Constant {
    /// As in the headers.
    pub c: &'static str,
    /// Ours.
    pub value: i64,
}

/// A structure: the name in C, and how ours lies in memory.
pub struct Structure {
    /// As in the headers.
    pub c: &'static str,
    /// In bytes; none where later releases made it larger.
    pub size: Option<usize>,
    /// The fields as C calls them, and where ours start.
    pub fields: &'static [(&'static str, usize)],
}

macro_rules! constants {
    ($($c:ident = $ours:expr;)*) => {
        /// Every constant that the headers declare.
        pub const CONSTANTS: &[Constant] =
            &[$(Constant { c: stringify!($c), value: $ours as i64 }),*];
    };
}

constants! {
    ACL_DT_UNDEFINED = dtype::UNDEFINED;
    ACL_FLOAT = dtype::FLOAT;
    ACL_FLOAT16 = dtype::FLOAT16;
    ACL_INT8 = dtype::INT8;
    ACL_INT32 = dtype::INT32;
    ACL_UINT8 = dtype::UINT8;
    ACL_INT16 = dtype::INT16;
    ACL_UINT16 = dtype::UINT16;
    ACL_UINT32 = dtype::UINT32;
    ACL_INT64 = dtype::INT64;
    ACL_UINT64 = dtype::UINT64;
    ACL_DOUBLE = dtype::DOUBLE;
    ACL_BOOL = dtype::BOOL;
    ACL_COMPLEX64 = dtype::COMPLEX64;
    ACL_COMPLEX128 = dtype::COMPLEX128;
    ACL_BF16 = dtype::BF16;
    ACL_INT4 = dtype::INT4;
    ACL_UINT1 = dtype::UINT1;

    ACL_PKG_NAME_CANN = package::CANN;

    ACL_FORMAT_UNDEFINED = format::UNDEFINED;
    ACL_FORMAT_NCHW = format::NCHW;
    ACL_FORMAT_NHWC = format::NHWC;
    ACL_FORMAT_ND = format::ND;
    ACL_FORMAT_NDHWC = format::NDHWC;
    ACL_FORMAT_FRACTAL_NZ = format::FRACTAL_NZ;
    ACL_FORMAT_NCDHW = format::NCDHW;
    ACL_FORMAT_NC = format::NC;
    ACL_FORMAT_NCL = format::NCL;

    ACL_MEMCPY_HOST_TO_HOST = copy::HOST_TO_HOST;
    ACL_MEMCPY_HOST_TO_DEVICE = copy::HOST_TO_DEVICE;
    ACL_MEMCPY_DEVICE_TO_HOST = copy::DEVICE_TO_HOST;
    ACL_MEMCPY_DEVICE_TO_DEVICE = copy::DEVICE_TO_DEVICE;
    ACL_MEMCPY_DEFAULT = copy::DEFAULT;
    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = copy::HOST_TO_BUF_TO_DEVICE;

    ACL_MEM_MALLOC_HUGE_FIRST = malloc::HUGE_FIRST;
    ACL_MEM_MALLOC_HUGE_ONLY = malloc::HUGE_ONLY;
    ACL_MEM_MALLOC_NORMAL_ONLY = malloc::NORMAL_ONLY;
    ACL_HBM_MEM = memory::HBM;
    ACL_MEM_LOCATION_TYPE_HOST = location::HOST;
    ACL_MEM_LOCATION_TYPE_DEVICE = location::DEVICE;
    ACL_MEM_LOCATION_TYPE_UNREGISTERED = location::UNREGISTERED;
    ACL_HOST_REG_MAPPED = register::MAPPED;
    ACL_HOST_REG_PINNED = register::PINNED;

    ACL_EVENT_SYNC = event::SYNC;
    ACL_EVENT_CAPTURE_STREAM_PROGRESS = event::CAPTURE_STREAM_PROGRESS;
    ACL_EVENT_TIME_LINE = event::TIME_LINE;
    ACL_EVENT_DEVICE_USE_ONLY = event::DEVICE_USE_ONLY;
    ACL_EVENT_EXTERNAL = event::EXTERNAL;
    ACL_EVENT_IPC = event::IPC;
    ACL_EVENT_STATUS_COMPLETE = event::COMPLETE;
    ACL_EVENT_STATUS_NOT_READY = event::NOT_READY;
    ACL_EVENT_RECORDED_STATUS_NOT_READY = event::RECORDED_NOT_READY;
    ACL_EVENT_RECORDED_STATUS_COMPLETE = event::RECORDED_COMPLETE;
    ACL_EVENT_WAIT_STATUS_COMPLETE = event::WAIT_COMPLETE;
    ACL_EVENT_WAIT_STATUS_NOT_READY = event::WAIT_NOT_READY;

    ACL_STREAM_FAST_LAUNCH = stream::FAST_LAUNCH;
    ACL_STREAM_FAST_SYNC = stream::FAST_SYNC;
    ACL_STREAM_STATUS_COMPLETE = stream::COMPLETE;
    ACL_STREAM_STATUS_NOT_READY = stream::NOT_READY;
    ACL_CONTINUE_ON_FAILURE = failure::CONTINUE;
    ACL_STOP_ON_FAILURE = failure::STOP;
    ACL_STREAM_ATTR_FAILURE_MODE = stream_attribute::FAILURE_MODE;
    ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK = stream_attribute::OVERFLOW_SWITCH;
    ACL_STREAM_ATTR_USER_CUSTOM_TAG = stream_attribute::CUSTOM_TAG;
    ACL_STREAM_ATTR_CACHE_OP_INFO = stream_attribute::CACHE_OPERATOR;
    ACL_STREAM_ATTR_PRIORITY = stream_attribute::PRIORITY;
    ACL_CALLBACK_NO_BLOCK = callback::NO_BLOCK;
    ACL_CALLBACK_BLOCK = callback::BLOCK;

    ACL_DEVICE = run_mode::DEVICE;
    ACL_HOST = run_mode::HOST;
    ACL_OPT_DETERMINISTIC = parameter::DETERMINISTIC;
    ACL_OPT_ENABLE_DEBUG_KERNEL = parameter::DEBUG_KERNEL;
    ACL_OPT_STRONG_CONSISTENCY = parameter::STRONG_CONSISTENCY;
    ACL_CANN_ATTR_INF_NAN = attribute::INF_NAN;
    ACL_CANN_ATTR_BF16 = attribute::BF16;
    ACL_CANN_ATTR_JIT_COMPILE = attribute::JIT_COMPILE;
    ACL_DEVICE_INFO_AI_CORE_NUM = capability::AI_CORES;
    ACL_DEVICE_INFO_VECTOR_CORE_NUM = capability::VECTOR_CORES;
    ACL_DEVICE_INFO_L2_SIZE = capability::L2_BYTES;
    ACL_DEV_ATTR_AICPU_CORE_NUM = device_attribute::AICPU_CORES;
    ACL_DEV_ATTR_AICORE_CORE_NUM = device_attribute::AI_CORES;
    ACL_DEV_ATTR_CUBE_CORE_NUM = device_attribute::CUBE_CORES;
    ACL_DEV_ATTR_VECTOR_CORE_NUM = device_attribute::VECTOR_CORES;
    ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = device_attribute::MEMORY_BYTES;
    ACL_DEV_ATTR_L2_CACHE_SIZE = device_attribute::CACHE_BYTES;
    ACL_DEV_ATTR_PHY_CHIP_ID = device_attribute::CHIP;
    ACL_DEV_ATTR_IS_VIRTUAL = device_attribute::IS_VIRTUAL;
    ACL_RT_NO_ERROR = device_error::NONE;
    ACL_RT_ERROR_OTHERS = device_error::OTHERS;
    ACL_RT_OVERFLOW_MODE_SATURATION = overflow::SATURATION;
    ACL_RT_OVERFLOW_MODE_INFNAN = overflow::INF_NAN;
    ACL_OP_JIT_COMPILE = compile::JIT;

    HCCL_SUCCESS = collective::result::SUCCESS;
    HCCL_E_PARA = collective::result::PARAMETER;
    HCCL_E_PTR = collective::result::POINTER;
    HCCL_E_INTERNAL = collective::result::INTERNAL;
    HCCL_E_NOT_SUPPORT = collective::result::NOT_SUPPORT;
    HCCL_E_NOT_FOUND = collective::result::NOT_FOUND;
    HCCL_E_SYSCALL = collective::result::SYSCALL;
    HCCL_E_TIMEOUT = collective::result::TIMEOUT;
    HCCL_E_RUNTIME = collective::result::RUNTIME;
    HCCL_E_REMOTE = collective::result::REMOTE;
    HCCL_REDUCE_SUM = operation::SUM;
    HCCL_REDUCE_PROD = operation::PRODUCT;
    HCCL_REDUCE_MAX = operation::MAXIMUM;
    HCCL_REDUCE_MIN = operation::MINIMUM;
    HCCL_DATA_TYPE_INT8 = element::INT8;
    HCCL_DATA_TYPE_INT16 = element::INT16;
    HCCL_DATA_TYPE_INT32 = element::INT32;
    HCCL_DATA_TYPE_FP16 = element::FLOAT16;
    HCCL_DATA_TYPE_FP32 = element::FLOAT;
    HCCL_DATA_TYPE_INT64 = element::INT64;
    HCCL_DATA_TYPE_UINT64 = element::UINT64;
    HCCL_DATA_TYPE_UINT8 = element::UINT8;
    HCCL_DATA_TYPE_UINT16 = element::UINT16;
    HCCL_DATA_TYPE_UINT32 = element::UINT32;
    HCCL_DATA_TYPE_FP64 = element::DOUBLE;
    HCCL_DATA_TYPE_BFP16 = element::BF16;
    HCCL_COMM_CONFIG_MAGIC_WORD = collective::config::MAGIC;
}

/// Every status code that the headers declare; those of operators are in none.
pub fn codes() -> impl Iterator<Item = Constant> {
    let declared = code::ALL.iter().filter(|(_, c)| !c.starts_with("ACLNN_"));
    declared.map(|&(value, c)| Constant { c, value: value.into() })
}

macro_rules! structures {
    ($($c:ident = $ours:ty $([$grows:ident])? { $($field:ident = $of_c:ident),* $(,)? })*) => {
        /// Every structure that the headers declare.
        pub const STRUCTURES: &[Structure] = &[$(Structure {
            c: stringify!($c),
            size: structures!(@size $ours $(, $grows)?),
            fields: &[$((stringify!($of_c), offset_of!($ours, $field))),*],
        }),*];
    };
    (@size $ours:ty) => { Some(size_of::<$ours>()) };
    (@size $ours:ty, grows) => { None };
}

structures! {
    aclCANNPackageVersion = PackageVersion {
        version = version, major = majorVersion, minor = minorVersion, release = releaseVersion, patch = patchVersion,
    }
    aclrtStreamConfigHandle = StreamConfig {
        work = workptr, work_bytes = workSize, flags = flag, priority = priority,
    }
    aclrtStreamAttrValue = StreamAttribute {
        failure_mode = failureMode, overflow_switch = overflowSwitch, priority = streamPriority, reserved = reserve,
    }
    aclrtMallocAttribute = MallocAttribute { kind = attr, value = value }
    aclrtMallocConfig = MallocConfig { attributes = attrs, count = numAttrs }
    aclrtMemLocation = Location { id = id, kind = type }
    aclrtPtrAttributes = PointerAttributes { location = location, page = pageSize, reserved = rsv }
    aclrtPhysicalMemProp = PhysicalProperties {
        handle = handleType, allocation = allocationType, memory = memAttr, location = location, reserved = reserve,
    }
    aclrtMemUsageInfo = MemoryUsage {
        name = name, current = curMemSize, peak = memPeakSize, reserved = reserved,
    }
    aclrtUtilizationInfo = Utilization {
        cube = cubeUtilization, vector = vectorUtilization, processor = aicpuUtilization,
        memory = memoryUtilization, extended = utilizationExtend,
    }
    aclrtErrorInfo = ErrorInfo {
        repairable = tryRepair, has_detail = hasDetail, reserved = reserved, kind = errorType, detail = detail,
    }
    aclrtUuid = Uuid { bytes = bytes }
    aclrtMemcpyBatchAttr = BatchAttribute { to = dstLoc, from = srcLoc, reserved = rsv }
    aclrtMemPoolProps = PoolProperties {
        allocation = allocType, handle = handleType, location = location, most = maxSize, reserved = reserved,
    }
    HcclRootInfo = RootInfo { bytes = internal }
    HcclCommConfig = CommunicatorConfig [grows] {
        head = reserved, buffer_megabytes = hcclBufferSize, deterministic = hcclDeterministic, name = hcclCommName,
        description = hcclUdi, expansion_mode = hcclOpExpansionMode, traffic_class = hcclRdmaTrafficClass,
        service_level = hcclRdmaServiceLevel,
    }
    HcclSendRecvItem = SendRecvItem {
        kind = sendRecvType, buffer = buf, count = count, dtype = dataType, remote = remoteRank,
    }
}

#[cfg(test)]
mod tests {
    /// What the headers do not declare: values that operators take, and our own version of a structure.
    const ELSEWHERE: &[&str] = &["cube", "reduction", "config"];

    #[test]
    fn no_constant_is_left_out() {
        let listed = include_str!("header.rs");
        for text in [include_str!("constant.rs"), include_str!("collective.rs")] {
            let mut module = "";
            for line in text.lines().map(str::trim) {
                if let Some(name) = line.strip_prefix("pub mod ") {
                    module = name.trim_end_matches(" {");
                }
                let constant = line.strip_prefix("pub const ").and_then(|rest| rest.split(':').next());
                let Some(name) = constant.filter(|_| !ELSEWHERE.contains(&module)) else { continue };
                assert!(listed.contains(&format!("{module}::{name};")), "{module}::{name} is not listed");
            }
        }
    }
}
