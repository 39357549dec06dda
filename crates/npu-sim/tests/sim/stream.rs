//! Streams: asynchronous and in order.

use crate::support::*;
use cresset_acl::{code, constant};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// Puts `count` fills of a block on a stream; with a delay per task they take a while.
fn fill(stream: cresset_acl::types::Stream, block: &Block, count: i32) {
    for value in 1..=count {
        // SAFETY: device memory.
        ok(unsafe { aclrtMemsetAsync(block.0, 64, value, 64, stream) });
    }
}

#[test]
fn tasks_run_in_order_and_the_caller_goes_on() {
    if !is_child() {
        let test = "stream::tasks_run_in_order_and_the_caller_goes_on";
        return alone(test, &[("CRESSET_SIM_DELAY_US", "20000")]);
    }
    open();
    let (stream, block) = (new_stream(), Block::new(64));
    let start = Instant::now();
    fill(stream, &block, 5);
    let mut status = -1;
    // SAFETY: the place may be written.
    unsafe {
        ok(aclrtStreamQuery(stream, &mut status));
        assert_eq!(status, constant::stream::NOT_READY, "launching does not wait for the tasks");
        assert_eq!(failure(aclrtSynchronizeStreamWithTimeout(stream, 1)).0, code::RT_STREAM_SYNC_TIMEOUT);
        assert_eq!(failure(aclrtSynchronizeStreamWithTimeout(stream, -2)).0, code::RT_PARAM_INVALID);
        ok(aclrtSynchronizeStreamWithTimeout(stream, -1));
        assert!(start.elapsed() >= Duration::from_millis(100));
        ok(aclrtStreamQuery(stream, &mut status));
        assert_eq!(status, constant::stream::COMPLETE);
    }
    assert_eq!(block.get::<u8>(64), [5; 64]);
    fill(stream, &block, 3);
    // SAFETY: a plain call, which finishes the work first.
    ok(unsafe { aclrtDestroyStream(stream) });
    assert_eq!(block.get::<u8>(64), [3; 64]);
}

#[test]
fn an_error_comes_with_the_next_wait_and_only_once() {
    open();
    let (stream, mut host) = (new_stream(), [0u8; 64]);
    // SAFETY: the address is wrong on purpose, and only looked at.
    ok(unsafe { aclrtMemsetAsync(host.as_mut_ptr().cast(), 64, 1, 64, stream) });
    let block = Block::new(64);
    fill(stream, &block, 2);
    // SAFETY: plain calls.
    unsafe {
        let (code, text) = failure(aclrtSynchronizeStream(stream));
        assert_eq!(code, code::RT_AICORE_EXCEPTION);
        assert!(
            text.contains("aclrtMemsetAsync") && text.ends_with("is not memory of this device"),
            "{text}"
        );
        ok(aclrtSynchronizeStream(stream));
    }
    assert_eq!(block.get::<u8>(64), [2; 64], "the stream goes on after a failure");
    assert_eq!(host, [0; 64]);
}

#[test]
fn streams_have_small_ids_of_their_own() {
    open();
    let (mut one, mut two) = (-1, -1);
    let (first, second) = (new_stream(), new_stream());
    // SAFETY: the places may be written.
    unsafe {
        ok(aclrtStreamGetId(first, &mut one));
        ok(aclrtStreamGetId(second, &mut two));
        assert!(one >= 0 && two >= 0 && one != two);
        ok(aclrtStreamGetId(null_mut(), &mut one));
        ok(aclrtDestroyStream(first));
        ok(aclrtDestroyStream(second));
    }
}

#[test]
fn threads_with_streams_of_their_own_do_not_disturb_each_other() {
    let worker = |seed: f32| {
        move || {
            open();
            let (x, y) = (Tensor::new(&[64], &[seed; 64]), Tensor::scattered(&[64], &[1.0; 64]));
            for _ in 0..200 {
                run!(inplace_add(x.raw, y.raw, scalar(1.0))).unwrap();
            }
            assert_eq!(x.get(), [seed + 200.0; 64]);
        }
    };
    let threads: Vec<_> = (0..4).map(|seed| std::thread::spawn(worker(seed as f32))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn kernels_that_race_give_one_order_or_the_other() {
    open();
    let (one, two) = (new_stream(), new_stream());
    let block = Block::new(1 << 16);
    for _ in 0..50 {
        // SAFETY: device memory; the missing event is what is tested.
        unsafe {
            ok(aclrtMemsetAsync(block.0, 1 << 16, 1, 1 << 16, one));
            ok(aclrtMemsetAsync(block.0, 1 << 16, 2, 1 << 16, two));
            ok(aclrtSynchronizeStream(one));
            ok(aclrtSynchronizeStream(two));
        }
        let bytes = block.get::<u8>(1 << 16);
        assert!(bytes.iter().all(|&byte| byte == bytes[0]) && (1..=2).contains(&bytes[0]));
    }
}
