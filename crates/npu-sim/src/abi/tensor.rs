//! Descriptors of tensors.
#![allow(non_snake_case, reason = "the names are those of C")]
#![allow(clippy::too_many_arguments, reason = "as many as the functions of C have")]

use super::objects::{create, dead, destroy, values};
use super::put;
use crate::error::{Result, call_or, fail};
use crate::objects::{Description, TENSORS, Tensor};
use cresset_acl::code;
use cresset_acl::types::*;
use std::sync::Arc;

/// Describes a tensor; null if the description makes no sense.
///
/// # Safety
/// Each array is null or holds as many numbers as its count says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateTensor(
    shape: *const i64,
    rank: u64,
    dtype: i32,
    strides: *const i64,
    offset: i64,
    format: i32,
    storage: *const i64,
    storage_rank: u64,
    address: *mut c_void,
) -> *mut TensorHandle {
    create("aclCreateTensor", || {
        // SAFETY: by the caller's promise.
        let tensor =
            unsafe { describe(shape, rank, dtype, strides, offset, format, storage, storage_rank, address) };
        Ok(TENSORS.insert(tensor?))
    })
}

/// # Safety
/// Each array is null or holds as many numbers as its count says.
unsafe fn describe(
    shape: *const i64,
    rank: u64,
    dtype: i32,
    strides: *const i64,
    offset: i64,
    format: i32,
    storage: *const i64,
    storage_rank: u64,
    address: *mut c_void,
) -> Result<Tensor> {
    // SAFETY: by the caller's promise.
    unsafe {
        let strides = if strides.is_null() { None } else { Some(values(strides, rank, "strides")?) };
        let shape = values(shape, rank, "shape")?;
        let storage = values(storage, storage_rank, "storage shape")?;
        Tensor::new(&Description {
            shape,
            strides,
            offset,
            dtype,
            format,
            storage,
            address: address as usize,
        })
    }
}

/// Describes another tensor by the same handle.
///
/// # Safety
/// Each array is null or holds as many numbers as its count says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclInitTensor(
    tensor: *mut TensorHandle,
    shape: *const i64,
    rank: u64,
    dtype: i32,
    strides: *const i64,
    offset: i64,
    format: i32,
    storage: *const i64,
    storage_rank: u64,
    address: *mut c_void,
) -> Status {
    call_or(code::NN_INNER, "aclInitTensor", || {
        // SAFETY: by the caller's promise.
        let other =
            unsafe { describe(shape, rank, dtype, strides, offset, format, storage, storage_rank, address) };
        replace(tensor, other?)
    })
}

fn replace(tensor: *const TensorHandle, other: Tensor) -> Result {
    if tensor.is_null() {
        fail!(code::NN_PARAM_NULLPTR, "the tensor is null");
    }
    if TENSORS.replace(tensor as usize, other) { Ok(()) } else { Err(dead(tensor as usize)) }
}

fn tensor_of(tensor: *const TensorHandle) -> Result<Arc<Tensor>> {
    if tensor.is_null() {
        fail!(code::NN_PARAM_NULLPTR, "the tensor is null");
    }
    TENSORS.get(tensor as usize).ok_or_else(|| dead(tensor as usize))
}

/// Copies numbers to memory that the caller frees, and tells how many there are.
///
/// # Safety
/// `to` and `count` are null or may be written.
unsafe fn hand_over(numbers: &[usize], to: *mut *mut i64, count: *mut u64) -> Result {
    if to.is_null() || count.is_null() {
        fail!(code::NN_PARAM_NULLPTR, "the place for the numbers or their count is null");
    }
    // SAFETY: has no preconditions. Clients in C++ free it with `delete[]`, which is `free` for numbers.
    let start = unsafe { libc::malloc(size_of_val(numbers).max(1)) }.cast::<i64>();
    if start.is_null() {
        fail!(code::BAD_ALLOC, "the host is out of memory");
    }
    for (at, number) in numbers.iter().enumerate() {
        // SAFETY: there is room for all of them.
        unsafe { start.add(at).write(*number as i64) };
    }
    // SAFETY: by the caller's promise.
    unsafe { put(to, start).and(put(count, numbers.len() as u64)) }
}

/// The sizes of a tensor.
///
/// # Safety
/// `shape` and `rank` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetViewShape(
    tensor: *const TensorHandle,
    shape: *mut *mut i64,
    rank: *mut u64,
) -> Status {
    call_or(code::NN_INNER, "aclGetViewShape", || {
        let tensor = tensor_of(tensor)?;
        // SAFETY: by the caller's promise.
        unsafe { hand_over(tensor.shape(), shape, rank) }
    })
}

/// The sizes of a tensor's storage.
///
/// # Safety
/// `shape` and `rank` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetStorageShape(
    tensor: *const TensorHandle,
    shape: *mut *mut i64,
    rank: *mut u64,
) -> Status {
    call_or(code::NN_INNER, "aclGetStorageShape", || {
        let tensor = tensor_of(tensor)?;
        // SAFETY: by the caller's promise.
        unsafe { hand_over(&tensor.told().storage, shape, rank) }
    })
}

/// The strides of a tensor.
///
/// # Safety
/// `strides` and `rank` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclGetViewStrides(
    tensor: *const TensorHandle,
    strides: *mut *mut i64,
    rank: *mut u64,
) -> Status {
    call_or(code::NN_INNER, "aclGetViewStrides", || {
        let tensor = tensor_of(tensor)?;
        // SAFETY: by the caller's promise.
        unsafe { hand_over(tensor.layout().strides(), strides, rank) }
    })
}

/// One function per thing that was said of a tensor and is told back.
macro_rules! told {
    ($($(#[$doc:meta])* $name:ident -> $ty:ty = |$tensor:ident| $value:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `to` is null or may be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(tensor: *const TensorHandle, to: *mut $ty) -> Status {
            call_or(code::NN_INNER, stringify!($name), || {
                let $tensor = tensor_of(tensor)?;
                // SAFETY: by the caller's promise.
                unsafe { put(to, $value) }
            })
        }
    )*};
}

told! {
    /// How many elements of its storage a tensor passes over.
    aclGetViewOffset -> i64 = |tensor| tensor.told().offset as i64;
    /// The format of a tensor.
    aclGetFormat -> i32 = |tensor| tensor.told().format;
    /// The element type of a tensor.
    aclGetDataType -> i32 = |tensor| tensor.told().dtype;
    /// Where the storage of a tensor is.
    aclGetRawTensorAddr -> *mut c_void = |tensor| tensor.told().base as *mut c_void;
}

/// Puts the storage of a tensor elsewhere.
///
/// # Safety
/// None: the address is checked when it is used, never followed here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclSetRawTensorAddr(tensor: *mut TensorHandle, address: *mut c_void) -> Status {
    call_or(code::NN_INNER, "aclSetRawTensorAddr", || moved(tensor, address))
}

pub(super) fn moved(tensor: *const TensorHandle, address: *mut c_void) -> Result {
    let there = tensor_of(tensor)?.as_ref().clone().at(address as usize)?;
    replace(tensor, there)
}

/// Ends a descriptor of a tensor.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyTensor(tensor: *const TensorHandle) -> Status {
    destroy("aclDestroyTensor", &TENSORS, tensor as usize)
}
