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
