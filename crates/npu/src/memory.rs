//! Device memory in large pieces.
//!
//! Device addresses are plain numbers here: the host never follows them.

use crate::device;
use crate::status::{self, AclResult};
use crate::sys::call;
use cresset_acl::constant::malloc;
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
