//! Events, within a stream and across two.

use crate::support::*;
use cresset_acl::types::Event;
use cresset_acl::{code, constant};
use std::ptr::null_mut;

fn event(flags: u32) -> Event {
    let mut event = null_mut();
    // SAFETY: the place may be written.
    ok(unsafe { aclrtCreateEventExWithFlag(&mut event, flags) });
    event
}

fn is_complete(event: Event) -> bool {
    let mut status = -1;
    // SAFETY: the place may be written.
    ok(unsafe { aclrtQueryEventStatus(event, &mut status) });
    status == constant::event::RECORDED_COMPLETE
}

#[test]
fn a_stream_waits_for_the_record_that_was_last_when_it_was_told_to() {
    if !is_child() {
        let test = "event::a_stream_waits_for_the_record_that_was_last_when_it_was_told_to";
        return alone(test, &[("CRESSET_SIM_DELAY_US", "20000")]);
    }
    open();
    let (slow, fast, block) = (new_stream(), new_stream(), Block::new(64));
    let done = event(constant::event::SYNC);
    assert!(is_complete(done), "an event without a record counts as reached");
    // SAFETY: device memory and live handles.
    unsafe {
        ok(aclrtStreamWaitEvent(fast, done));
        for value in 1..=3 {
            ok(aclrtMemsetAsync(block.0, 64, value, 64, slow));
        }
        ok(aclrtRecordEvent(done, slow));
        ok(aclrtStreamWaitEvent(fast, done));
        ok(aclrtMemsetAsync(block.0, 64, 9, 64, fast));
        // A later record, and even the end of the event, change nothing for who waits.
        ok(aclrtRecordEvent(done, slow));
        assert!(!is_complete(done));
        ok(aclrtDestroyEvent(done));
        ok(aclrtSynchronizeDevice());
        assert_eq!(failure(aclrtDestroyEvent(done)).0, code::RT_INVALID_HANDLE);
    }
    assert_eq!(block.get::<u8>(64), [9; 64]);
}

#[test]
fn time_passes_in_ticks_of_twenty_nanoseconds() {
    open();
    let (start, end, block) = (event(0x8), event(0x8), Block::new(1 << 20));
    let mut elapsed = -1.0f32;
    // SAFETY: the place may be written.
    unsafe {
        assert_eq!(failure(aclrtEventElapsedTime(&mut elapsed, start, end)).0, code::RT_INTERNAL_ERROR);
        ok(aclrtRecordEvent(start, null_mut()));
        ok(aclrtMemsetAsync(block.0, 1 << 20, 1, 1 << 20, null_mut()));
        ok(aclrtRecordEvent(end, null_mut()));
        ok(aclrtSynchronizeEvent(end));
        ok(aclrtEventElapsedTime(&mut elapsed, start, end));
        let forwards = elapsed;
        ok(aclrtEventElapsedTime(&mut elapsed, end, start));
        assert!(forwards > 0.0 && elapsed == -forwards, "{forwards} {elapsed}");
        let ticks = f64::from(forwards) * 1e6 / 20.0;
        assert!((ticks - ticks.round()).abs() < 0.01 + ticks * 1e-7, "{ticks}");
    }
}

#[test]
fn an_event_does_what_its_flags_say() {
    open();
    let (untimed, unwaited) = (event(constant::event::SYNC), event(constant::event::TIME_LINE));
    let (mut elapsed, mut none) = (0.0, null_mut());
    // SAFETY: the places may be written.
    unsafe {
        ok(aclrtRecordEvent(untimed, null_mut()));
        ok(aclrtSynchronizeEvent(untimed));
        let status = aclrtEventElapsedTime(&mut elapsed, untimed, untimed);
        assert_eq!(failure(status).0, code::RT_EVENT_TIMESTAMP_INVALID);
        assert_eq!(failure(aclrtStreamWaitEvent(null_mut(), unwaited)).0, code::RT_PARAM_INVALID);
        assert_eq!(failure(aclrtCreateEventExWithFlag(&mut none, 0)).0, code::RT_PARAM_INVALID);
    }
}
