//! Marks that programs set: points and ranges with names, on the host and in streams.
#![allow(non_snake_case, reason = "the names are those of C")]

use crate::context::Context;
use crate::handle::Handles;
use crate::marker::{self, Range};
use cresset_acl::record::flag;
use cresset_acl::types::{Stream, c_char, c_void};
use std::ffi::CStr;

/// Domains by handle: their names.
static DOMAINS: Handles<&'static CStr> = Handles::new(14, "domain of markers");

const DEFAULT: &CStr = c"default";

/// # Safety
/// `text` is null or ended by a zero byte.
unsafe fn kept(text: *const c_char) -> &'static CStr {
    // SAFETY: by the caller's promise.
    if text.is_null() { c"" } else { marker::keep(unsafe { CStr::from_ptr(text) }) }
}

/// The name of a domain; the default one for null or what is no domain.
fn domain_of(domain: *mut c_void) -> &'static CStr {
    DOMAINS.get(domain as usize).map_or(DEFAULT, |name| *name)
}

fn mark(domain: &'static CStr, message: &'static CStr, stream: Stream) {
    let stream = if stream.is_null() { None } else { stream_of(stream) };
    marker::mark(domain, message, marker::next_id(), [flag::INSTANT, flag::INSTANT_WITH_DEVICE], stream);
}

fn stream_of(stream: Stream) -> Option<std::sync::Arc<crate::stream::Stream>> {
    Context::current().and_then(|context| context.stream(stream as usize)).ok()
}

fn start(domain: &'static CStr, message: &'static CStr, stream: Stream) -> u64 {
    let stream = if stream.is_null() { None } else { stream_of(stream) };
    Range { domain, message, stream }.start()
}

/// Marks a point, on a stream too unless that is null.
///
/// # Safety
/// `message` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mstxMarkA(message: *const c_char, stream: Stream) {
    // SAFETY: by the caller's promise.
    mark(DEFAULT, unsafe { kept(message) }, stream);
}

/// Starts a range, on a stream too unless that is null.
///
/// # Safety
/// `message` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mstxRangeStartA(message: *const c_char, stream: Stream) -> u64 {
    // SAFETY: by the caller's promise.
    start(DEFAULT, unsafe { kept(message) }, stream)
}

/// Ends a range.
///
/// # Safety
/// None: the range is looked up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mstxRangeEnd(range: u64) {
    marker::end(range);
}

/// Makes a domain, whose markers are told apart.
///
/// # Safety
/// `name` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mstxDomainCreateA(name: *const c_char) -> *mut c_void {
    // SAFETY: by the caller's promise.
    DOMAINS.insert(unsafe { kept(name) }) as *mut c_void
}

/// Ends a domain.
///
/// # Safety
/// None: a handle is checked, never followed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mstxDomainDestroy(domain: *mut c_void) {
    DOMAINS.remove(domain as usize);
}

/// Marks a point in a domain.
///
/// # Safety
/// `message` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mstxDomainMarkA(domain: *mut c_void, message: *const c_char, stream: Stream) {
    // SAFETY: by the caller's promise.
    mark(domain_of(domain), unsafe { kept(message) }, stream);
}

/// Starts a range in a domain.
///
/// # Safety
/// `message` is null or text ended by a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mstxDomainRangeStartA(
    domain: *mut c_void,
    message: *const c_char,
    stream: Stream,
) -> u64 {
    // SAFETY: by the caller's promise.
    start(domain_of(domain), unsafe { kept(message) }, stream)
}

/// Ends a range of a domain.
///
/// # Safety
/// None: the range is looked up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mstxDomainRangeEnd(_domain: *mut c_void, range: u64) {
    marker::end(range);
}
