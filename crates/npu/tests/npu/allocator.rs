//! Memory: totals add up, running out is told with numbers.

use crate::support::{alone, assert_close, npu, numbers};
use cresset_dispatch::memory::{Listener, Report, Slot};
use cresset_npu::{
    BlockState, Stream, empty_cache, max_memory_allocated, memory_allocated, memory_info, memory_reserved,
    memory_snapshot, memory_stats, memory_summary, reset_accumulated_memory_stats, reset_peak_memory_stats,
    set_per_process_memory_fraction, synchronize,
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
        assert_eq!((stats.allocation.all.allocated, stats.allocation.all.freed), (2000, 2000));
        assert!(stats.num_device_alloc < 100, "blocks are reused: {stats:?}");
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
        let numbers = "npu:0 is out of memory: asked for 30.0 MiB, 22.0 MiB of 64.0 MiB are free, \
                       0 B are cached with 0 B in one piece, 40.0 MiB are allocated; use smaller batches";
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
        assert_eq!(memory_stats(npu).num_device_alloc, 1);
    });
}

#[test]
fn a_block_that_another_stream_uses_waits_for_it_and_for_nobody_else() {
    let name = "allocator::a_block_that_another_stream_uses_waits_for_it_and_for_nobody_else";
    alone(name, &[("CRESSET_SIM_DELAY_US", "2000")], || {
        let npu = npu();
        let (side, x) = (Stream::new(npu).unwrap(), Tensor::zeros([8], npu).unwrap());
        synchronize(npu).unwrap();
        let sum = {
            let _on_side = side.enter();
            x.add(1).unwrap()
        };
        let address = x.storage().address();
        drop(x);
        let waiting = memory_stats(npu);
        assert_eq!((waiting.allocation.all.current, waiting.active.all.current), (1, 2));
        assert_eq!(waiting.allocated_bytes.all.current, 512);
        let states: Vec<BlockState> =
            memory_snapshot(npu).unwrap().iter().map(|s| s.blocks[0].state).collect();
        assert!(states.contains(&BlockState::ActiveAwaitingFree), "{states:?}");
        let other = Tensor::empty([8], npu).unwrap();
        assert_ne!(other.storage().address(), address, "the side stream may still read it");
        assert!(Stream::current(npu).unwrap().query().unwrap(), "no stream waits for another");
        side.synchronize().unwrap();
        drop(other);
        let again = Tensor::empty([8], npu).unwrap();
        assert_eq!(memory_stats(npu).active.all.current, 2, "nobody uses it any more");
        drop((again, sum));
    });
}

#[test]
fn a_limit_is_kept_and_told() {
    alone("allocator::a_limit_is_kept_and_told", &[("CRESSET_SIM_MEMORY", "134217728")], || {
        let npu = npu();
        let mib = |count: usize| Tensor::empty([count << 20], (DType::U8, npu));
        assert!(set_per_process_memory_fraction(1.5, npu).is_err());
        set_per_process_memory_fraction(0.5, npu).unwrap();
        drop(mib(23).unwrap());
        let held = mib(39).unwrap();
        let error = mib(30).unwrap_err();
        assert_eq!(error.cause(), Cause::Memory);
        // The device rounds 40 MiB and what it adds itself up to a page more.
        let numbers = "asked for 30.0 MiB, 86.0 MiB of 128.0 MiB are free, 0 B are cached with 0 B in one \
                       piece, 40.0 MiB are allocated of a limit of 64.0 MiB; use smaller";
        assert!(error.to_string().contains(numbers), "{error}");
        let stats = memory_stats(npu);
        assert_eq!((stats.num_ooms, stats.num_alloc_retries), (1, 1));
        set_per_process_memory_fraction(1.0, npu).unwrap();
        assert!(mib(30).is_ok());
        drop(held);
        reset_accumulated_memory_stats(npu).unwrap();
        let stats = memory_stats(npu);
        assert_eq!((stats.num_ooms, stats.allocation.all.allocated), (0, 0));
    });
}

#[test]
fn a_snapshot_has_every_byte_that_is_held() {
    alone("allocator::a_snapshot_has_every_byte_that_is_held", &[], || {
        let npu = npu();
        let held = [100usize, 5000, 3 << 20, 11 << 20]
            .map(|bytes| Tensor::empty([bytes], (DType::U8, npu)).unwrap());
        let segments = memory_snapshot(npu).unwrap();
        assert_eq!(segments.len(), 2, "large requests share a segment as long as they fit");
        assert_eq!(segments.iter().map(|s| s.total_size).sum::<usize>(), memory_reserved(npu));
        assert_eq!(segments.iter().map(|s| s.allocated_size).sum::<usize>(), memory_allocated(npu));
        for segment in &segments {
            let mut next = segment.address;
            for block in &segment.blocks {
                assert_eq!(block.address, next, "blocks follow each other");
                next += block.size;
            }
            assert_eq!(next, segment.address + segment.total_size);
        }
        let mut requested: Vec<usize> = segments
            .iter()
            .flat_map(|s| &s.blocks)
            .map(|block| block.requested_size)
            .filter(|&b| b > 0)
            .collect();
        requested.sort_unstable();
        assert_eq!(requested, [100, 5000, 3 << 20, 11 << 20]);
        let (free, total) = memory_info(npu).unwrap();
        assert!(total - free >= memory_reserved(npu), "the library rounds up");
        let summary = memory_summary(npu).to_string();
        assert!(summary.starts_with("memory of npu:0: out of memory 0 times"), "{summary}");
        drop(held);
    });
}

#[test]
fn numbers_have_the_names_that_torch_gives_them() {
    let by_name: std::collections::BTreeMap<String, u64> = memory_stats(npu()).entries().collect();
    assert_eq!(by_name.len(), 9 * 3 * 4 + 5);
    for name in
        ["active.all.allocated", "inactive_split_bytes.large_pool.freed", "num_ooms", "segment.all.peak"]
    {
        assert!(by_name.contains_key(name), "{name}");
    }
}
