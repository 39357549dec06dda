//! Copies, and filling with one value.
#![allow(non_snake_case, reason = "the names are those of C")]
#![allow(clippy::too_many_arguments, reason = "as many as the functions of C have")]

use super::put;
use crate::context::Context;
use crate::error::{Result, call, fail};
use crate::transfer::{self, Pattern};
use cresset_acl::structure::BatchAttribute;
use cresset_acl::types::{Status, Stream, c_void};
use cresset_acl::{code, constant};

/// Copies before it returns. The addresses say in which direction, not the kind.
///
/// # Safety
/// Host memory may be read or written for so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpy(
    to: *mut c_void,
    most: usize,
    from: *const c_void,
    bytes: usize,
    kind: i32,
) -> Status {
    call("aclrtMemcpy", || {
        check(to as usize, from as usize, bytes, most, kind)?;
        transfer::copy(c"aclrtMemcpy", to as usize, from as usize, bytes)
    })
}

/// Copies in a stream; waits for it if host memory is not pinned.
///
/// # Safety
/// Host memory may be read or written for so many bytes, until the stream has done it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpyAsync(
    to: *mut c_void,
    most: usize,
    from: *const c_void,
    bytes: usize,
    kind: i32,
    stream: Stream,
) -> Status {
    call("aclrtMemcpyAsync", || {
        check(to as usize, from as usize, bytes, most, kind)?;
        let stream = Context::current()?.stream(stream as usize)?;
        transfer::copy_async(c"aclrtMemcpyAsync", to as usize, from as usize, bytes, kind, &stream)
    })
}

/// Fills device memory with one byte.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemset(address: *mut c_void, most: usize, value: i32, bytes: usize) -> Status {
    call("aclrtMemset", || {
        fits(bytes, most)?;
        transfer::set(c"aclrtMemset", address as usize, Pattern::Byte(value as u8), bytes)
    })
}

/// Fills device memory with one byte, in a stream.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemsetAsync(
    address: *mut c_void,
    most: usize,
    value: i32,
    bytes: usize,
    stream: Stream,
) -> Status {
    call("aclrtMemsetAsync", || {
        fits(bytes, most)?;
        let stream = Context::current()?.stream(stream as usize)?;
        transfer::set_async(c"aclrtMemsetAsync", address as usize, Pattern::Byte(value as u8), bytes, &stream)
    })
}

/// Fills device memory with one number of four bytes.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemsetD32(
    address: *mut c_void,
    most: usize,
    value: u32,
    count: usize,
) -> Status {
    call("aclrtMemsetD32", || {
        let bytes = words(count, most)?;
        transfer::set(c"aclrtMemsetD32", address as usize, Pattern::Word(value), bytes)
    })
}

/// Fills device memory with one number of four bytes, in a stream.
///
/// # Safety
/// None: the address is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemsetD32Async(
    address: *mut c_void,
    most: usize,
    value: u32,
    count: usize,
    stream: Stream,
) -> Status {
    call("aclrtMemsetD32Async", || {
        let bytes = words(count, most)?;
        let stream = Context::current()?.stream(stream as usize)?;
        transfer::set_async(c"aclrtMemsetD32Async", address as usize, Pattern::Word(value), bytes, &stream)
    })
}

/// Copies rows that lie apart, before it returns.
///
/// # Safety
/// Host memory may be read or written where the rows are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpy2d(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
) -> Status {
    call("aclrtMemcpy2d", || {
        let rows = rows(to as usize, to_pitch, from as usize, from_pitch, width, height, kind)?;
        rows.into_iter().try_for_each(|(to, from)| transfer::copy(c"aclrtMemcpy2d", to, from, width))
    })
}

/// Copies rows that lie apart, in a stream.
///
/// # Safety
/// Host memory may be read or written where the rows are, until the stream has done it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpy2dAsync(
    to: *mut c_void,
    to_pitch: usize,
    from: *const c_void,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
    stream: Stream,
) -> Status {
    call("aclrtMemcpy2dAsync", || {
        let stream = Context::current()?.stream(stream as usize)?;
        let rows = rows(to as usize, to_pitch, from as usize, from_pitch, width, height, kind)?;
        rows.into_iter().try_for_each(|(to, from)| {
            transfer::copy_async(c"aclrtMemcpy2dAsync", to, from, width, kind, &stream)
        })
    })
}

/// Copies in a stream, and lets the library decide whether to wait, as `aclrtMemcpyAsync` does here.
///
/// # Safety
/// Host memory may be read or written for so many bytes, until the stream has done it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpyAsyncWithCondition(
    to: *mut c_void,
    most: usize,
    from: *const c_void,
    bytes: usize,
    kind: i32,
    stream: Stream,
) -> Status {
    call("aclrtMemcpyAsyncWithCondition", || {
        check(to as usize, from as usize, bytes, most, kind)?;
        let stream = Context::current()?.stream(stream as usize)?;
        let function = c"aclrtMemcpyAsyncWithCondition";
        transfer::copy_async(function, to as usize, from as usize, bytes, kind, &stream)
    })
}

/// Many copies in one call, before it returns.
///
/// # Safety
/// Each array is null or holds `count` items; host memory may be read or written as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpyBatch(
    to: *mut *mut c_void,
    most: *mut usize,
    from: *mut *mut c_void,
    bytes: *mut usize,
    count: usize,
    _attributes: *mut BatchAttribute,
    _indices: *mut usize,
    _attribute_count: usize,
    failed: *mut usize,
) -> Status {
    call("aclrtMemcpyBatch", || {
        // SAFETY: by the caller's promise.
        let copies = unsafe { batch(to, most, from, bytes, count, failed) }?;
        copies
            .into_iter()
            .try_for_each(|(to, from, bytes)| transfer::copy(c"aclrtMemcpyBatch", to, from, bytes))
    })
}

/// Many copies in one call, in a stream.
///
/// # Safety
/// As for `aclrtMemcpyBatch`, until the stream has done it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpyBatchAsync(
    to: *mut *mut c_void,
    most: *mut usize,
    from: *mut *mut c_void,
    bytes: *mut usize,
    count: usize,
    _attributes: *mut BatchAttribute,
    _indices: *mut usize,
    _attribute_count: usize,
    failed: *mut usize,
    stream: Stream,
) -> Status {
    call("aclrtMemcpyBatchAsync", || {
        let stream = Context::current()?.stream(stream as usize)?;
        // SAFETY: by the caller's promise.
        let copies = unsafe { batch(to, most, from, bytes, count, failed) }?;
        copies.into_iter().try_for_each(|(to, from, bytes)| {
            let kind = constant::copy::DEFAULT;
            transfer::copy_async(c"aclrtMemcpyBatchAsync", to, from, bytes, kind, &stream)
        })
    })
}

/// # Safety
/// Each array is null or holds `count` items; `failed` is null or may be written.
unsafe fn batch(
    to: *mut *mut c_void,
    most: *mut usize,
    from: *mut *mut c_void,
    bytes: *mut usize,
    count: usize,
    failed: *mut usize,
) -> Result<Vec<(usize, usize, usize)>> {
    if to.is_null() || most.is_null() || from.is_null() || bytes.is_null() {
        fail!(code::INVALID_PARAM, "an array is null");
    }
    let mut copies = Vec::with_capacity(count);
    for at in 0..count {
        // SAFETY: not null, so the caller vouches for it.
        let (to, most, from, bytes) =
            unsafe { (*to.add(at) as usize, *most.add(at), *from.add(at) as usize, *bytes.add(at)) };
        if let Err(failure) = check(to, from, bytes, most, constant::copy::DEFAULT) {
            // SAFETY: by the caller's promise.
            unsafe { put(failed, at) }?;
            return Err(failure);
        }
        copies.push((to, from, bytes));
    }
    Ok(copies)
}

/// Where rows go, and where they come from.
fn rows(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
) -> Result<Vec<(usize, usize)>> {
    check(to, from, width, to_pitch.min(from_pitch), kind)?;
    Ok((0..height).map(|row| (to + row * to_pitch, from + row * from_pitch)).collect())
}

fn words(count: usize, most: usize) -> Result<usize> {
    let Some(bytes) = count.checked_mul(4) else {
        fail!(code::RT_PARAM_INVALID, "{count} words are too many");
    };
    fits(bytes, most)?;
    Ok(bytes)
}

fn check(to: usize, from: usize, bytes: usize, most: usize, kind: i32) -> Result {
    if bytes > 0 && (to == 0 || from == 0) {
        fail!(code::INVALID_PARAM, "an address is null");
    }
    if !(0..=5).contains(&kind) {
        fail!(code::INVALID_PARAM, "there is no copy of kind {kind}");
    }
    fits(bytes, most)
}

fn fits(bytes: usize, most: usize) -> Result {
    if bytes > most {
        fail!(code::RT_PARAM_INVALID, "{bytes} bytes do not fit into {most}");
    }
    Ok(())
}
