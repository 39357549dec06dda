//! Releases: what CANN 8.1.RC1, the oldest that is supported, does not have.

/// Functions and operators that came after 8.1.RC1.
const NEWER: &[&str] = &[
    "aclFinalizeReference",
    "aclsysGetVersionStr",
    "aclsysGetVersionNum",
    "aclrtGetDeviceInfo",
    "aclrtCtxGetCurrentDefaultStream",
    "aclrtGetPrimaryCtxState",
    "aclrtRegDeviceStateCallback",
    "aclrtStreamGetPriority",
    "aclrtStreamGetFlags",
    "aclrtDeviceGetStreamPriorityRange",
    "aclrtGetStreamAvailableNum",
    "aclrtSetStreamAttribute",
    "aclrtGetStreamAttribute",
    "aclrtRegStreamStateCallback",
    "aclrtStreamWaitEventWithTimeout",
    "aclrtGetEventId",
    "aclrtGetEventAvailNum",
    "aclrtFreeWithDevSync",
    "aclrtFreeHostWithDevSync",
    "aclrtHostRegisterV2",
    "aclrtHostGetDevicePointer",
    "aclrtGetMemUsageInfo",
    "aclrtMemcpyBatch",
    "aclrtMemcpyBatchAsync",
    "aclrtMemsetD32",
    "aclrtMemsetD32Async",
    "aclrtMemPoolCreate",
    "aclrtMemPoolDestroy",
    "aclrtMemPoolMallocAsync",
    "aclrtMemPoolFreeAsync",
    "aclrtLaunchHostFunc",
    "msptiActivityIsEnabled",
    "aclnnSquare",
    "aclnnMatmulWeightNz",
    "aclnnInplaceUniformTensor",
    "aclnnInplaceNormalTensor",
    "aclnnInplaceRandomTensor",
    "aclnnDropoutGenMaskV2Tensor",
    "aclnnRotaryPositionEmbedding",
    "aclnnScaledMaskedSoftmax",
    "aclnnApplyAdamW",
];

/// Whether a function, or one of the two of an operator, came after 8.1.RC1.
pub fn is_newer(function: &str) -> bool {
    let operator = function.strip_suffix("GetWorkspaceSize").filter(|name| name.starts_with("aclnn"));
    NEWER.contains(&operator.unwrap_or(function))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{FUNCTIONS, OPERATORS};

    #[test]
    fn all_that_is_newer_is_declared() {
        let declared = |name: &str| {
            FUNCTIONS.iter().chain(OPERATORS).copied().flatten().any(|function| function.name == name)
        };
        let unknown: Vec<&str> = NEWER.iter().copied().filter(|name| !declared(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(is_newer("aclnnSquareGetWorkspaceSize") && !is_newer("aclnnAdd"));
    }
}
