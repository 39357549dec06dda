//! Devices, contexts and threads.

use crate::support::*;
use cresset_acl::code;
use std::ptr::{null, null_mut};
use std::thread;

#[test]
fn a_thread_without_a_device_is_told_so() {
    open();
    // SAFETY: a plain call.
    ok(unsafe { aclrtSetDevice(0) });
    let stream = new_stream() as usize;
    thread::spawn(move || {
        let (mut address, mut device) = (null_mut(), 0);
        // SAFETY: the places may be written.
        unsafe {
            for status in [
                aclrtMalloc(&mut address, 64, 0),
                aclrtGetDevice(&mut device),
                aclrtSynchronizeDevice(),
                aclrtSynchronizeStream(stream as _),
                aclrtCreateStream(&mut address),
            ] {
                let (code, text) = failure(status);
                assert_eq!(code, code::RT_CONTEXT_NULL);
                assert!(text.is_empty() || text.contains("this thread has no context"), "{text}");
            }
            ok(aclrtSetDevice(0));
            ok(aclrtSynchronizeStream(stream as _));
        }
    })
    .join()
    .unwrap();
}

#[test]
fn a_stream_of_another_context_is_refused() {
    open();
    // SAFETY: a plain call.
    ok(unsafe { aclrtSetDevice(0) });
    let stream = new_stream();
    let (mut primary, mut other) = (null_mut(), null_mut());
    // SAFETY: the places may be written.
    unsafe {
        ok(aclrtGetCurrentContext(&mut primary));
        ok(aclrtCreateContext(&mut other, 0));
        assert_eq!(failure(aclrtSynchronizeStream(stream)).0, code::RT_STREAM_CONTEXT);
        ok(aclrtSetCurrentContext(primary));
        ok(aclrtSynchronizeStream(stream));
        assert_eq!(failure(aclrtDestroyContext(primary)).0, code::RT_PARAM_INVALID);
        ok(aclrtDestroyContext(other));
        assert_eq!(failure(aclrtSetCurrentContext(other)).0, code::RT_CONTEXT_NULL);
        ok(aclrtDestroyStream(stream));
        assert_eq!(failure(aclrtDestroyStream(stream)).0, code::RT_INVALID_HANDLE);
    }
}

#[test]
fn start_and_end_are_counted() {
    if !is_child() {
        return alone("context::start_and_end_are_counted", &[("CRESSET_SIM_DEVICES", "2")]);
    }
    let (mut count, mut device) = (0, 9);
    // SAFETY: the places may be written.
    unsafe {
        assert_eq!(failure(aclrtSetDevice(0)).0, code::UNINITIALIZE);
        ok(aclInit(null()));
        assert_eq!(aclInit(null()), code::REPEAT_INITIALIZE);
        ok(aclrtGetDeviceCount(&mut count));
        assert_eq!(count, 2);
        let (code, text) = failure(aclrtSetDevice(2));
        assert_eq!(
            (code, text.as_str()),
            (code::RT_INVALID_DEVICEID, "aclrtSetDevice: there is no device 2: there are 2")
        );
        ok(aclrtSetDevice(1));
        ok(aclrtSetDevice(1));
        ok(aclrtGetDevice(&mut device));
        assert_eq!(device, 1);
        ok(aclrtResetDevice(1));
        ok(aclrtSynchronizeDevice());
        ok(aclrtResetDevice(1));
        assert_eq!(failure(aclrtSynchronizeDevice()).0, code::RT_CONTEXT_NULL);
        ok(aclFinalize());
        assert_eq!(failure(aclFinalize()).0, code::REPEAT_FINALIZE);
    }
}

#[test]
fn a_text_is_given_once() {
    open();
    // SAFETY: a plain call.
    assert_ne!(unsafe { aclrtFree(null_mut()) }, 0);
    assert_eq!(recent(), "aclrtFree: the address is null");
    assert_eq!(recent(), "");
}

#[test]
fn the_device_says_that_it_is_simulated() {
    // SAFETY: both texts live for ever.
    let (soc, version) = unsafe {
        (std::ffi::CStr::from_ptr(aclrtGetSocName()), std::ffi::CStr::from_ptr(cressetSimVersion()))
    };
    assert_eq!(soc, c"Ascend910B3 (simulated)");
    assert!(version.to_str().unwrap().starts_with(NAME));
}
