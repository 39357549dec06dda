//! Faults that are asked for.

use crate::support::*;
use cresset_acl::code;
use std::ptr::null_mut;

#[test]
fn the_call_that_is_told_to_fail_does() {
    if !is_child() {
        let faults = "aclrtMalloc:3:207001,aclnnNeg:2:507015,aclnnExpGetWorkspaceSize:1:161002";
        return alone("fault::the_call_that_is_told_to_fail_does", &[("CRESSET_SIM_FAIL", faults)]);
    }
    open();
    let (x, out) = (Tensor::new(&[2], &[1.0, 2.0]), Tensor::new(&[2], &[0.0; 2]));
    let mut address = null_mut();
    // SAFETY: the place may be written.
    let (code, text) = failure(unsafe { aclrtMalloc(&mut address, 64, 0) });
    assert_eq!(code, code::RT_MEMORY_ALLOCATION);
    assert_eq!(text, "aclrtMalloc: injected ACL_ERROR_RT_MEMORY_ALLOCATION at call 3");
    Block::new(64);
    run!(neg(x.raw, out.raw)).unwrap();
    let text = "aclrtSynchronizeStream: aclnnNeg: injected ACL_ERROR_RT_AICORE_EXCEPTION at call 2";
    assert_eq!(run!(neg(x.raw, out.raw)), Err((code::RT_AICORE_EXCEPTION, text.into())));
    run!(neg(x.raw, out.raw)).unwrap();
    assert_eq!(run!(exp(x.raw, out.raw)).unwrap_err().0, code::NN_PARAM_INVALID);
    run!(exp(x.raw, out.raw)).unwrap();
}

#[test]
fn calls_fail_come_late_or_are_lost_by_the_word_of_a_program() {
    const NAME: &str = "fault::calls_fail_come_late_or_are_lost_by_the_word_of_a_program";
    if !is_child() {
        return alone(NAME, &[]);
    }
    open();
    let fault = |list: &str| configure("CRESSET_SIM_FAIL", list).unwrap();
    fault("aclCreateScalar:2:100000");
    let made = [1.0, 2.0, 3.0].map(|value| scalar(value).is_null());
    assert_eq!(made, [false, true, false]);
    assert_eq!(report("faults").unwrap(), "aclCreateScalar:2:100000 1\n");

    let mut subscriber = null_mut();
    fault("mspti*:1:15");
    // SAFETY: the place may be written, and the callback is never called.
    let codes = [(); 2].map(|()| unsafe { msptiSubscribe(&mut subscriber, std::ptr::null(), null_mut()) });
    assert_eq!(codes, [15, 0], "functions of the tracing library can fail too");

    let x = Tensor::new(&[2], &[1.0, 2.0]);
    let out = Tensor::new(&[2], &[5.0, 6.0]);
    fault("aclnnNeg:1:drop");
    run!(neg(x.raw, out.raw)).unwrap();
    assert_eq!(out.get(), [5.0, 6.0], "the device claims to have computed, and has not");
    fault("aclrtSynchronizeStream:1:delay=20ms");
    let begin = std::time::Instant::now();
    run!(neg(x.raw, out.raw)).unwrap();
    assert!(begin.elapsed() >= std::time::Duration::from_millis(20));
    assert_eq!(out.get(), [-1.0, -2.0]);

    fault("*:1..:507015");
    // SAFETY: a plain call.
    assert_eq!(failure(unsafe { aclrtSynchronizeDevice() }).0, code::RT_AICORE_EXCEPTION);
    fault("");
    // SAFETY: a plain call.
    ok(unsafe { aclrtSynchronizeDevice() });
    assert!(configure("CRESSET_SIM_FAIL", "aclrtMalloc").unwrap_err().contains("function:calls:effect"));
    assert!(configure("CRESSET_SIM_MEMORY", "5").unwrap_err().contains("cannot be changed any more"));
}
