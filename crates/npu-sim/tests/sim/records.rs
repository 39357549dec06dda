//! Activity records.

use crate::support::*;
use cresset_acl::constant::copy;
use cresset_acl::record::{Api, ExternalCorrelation, Kernel, Memcpy, Memset, external, kind, result};
use cresset_acl::types::c_char;
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Mutex;

/// What came out of the buffers, in short.
#[derive(Clone, Debug, PartialEq)]
enum Record {
    Kernel { name: String, unit: String, start: u64, end: u64, stream: u32, correlation: u64 },
    Api { name: String, thread: u32, start: u64, end: u64, correlation: u64 },
    Memcpy { direction: u32, bytes: u64, correlation: u64 },
    Memset { value: u32, correlation: u64 },
    External { id: u64, correlation: u64 },
}

static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());
/// Small, so that buffers fill up.
const SIZE: usize = 600;
const LAYOUT: Layout = Layout::new::<[u64; SIZE / 8]>();

unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    // SAFETY: the library gives places to write to.
    unsafe {
        buffer.write(alloc(LAYOUT));
        size.write(SIZE);
        most.write(0);
    }
}

unsafe extern "C" fn completed(buffer: *mut u8, _size: usize, valid: usize) {
    let mut record = null_mut();
    // SAFETY: the library filled `valid` bytes, and gives addresses of records among them.
    unsafe {
        while msptiActivityGetNextRecord(buffer, valid, &mut record) == result::SUCCESS {
            RECORDS.lock().unwrap().push(read(record));
        }
        dealloc(buffer, LAYOUT);
    }
}

/// # Safety
/// A record of the library.
unsafe fn read(at: *const u8) -> Record {
    // SAFETY: the kind says what follows it.
    unsafe {
        match at.cast::<u32>().read_unaligned() {
            kind::KERNEL => {
                let Kernel { name, unit, start, end, stream, correlation, .. } =
                    at.cast::<Kernel>().read_unaligned();
                Record::Kernel { name: text(name), unit: text(unit), start, end, stream, correlation }
            }
            kind::API => {
                let Api { name, thread, start, end, correlation, .. } = at.cast::<Api>().read_unaligned();
                Record::Api { name: text(name), thread, start, end, correlation }
            }
            kind::MEMCPY => {
                let Memcpy { direction, bytes, correlation, .. } = at.cast::<Memcpy>().read_unaligned();
                Record::Memcpy { direction, bytes, correlation }
            }
            kind::MEMSET => {
                let Memset { value, correlation, .. } = at.cast::<Memset>().read_unaligned();
                Record::Memset { value, correlation }
            }
            kind::EXTERNAL_CORRELATION => {
                let ExternalCorrelation { id, correlation, .. } =
                    at.cast::<ExternalCorrelation>().read_unaligned();
                Record::External { id, correlation }
            }
            other => panic!("a record of kind {other}"),
        }
    }
}

/// # Safety
/// Text ended by a zero byte.
unsafe fn text(start: *const c_char) -> String {
    // SAFETY: by the caller's promise.
    unsafe { CStr::from_ptr(start) }.to_str().unwrap().to_owned()
}

fn flush() -> Vec<Record> {
    // SAFETY: a plain call.
    assert_eq!(unsafe { msptiActivityFlushAll(1) }, result::SUCCESS);
    std::mem::take(&mut RECORDS.lock().unwrap())
}

const KINDS: [u32; 5] = [kind::KERNEL, kind::API, kind::MEMCPY, kind::MEMSET, kind::EXTERNAL_CORRELATION];

#[test]
fn records_of_a_launch_share_a_correlation_id() {
    if !is_child() {
        return alone("records::records_of_a_launch_share_a_correlation_id", &[]);
    }
    open();
    assert!(symbol("aclInit").is_some(), "embedded");
    let (x, out) = (Tensor::new(&[2, 2], &[1.0; 4]), Tensor::new(&[2, 2], &[0.0; 4]));
    let mut subscriber = null_mut();
    // SAFETY: the places may be written, the functions are as they must be.
    unsafe {
        assert_eq!(msptiSubscribe(&mut subscriber, std::ptr::null(), null_mut()), result::SUCCESS);
        let mut second = null_mut();
        assert_eq!(msptiSubscribe(&mut second, std::ptr::null(), null_mut()), result::MULTIPLE_SUBSCRIBERS);
        assert_eq!(msptiActivityRegisterCallbacks(requested, completed), result::SUCCESS);
        for kind in KINDS {
            assert_eq!(msptiActivityEnable(kind), result::SUCCESS);
        }
        assert_eq!(msptiActivityEnable(99), result::INVALID_PARAMETER);
    }
    run!(relu(x.raw, out.raw)).unwrap();
    // SAFETY: plain calls.
    unsafe { msptiActivityPushExternalCorrelationId(external::CUSTOM0, 77) };
    run!(mm(x.raw, x.raw, out.raw, 0)).unwrap();
    let mut last = 0;
    // SAFETY: the place may be written.
    unsafe {
        assert_eq!(msptiActivityPopExternalCorrelationId(external::CUSTOM0, &mut last), result::SUCCESS);
        assert_eq!(last, 77);
        let status = msptiActivityPopExternalCorrelationId(external::CUSTOM0, &mut last);
        assert_eq!(status, result::INVALID_PARAMETER);
    }
    check_launches(&flush());
    check_transfers();
    // SAFETY: plain calls.
    unsafe {
        for kind in KINDS {
            assert_eq!(msptiActivityDisable(kind), result::SUCCESS);
        }
        assert_eq!(msptiUnsubscribe(subscriber), result::SUCCESS);
        assert_eq!(msptiUnsubscribe(subscriber), result::INVALID_PARAMETER);
    }
    flush();
    run!(relu(x.raw, out.raw)).unwrap();
    assert_eq!(flush(), [], "nothing is collected that nobody asked for");
}

fn check_launches(records: &[Record]) {
    let mut seen = Vec::new();
    for (api, kernel, kernel_unit) in
        [("aclnnRelu", "Relu", "KERNEL_AIVEC"), ("aclnnMm", "MatMulV2", "KERNEL_AICORE")]
    {
        let call = records.iter().find_map(|record| match record {
            Record::Api { name, thread, start, end, correlation } if name == api => {
                assert!(start <= end);
                // SAFETY: a plain call.
                assert_eq!(*thread, unsafe { libc::gettid() } as u32);
                Some((*correlation, *start))
            }
            _ => None,
        });
        let (id, called) = call.expect("the call is recorded");
        let ran = records.iter().any(|record| {
            matches!(record, Record::Kernel { name, unit, start, end, correlation, .. }
                if name == kernel && unit == kernel_unit && *correlation == id && called <= *start && start <= end)
        });
        assert!(id > 0 && ran, "{records:?}");
        seen.push(id);
    }
    let external: Vec<&Record> =
        records.iter().filter(|record| matches!(record, Record::External { .. })).collect();
    assert_eq!(external, [&Record::External { id: 77, correlation: seen[1] }]);
}

fn check_transfers() {
    let block = Block::of(&[1u8; 48]);
    // SAFETY: device memory.
    ok(unsafe { aclrtMemsetAsync(block.0, 48, 5, 48, null_mut()) });
    synchronize().unwrap();
    for _ in 0..40 {
        block.get::<u8>(48);
    }
    let records = flush();
    let correlation = |function: &str| {
        let found = records.iter().find_map(|record| match record {
            Record::Api { name, correlation, .. } if name == function => Some(*correlation),
            _ => None,
        });
        found.expect("the call is recorded")
    };
    let up = Record::Memcpy { direction: 2, bytes: 48, correlation: correlation("aclrtMemcpy") };
    assert!(records.contains(&up), "{records:?}");
    assert!(records.contains(&Record::Memset { value: 5, correlation: correlation("aclrtMemsetAsync") }));
    let down =
        records.iter().filter(|record| matches!(record, Record::Memcpy { direction: 3, bytes: 48, .. }));
    assert_eq!(down.count(), 40, "buffers that filled up were handed over and lost nothing");
    assert_eq!(copy::DEVICE_TO_HOST, 2);
}
