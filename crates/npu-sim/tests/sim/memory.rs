//! Device memory: opaque, finite, checked.

use crate::support::*;
use cresset_acl::{code, constant::copy};
use std::os::unix::process::ExitStatusExt as _;
use std::ptr::null_mut;

#[test]
fn a_host_that_follows_a_device_pointer_faults() {
    if !is_child() {
        let output = child("memory::a_host_that_follows_a_device_pointer_faults", &[]);
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{output:?}");
        return;
    }
    open();
    let block = Block::new(64);
    // SAFETY: none; the fault is what is tested.
    let byte = unsafe { block.0.cast::<u8>().read_volatile() };
    println!("read {byte}");
}

#[test]
fn memory_is_finite_counted_and_given_back() {
    if !is_child() {
        let test = "memory::memory_is_finite_counted_and_given_back";
        return alone(test, &[("CRESSET_SIM_MEMORY", "1000000")]);
    }
    open();
    let room = || {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the places may be written.
        ok(unsafe { aclrtGetMemInfo(1, &mut free, &mut total) });
        (free, total)
    };
    assert_eq!(room(), (1_000_000, 1_000_000));
    let block = Block::new(600_001);
    assert_eq!(room().0, 1_000_000 - 600_032 - 32);
    let mut address = null_mut();
    // SAFETY: the place may be written.
    let (code, text) = failure(unsafe { aclrtMalloc(&mut address, 500_000, 0) });
    assert_eq!(code, code::RT_MEMORY_ALLOCATION);
    let expected =
        "aclrtMalloc: device 0: out of device memory: asked for 500000 bytes, 399936 of 1000000 are free";
    assert_eq!(text, expected);
    drop(block);
    assert_eq!(room().0, 1_000_000);
    Block::new(900_000);
}

#[test]
fn fresh_memory_is_not_a_number() {
    open();
    for count in [1, 7, 1 << 19] {
        let block = Block::new(count * 4);
        assert!(block.get::<f32>(count).iter().all(|value| value.is_nan()));
        assert!(block.get::<f64>(count / 2).iter().all(|value| value.is_nan()));
        assert_eq!(block.0 as usize % 64, 0);
    }
}

#[test]
fn memory_is_freed_once_and_not_used_afterwards() {
    open();
    let block = Block::new(64);
    let mut host = [0u8; 64];
    // SAFETY: the addresses are checked; the host memory may be written.
    unsafe {
        assert_eq!(failure(aclrtFree(block.0.wrapping_byte_add(8))).0, code::RT_PARAM_INVALID);
        ok(aclrtFree(block.0));
        assert_eq!(failure(aclrtFree(block.0)).0, code::RT_PARAM_INVALID);
        let (code, text) =
            failure(aclrtMemcpy(host.as_mut_ptr().cast(), 64, block.0, 64, copy::DEVICE_TO_HOST));
        assert_eq!(code, code::RT_AICORE_EXCEPTION);
        assert!(text.ends_with("is freed or was never allocated"), "{text}");
        assert_eq!(failure(aclrtFree(host.as_mut_ptr().cast())).0, code::RT_PARAM_INVALID);
    }
}

#[test]
fn an_access_may_not_reach_beyond_its_block() {
    open();
    let block = Block::new(40);
    // SAFETY: the address is checked.
    let (code, text) = failure(unsafe { aclrtMemset(block.0, 64, 0, 41) });
    assert_eq!(code, code::RT_AICORE_EXCEPTION);
    assert!(text.contains("reaches beyond the block of 40 bytes"), "{text}");
}

#[test]
fn sizes_and_kinds_of_copies_are_checked() {
    open();
    let (block, mut host) = (Block::of(&[7u8; 64]), [0u8; 64]);
    let to = host.as_mut_ptr().cast();
    // SAFETY: the host memory may be written.
    unsafe {
        assert_eq!(failure(aclrtMemcpy(to, 63, block.0, 64, copy::DEVICE_TO_HOST)).0, code::RT_PARAM_INVALID);
        assert_eq!(failure(aclrtMemcpy(to, 64, block.0, 64, 7)).0, code::INVALID_PARAM);
        ok(aclrtMemcpy(to, 64, block.0, 0, copy::DEVICE_TO_HOST));
        assert_eq!(host[0], 0);
        // The direction comes from the addresses, whatever the kind says.
        ok(aclrtMemcpy(to, 64, block.0, 64, copy::HOST_TO_HOST));
        assert_eq!(host, [7; 64]);
        let stream = new_stream();
        let status = aclrtMemcpyAsync(to, 64, block.0, 64, copy::HOST_TO_HOST, stream);
        assert_eq!(failure(status).0, code::RT_FEATURE_NOT_SUPPORT);
        ok(aclrtMemcpyAsync(to, 64, block.0, 64, copy::HOST_TO_DEVICE, stream));
        assert_eq!(failure(aclrtSynchronizeStream(stream)).0, code::RT_AICORE_EXCEPTION);
        ok(aclrtDestroyStream(stream));
        let mut address = null_mut();
        assert_eq!(failure(aclrtMalloc(&mut address, 0, 0)).0, code::INVALID_PARAM);
    }
}

#[test]
fn copies_of_pinned_memory_happen_later_and_of_other_memory_at_once() {
    if !is_child() {
        let test = "memory::copies_of_pinned_memory_happen_later_and_of_other_memory_at_once";
        return alone(test, &[("CRESSET_SIM_DELAY_US", "30000")]);
    }
    open();
    let block = Block::new(8);
    let mut pinned = null_mut();
    // SAFETY: the pinned memory is ours for eight bytes.
    unsafe {
        ok(aclrtMallocHost(&mut pinned, 8));
        let value = pinned.cast::<u64>();
        value.write(1);
        ok(aclrtMemcpyAsync(block.0, 8, pinned, 8, copy::HOST_TO_DEVICE, null_mut()));
        value.write(2);
        ok(aclrtSynchronizeStream(null_mut()));
        assert_eq!(block.get::<u64>(1), [2], "a change before the copy is seen");

        let mut pageable = 3u64;
        ok(aclrtMemcpyAsync(block.0, 8, (&raw const pageable).cast(), 8, copy::HOST_TO_DEVICE, null_mut()));
        (&raw mut pageable).write_volatile(4);
        ok(aclrtSynchronizeStream(null_mut()));
        assert_eq!(block.get::<u64>(1), [3]);

        ok(aclrtMemcpyAsync(block.0, 8, pinned, 8, copy::HOST_TO_DEVICE, null_mut()));
        ok(aclrtFreeHost(pinned));
        let (code, text) = failure(aclrtSynchronizeStream(null_mut()));
        assert_eq!(code, code::RT_AICORE_EXCEPTION);
        assert!(text.contains("was freed before it was copied"), "{text}");
        assert_eq!(failure(aclrtFreeHost(pinned)).0, code::RT_PARAM_INVALID);
    }
}

#[test]
fn devices_have_memory_of_their_own() {
    if !is_child() {
        return alone("memory::devices_have_memory_of_their_own", &[("CRESSET_SIM_DEVICES", "2")]);
    }
    open();
    let first = Block::of(&[5u8; 64]);
    // SAFETY: plain calls.
    ok(unsafe { aclrtSetDevice(1) });
    let second = Block::new(64);
    // SAFETY: both blocks are alive.
    unsafe {
        let (_, text) = failure(aclrtMemcpy(second.0, 64, first.0, 64, copy::DEVICE_TO_DEVICE));
        assert!(text.contains("aclrtDeviceEnablePeerAccess"), "{text}");
        ok(aclrtDeviceEnablePeerAccess(0, 0));
        ok(aclrtMemcpy(second.0, 64, first.0, 64, copy::DEVICE_TO_DEVICE));
        ok(aclrtMemsetAsync(first.0, 64, 1, 64, null_mut()));
        let (code, text) = failure(aclrtSynchronizeDevice());
        assert_eq!(code, code::RT_AICORE_EXCEPTION);
        assert!(text.ends_with("is not memory of this device"), "{text}");
    }
    assert_eq!(second.get::<u8>(64), [5; 64]);
}
