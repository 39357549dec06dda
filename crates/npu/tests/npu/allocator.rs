//! Memory: totals add up, running out is told with numbers.

use crate::support::{alone, assert_close, npu, numbers};
use cresset_dispatch::memory::{Listener, Report, Slot};
use cresset_npu::{
    empty_cache, max_memory_allocated, memory_allocated, memory_reserved, memory_stats,
    reset_peak_memory_stats,
};
use cresset_tensor::{Cause, DType, Tensor};
use std::sync::Mutex;

/// Keeps a book of its own from what the allocator reports.
struct Book(Mutex<Vec<Report>>);

impl Listener for Book {
    fn memory(&self, report: &Report) {
        if !report.device.is_cpu() {
            self.0.lock().unwrap().push(*report);
        }
    }
}

#[test]
fn totals_add_up_and_everything_comes_back() {
    alone("allocator::totals_add_up_and_everything_comes_back", &[], || {
        static BOOK: Book = Book(Mutex::new(Vec::new()));
        let npu = npu();
        let slot = Slot::claim(&BOOK).expect("a slot is free");
        slot.set_active(true);
        let mut held: Vec<Tensor> = Vec::new();
        for i in 0..2000usize {
            let bytes = [1, 500, 5000, 1 << 20, 3 << 20, 11 << 20][i % 6] + i;
            held.push(Tensor::empty([bytes], (DType::U8, npu)).unwrap());
            if held.len() > 12 {
                held.swap_remove(i * 7 % 12);
            }
            assert!(memory_allocated(npu) <= memory_reserved(npu));
        }
        held.clear();
        assert_eq!(memory_allocated(npu), 0);
        let (mut total, mut most, mut live) = (0, 0, std::collections::BTreeMap::new());
        for report in BOOK.0.lock().unwrap().iter() {
            total += report.bytes;
            most = most.max(total);
            assert_eq!(report.allocated as i64, total);
            match report.bytes {
                1.. => assert_eq!(live.insert(report.address, report.bytes), None),
                bytes => assert_eq!(live.remove(&report.address), Some(-bytes)),
            }
        }
        assert!(live.is_empty());
        let stats = memory_stats(npu);
        assert_eq!((total, most as usize), (0, max_memory_allocated(npu)));
        assert_eq!((stats.allocations, stats.frees), (2000, 2000));
        assert!(stats.segments < 100, "blocks are reused: {stats:?}");
        empty_cache(npu).unwrap();
        assert_eq!(memory_reserved(npu), 0);
        reset_peak_memory_stats(npu).unwrap();
        assert_eq!(max_memory_allocated(npu), 0);
    });
}

#[test]
fn running_out_frees_the_cache_first_and_then_tells_the_numbers() {
    let name = "allocator::running_out_frees_the_cache_first_and_then_tells_the_numbers";
    alone(name, &[("CRESSET_SIM_MEMORY", "67108864")], || {
        let npu = npu();
        let mib = |count: usize| Tensor::empty([count << 20], (DType::U8, npu));
        // Cached as two pieces of 24 MiB, which must go before 40 MiB can be had.
        drop([mib(23).unwrap(), mib(23).unwrap()]);
        let large = mib(39).unwrap();
        let error = mib(30).unwrap_err();
        assert_eq!(error.cause(), Cause::Memory);
        let text = error.to_string();
        let numbers = "npu:0 is out of memory: asked for 30.0 MiB, 24.0 MiB of 64.0 MiB are free, \
                       0 B are cached, 40.0 MiB are allocated; use smaller batches";
        assert!(text.contains(numbers), "{text}");
        assert!(text.contains("(aclrtMalloc failed with code 207001 "), "{text}");
        drop(large);
        assert!(mib(50).is_ok());
    });
}

#[test]
fn memory_is_reused_while_the_device_still_works_on_it() {
    let name = "allocator::memory_is_reused_while_the_device_still_works_on_it";
    alone(name, &[("CRESSET_SIM_DELAY_US", "200")], || {
        let (x, npu) = (numbers(&[64], 1), npu());
        let (mut there, mut here) = (x.to(npu).unwrap(), x.clone());
        for _ in 0..50 {
            there = there.mul(1.5).unwrap().sub(&there).unwrap();
            here = here.mul(1.5).unwrap().sub(&here).unwrap();
        }
        assert_close("chain", &there, &here, 1e-6);
        assert_eq!(memory_stats(npu).segments, 1);
    });
}
