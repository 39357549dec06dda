//! Planned operator calls, and the library that plans them.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::objects::{dead, destroy};
use super::tensor::moved;
use crate::error::{Result, call_or, fail};
use crate::objects::{EXECUTORS, TENSOR_LISTS};
use cresset_acl::code;
use cresset_acl::types::*;

/// Lets an executor run more than once; whoever does so must destroy it.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetAclOpExecutorRepeatable(executor: *mut Executor) -> Status {
    call_or(code::NN_INNER, "aclSetAclOpExecutorRepeatable", || {
        if executor.is_null() {
            fail!(code::NN_PARAM_NULLPTR, "the executor is null");
        }
        EXECUTORS.get(executor as usize).ok_or_else(|| dead(executor as usize))?.repeat();
        Ok(())
    })
}

/// One function per way to say which tensor of an executor moves: the tensor itself says it here.
macro_rules! addresses {
    ($($name:ident;)*) => {$(
        /// Puts a tensor of an executor that runs again elsewhere.
        ///
        /// # Safety
        /// None: handles are checked, never followed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            executor: *mut Executor,
            _index: usize,
            tensor: *mut TensorHandle,
            address: *mut c_void,
        ) -> Status {
            call_or(code::NN_INNER, stringify!($name), || move_in(executor, tensor as usize, address))
        }
    )*};
}

addresses! {
    aclSetTensorAddr;
    aclSetInputTensorAddr;
    aclSetOutputTensorAddr;
}

/// One function per way to say which tensor of a list moves.
macro_rules! list_addresses {
    ($($name:ident;)*) => {$(
        /// Puts a tensor of a list of an executor that runs again elsewhere.
        ///
        /// # Safety
        /// None: handles are checked, never followed.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            executor: *mut Executor,
            _index: usize,
            relative: usize,
            list: *mut TensorListHandle,
            address: *mut c_void,
        ) -> Status {
            call_or(code::NN_INNER, stringify!($name), || {
                let tensors = TENSOR_LISTS.get(list as usize).ok_or_else(|| dead(list as usize))?;
                let Some(&tensor) = tensors.get(relative) else {
                    fail!(code::NN_PARAM_INVALID, "the list has no tensor {relative}");
                };
                move_in(executor, tensor, address)
            })
        }
    )*};
}

list_addresses! {
    aclSetDynamicTensorAddr;
    aclSetDynamicInputTensorAddr;
    aclSetDynamicOutputTensorAddr;
}

fn move_in(executor: *mut Executor, tensor: usize, address: *mut c_void) -> Result {
    let executor = EXECUTORS.get(executor as usize).ok_or_else(|| dead(executor as usize))?;
    if !executor.repeats() {
        fail!(code::NN_PARAM_INVALID, "the executor runs once: its tensors stay where they are");
    }
    if !executor.tensors.contains(&tensor) {
        fail!(code::NN_PARAM_INVALID, "the executor was not made with this tensor");
    }
    moved(tensor as *const TensorHandle, address)
}

/// Starts the library of operators, which needs nothing.
///
/// # Safety
/// `config` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnInit(_config: *const c_char) -> Status {
    call_or(code::NN_INNER, "aclnnInit", || Ok(()))
}

/// Ends the library of operators.
///
/// # Safety
/// None.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclnnFinalize() -> Status {
    call_or(code::NN_INNER, "aclnnFinalize", || Ok(()))
}

/// Ends an executor that was not run.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyAclOpExecutor(executor: *mut Executor) -> Status {
    destroy("aclDestroyAclOpExecutor", &EXECUTORS, executor as usize)
}
