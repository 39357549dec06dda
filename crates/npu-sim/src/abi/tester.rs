//! Functions of our own, for programs that test with the simulated device.
#![allow(non_snake_case, reason = "the names are in the style of C")]

use crate::error::{call_unharmed, fail};
use crate::{config, tester};
use cresset_acl::code;
use cresset_acl::types::{Status, c_char};
use std::cell::RefCell;
use std::ffi::{CStr, CString};

/// Tells that this is the simulator, and which.
#[unsafe(no_mangle)]
pub extern "C" fn cressetSimVersion() -> *const c_char {
    const VERSION: &str = concat!("cresset-npu-sim ", env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Changes a setting while the program runs, by the name of its environment variable.
///
/// # Safety
/// Both are null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cressetSimConfigure(variable: *const c_char, value: *const c_char) -> Status {
    call_unharmed(code::RT_INTERNAL_ERROR, "cressetSimConfigure", || {
        if variable.is_null() || value.is_null() {
            fail!(code::INVALID_PARAM, "the variable or its value is null");
        }
        // SAFETY: not null, so the caller vouches for them.
        let (variable, value) = unsafe { (CStr::from_ptr(variable), CStr::from_ptr(value)) };
        config::change(&variable.to_string_lossy(), &value.to_string_lossy())
    })
}

/// The text of [`report`](crate::report()) about something; valid until this thread asks again. Null for
/// anything that is not known there.
///
/// # Safety
/// `what` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cressetSimReport(what: *const c_char) -> *const c_char {
    thread_local!(static TEXT: RefCell<CString> = RefCell::default());
    if what.is_null() {
        return std::ptr::null();
    }
    // SAFETY: not null, so the caller vouches for it.
    let what = unsafe { CStr::from_ptr(what) }.to_string_lossy();
    let Some(text) = tester::report(&what) else { return std::ptr::null() };
    TEXT.set(CString::new(text).unwrap_or_default());
    TEXT.with_borrow(|text| text.as_ptr())
}
