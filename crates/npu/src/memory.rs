//! Device memory in large pieces, and copies to and from it.
//!
//! Device addresses are plain numbers here: the host never follows them.

use crate::activity::launching;
use crate::device;
use crate::status::{self, AclResult};
use crate::stream::Stream;
use crate::sys::call;
use cresset_acl::constant::{copy, malloc};
use std::ffi::c_void;
use std::ptr;

/// A piece of device memory from the library, freed on drop.
///
/// Freeing does not wait for queued work: whoever drops it has waited.
pub(crate) struct Segment {
    device: u8,
    address: usize,
}

impl Segment {
    pub(crate) fn new(device: u8, bytes: usize) -> AclResult<Segment> {
        device::bind(device)?;
        let mut address = ptr::null_mut();
        // SAFETY: the result has a place.
        unsafe { call!(aclrtMalloc(&mut address, bytes, malloc::HUGE_FIRST)) }?;
        Ok(Segment { device, address: address as usize })
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if device::is_gone(self.device) {
            return;
        }
        status::keep(device::bind(self.device));
        // SAFETY: allocated by `new`, freed once.
        status::keep(unsafe { call!(aclrtFree(self.address as *mut c_void)) });
    }
}

/// Copies host bytes to device address `to` after the work of `stream` so far, and waits.
///
/// The plain copy function would not wait for streams, so the copy goes through one.
pub(crate) fn upload(from: &[u8], to: usize, stream: &Stream) -> AclResult {
    device::bind(stream.device_index())?;
    let (bytes, from, to) = (from.len(), from.as_ptr().cast(), to as *mut c_void);
    {
        let _launching = launching();
        // SAFETY: `from` is readable for `bytes`, and borrowed until the stream is done below.
        unsafe { call!(aclrtMemcpyAsync(to, bytes, from, bytes, copy::HOST_TO_DEVICE, stream.raw())) }?;
    }
    stream.finish()
}

/// Copies bytes from device address `from` after the work of `stream` so far, and waits.
pub(crate) fn download(from: usize, to: &mut [u8], stream: &Stream) -> AclResult {
    device::bind(stream.device_index())?;
    let (bytes, from, to) = (to.len(), from as *const c_void, to.as_mut_ptr().cast());
    {
        let _launching = launching();
        // SAFETY: `to` is writable for `bytes`, and borrowed until the stream is done below.
        unsafe { call!(aclrtMemcpyAsync(to, bytes, from, bytes, copy::DEVICE_TO_HOST, stream.raw())) }?;
    }
    stream.finish()
}
