//! Numbers, arrays and lists.
#![allow(non_snake_case, reason = "the names are those of C")]

use super::put;
use crate::error::{Failure, Result, call, call_or, fail};
use crate::handle::Handles;
use crate::objects::{
    BOOL_ARRAYS, FLOAT_ARRAYS, INT_ARRAYS, SCALAR_LISTS, SCALARS, TENSOR_LISTS, TENSORS, dtype_of,
};
use cresset_acl::code;
use cresset_acl::types::*;
use cresset_kernels::{DType, Scalar, bf16, f16};

/// Makes an object, or reports why not and gives null.
pub(super) fn create<T>(name: &str, make: impl FnOnce() -> Result<usize>) -> *mut T {
    let mut handle = 0;
    call_or(code::NN_INNER, name, || {
        handle = make()?;
        Ok(())
    });
    handle as *mut T
}

/// Ends a handle. Null is fine, a handle that is not alive is not.
pub(super) fn destroy<T>(name: &str, handles: &Handles<T>, handle: usize) -> Status {
    call(name, || {
        if handle != 0 && handles.remove(handle).is_none() {
            return Err(dead(handle));
        }
        Ok(())
    })
}

pub(super) fn dead(handle: usize) -> Failure {
    Failure::new(code::NN_PARAM_INVALID, format!("{handle:#x} was destroyed before, or is something else"))
}

/// # Safety
/// `start` is null, or `count` values at it may be read.
pub(super) unsafe fn values<'a, T>(start: *const T, count: u64, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        fail!(code::NN_PARAM_NULLPTR, "{what} is null");
    }
    // SAFETY: not null, so the caller vouches for it.
    Ok(unsafe { std::slice::from_raw_parts(start, count as usize) })
}

/// Keeps a number.
///
/// # Safety
/// `value` is null or points to a value of the element type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateScalar(value: *mut c_void, dtype: i32) -> *mut ScalarHandle {
    create("aclCreateScalar", || {
        let dtype = dtype_of(dtype)?;
        // SAFETY: by the caller's promise there are as many bytes as the type has.
        let bytes = unsafe { values(value.cast_const().cast::<u8>(), dtype.size() as u64, "value")? };
        Ok(SCALARS.insert(number(dtype, bytes)))
    })
}

fn number(dtype: DType, bytes: &[u8]) -> Scalar {
    macro_rules! read {
        ($ty:ty) => {
            <$ty>::from_ne_bytes(bytes.try_into().expect("there are as many bytes as the type has"))
        };
    }
    match dtype {
        DType::Bool => Scalar::Bool(bytes[0] != 0),
        DType::U8 => Scalar::Int(read!(u8).into()),
        DType::I8 => Scalar::Int(read!(i8).into()),
        DType::I16 => Scalar::Int(read!(i16).into()),
        DType::I32 => Scalar::Int(read!(i32).into()),
        DType::I64 => Scalar::Int(read!(i64)),
        DType::F16 => Scalar::Float(read!(f16).into()),
        DType::BF16 => Scalar::Float(read!(bf16).into()),
        DType::F32 => Scalar::Float(read!(f32).into()),
        DType::F64 => Scalar::Float(read!(f64)),
    }
}

/// Ends a number.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyScalar(scalar: *const ScalarHandle) -> Status {
    destroy("aclDestroyScalar", &SCALARS, scalar as usize)
}

/// Keeps integers.
///
/// # Safety
/// `numbers` is null or holds `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateIntArray(numbers: *const i64, count: u64) -> *mut IntArrayHandle {
    create("aclCreateIntArray", || {
        // SAFETY: by the caller's promise.
        let numbers = unsafe { values(numbers, count, "values")? };
        Ok(INT_ARRAYS.insert(numbers.to_vec()))
    })
}

/// Ends integers.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyIntArray(array: *const IntArrayHandle) -> Status {
    destroy("aclDestroyIntArray", &INT_ARRAYS, array as usize)
}

/// Keeps truth values.
///
/// # Safety
/// `truths` is null or holds `count` values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateBoolArray(truths: *const bool, count: u64) -> *mut BoolArrayHandle {
    create("aclCreateBoolArray", || {
        // SAFETY: by the caller's promise; as bytes, since C may hold other than 0 and 1.
        let bytes = unsafe { values(truths.cast::<u8>(), count, "values")? };
        Ok(BOOL_ARRAYS.insert(bytes.iter().map(|&byte| byte != 0).collect()))
    })
}

/// Ends truth values.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyBoolArray(array: *const BoolArrayHandle) -> Status {
    destroy("aclDestroyBoolArray", &BOOL_ARRAYS, array as usize)
}

/// Makes a list, which owns the tensors from now on.
///
/// # Safety
/// `tensors` is null or holds `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateTensorList(
    tensors: *const *const TensorHandle,
    count: u64,
) -> *mut TensorListHandle {
    create("aclCreateTensorList", || {
        // SAFETY: by the caller's promise.
        let tensors = unsafe { values(tensors, count, "tensors")? };
        let handles: Vec<usize> = tensors.iter().map(|&tensor| tensor as usize).collect();
        if let Some(&handle) = handles.iter().find(|&&handle| handle != 0 && !TENSORS.holds(handle)) {
            return Err(dead(handle));
        }
        Ok(TENSOR_LISTS.insert(handles))
    })
}

/// Ends a list and the tensors in it.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyTensorList(list: *const TensorListHandle) -> Status {
    destroy_list("aclDestroyTensorList", &TENSOR_LISTS, &TENSORS, list as usize)
}

/// Ends a list and its items.
fn destroy_list<T>(name: &str, lists: &Handles<Vec<usize>>, items: &Handles<T>, list: usize) -> Status {
    call(name, || {
        if list == 0 {
            return Ok(());
        }
        let handles = lists.remove(list).ok_or_else(|| dead(list))?;
        // A list may hold nulls, for items that are left out.
        let gone: Vec<usize> =
            handles.iter().copied().filter(|&handle| handle != 0 && items.remove(handle).is_none()).collect();
        gone.first().map_or(Ok(()), |&handle| Err(dead(handle)))
    })
}

/// Keeps floats.
///
/// # Safety
/// `numbers` is null or holds `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateFloatArray(numbers: *const f32, count: u64) -> *mut FloatArrayHandle {
    create("aclCreateFloatArray", || {
        // SAFETY: by the caller's promise.
        let numbers = unsafe { values(numbers, count, "values")? };
        Ok(FLOAT_ARRAYS.insert(numbers.to_vec()))
    })
}

/// Ends floats.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyFloatArray(array: *const FloatArrayHandle) -> Status {
    destroy("aclDestroyFloatArray", &FLOAT_ARRAYS, array as usize)
}

/// Makes a list, which owns the numbers from now on.
///
/// # Safety
/// `scalars` is null or holds `count` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclCreateScalarList(
    scalars: *const *const ScalarHandle,
    count: u64,
) -> *mut ScalarListHandle {
    create("aclCreateScalarList", || {
        // SAFETY: by the caller's promise.
        let scalars = unsafe { values(scalars, count, "scalars")? };
        let handles: Vec<usize> = scalars.iter().map(|&scalar| scalar as usize).collect();
        if let Some(&handle) = handles.iter().find(|&&handle| !SCALARS.holds(handle)) {
            return Err(dead(handle));
        }
        Ok(SCALAR_LISTS.insert(handles))
    })
}

/// Ends a list and the numbers in it.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclDestroyScalarList(list: *const ScalarListHandle) -> Status {
    destroy_list("aclDestroyScalarList", &SCALAR_LISTS, &SCALARS, list as usize)
}

/// One function per kind of array and list: how many items it has.
macro_rules! counts {
    ($($name:ident($handle:ty) = $handles:ident;)*) => {$(
        /// How many items there are.
        ///
        /// # Safety
        /// `count` is null or may be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(array: *const $handle, count: *mut u64) -> Status {
            call_or(code::NN_INNER, stringify!($name), || {
                let items = $handles.get(array as usize).ok_or_else(|| dead(array as usize))?;
                // SAFETY: by the caller's promise.
                unsafe { put(count, items.len() as u64) }
            })
        }
    )*};
}

counts! {
    aclGetIntArraySize(IntArrayHandle) = INT_ARRAYS;
    aclGetFloatArraySize(FloatArrayHandle) = FLOAT_ARRAYS;
    aclGetBoolArraySize(BoolArrayHandle) = BOOL_ARRAYS;
    aclGetTensorListSize(TensorListHandle) = TENSOR_LISTS;
    aclGetScalarListSize(ScalarListHandle) = SCALAR_LISTS;
}
