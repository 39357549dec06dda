//! What an allocator counts, with the names that `torch.npu.memory_stats` has for it.

/// Something that is counted up and down.
///
/// ```
/// let stat = cresset_npu::Stat { current: 1, peak: 3, allocated: 5, freed: 4 };
/// assert_eq!(stat.allocated - stat.freed, stat.current);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// How much there is.
    pub current: u64,
    /// The most there was at once, since the last [reset](crate::reset_peak_memory_stats).
    pub peak: u64,
    /// How much came, since the last [reset](crate::reset_accumulated_memory_stats).
    pub allocated: u64,
    /// How much went.
    pub freed: u64,
}

impl Stat {
    #[inline]
    fn add(&mut self, count: u64) {
        self.current += count;
        self.peak = self.peak.max(self.current);
        self.allocated += count;
    }

    #[inline]
    fn sub(&mut self, count: u64) {
        self.current -= count;
        self.freed += count;
    }
}

/// One [`Stat`] for all requests, and one for each of the two kinds: those up to 1 MiB share segments
/// of 2 MiB, and are called small.
///
/// ```
/// let pools = cresset_npu::Pools::default();
/// assert_eq!(pools.all.current, pools.small_pool.current + pools.large_pool.current);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// All requests.
    pub all: Stat,
    /// Small ones.
    pub small_pool: Stat,
    /// Large ones.
    pub large_pool: Stat,
}

impl Pools {
    #[inline]
    fn one(&mut self, small: bool) -> &mut Stat {
        if small { &mut self.small_pool } else { &mut self.large_pool }
    }

    #[inline]
    fn add(&mut self, small: bool, count: usize) {
        self.all.add(count as u64);
        self.one(small).add(count as u64);
    }

    #[inline]
    fn sub(&mut self, small: bool, count: usize) {
        self.all.sub(count as u64);
        self.one(small).sub(count as u64);
    }

    fn each(&mut self, mut change: impl FnMut(&mut Stat)) {
        [&mut self.all, &mut self.small_pool, &mut self.large_pool].into_iter().for_each(&mut change);
    }
}

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident;)* => $($(#[$count_doc:meta])* $count:ident;)*) => {
        /// All that the allocator of a device counts.
        ///
        /// ```
        /// # use cresset_npu::{Library, device, init, memory_stats};
        /// # init(Library::embedded(cresset_npu_sim::NAME, cresset_npu_sim::symbol))?;
        /// let stats = memory_stats(device(0));
        /// assert!(stats.allocated_bytes.all.current <= stats.reserved_bytes.all.current);
        /// let by_name: std::collections::BTreeMap<String, u64> = stats.entries().collect();
        /// assert_eq!(by_name["allocated_bytes.all.current"], stats.allocated_bytes.all.current);
        /// # Ok::<(), cresset_tensor::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct MemoryStats {
            $($(#[$doc])* pub $name: Pools,)*
            $($(#[$count_doc])* pub $count: u64,)*
        }

        impl MemoryStats {
            /// Every number with the name that torch has for it, e.g. `active_bytes.small_pool.peak`.
            pub fn entries(&self) -> impl Iterator<Item = (String, u64)> {
                let pools = [$((stringify!($name), self.$name),)*];
                let counts = [$((stringify!($count).to_owned(), self.$count),)*];
                pools.into_iter().flat_map(|(name, pools)| named(name, pools)).chain(counts)
            }

            fn each_pools(&mut self, mut change: impl FnMut(&mut Pools)) {
                $(change(&mut self.$name);)*
            }

            fn clear_counts(&mut self) {
                $(self.$count = 0;)*
            }
        }
    };
}

stats! {
    /// Blocks handed out and not yet given back.
    allocation;
    /// Pieces of memory that the library gave.
    segment;
    /// Blocks handed out, or given back while some stream still works on them.
    active;
    /// Free blocks of segments of which other parts are in use.
    inactive_split;
    /// Bytes of the blocks of `allocation`.
    allocated_bytes;
    /// Bytes of the segments.
    reserved_bytes;
    /// Bytes of the blocks of `active`.
    active_bytes;
    /// Bytes of the blocks of `inactive_split`.
    inactive_split_bytes;
    /// Bytes that were asked for, before they were rounded up to blocks.
    requested_bytes;
    =>
    /// How often the cache was freed because the library had no memory.
    num_alloc_retries;
    /// How often there was no memory after that either.
    num_ooms;
    /// How often all streams were waited for, to free the cache.
    num_sync_all_streams;
    /// How often the library was asked for memory, and gave it.
    num_device_alloc;
    /// How often memory was given back to the library.
    num_device_free;
}

fn named(name: &'static str, pools: Pools) -> impl Iterator<Item = (String, u64)> {
    let pools = [("all", pools.all), ("small_pool", pools.small_pool), ("large_pool", pools.large_pool)];
    pools.into_iter().flat_map(move |(pool, stat)| {
        let parts = [
            ("current", stat.current),
            ("peak", stat.peak),
            ("allocated", stat.allocated),
            ("freed", stat.freed),
        ];
        parts.into_iter().map(move |(part, value)| (format!("{name}.{pool}.{part}"), value))
    })
}

/// The numbers, and what changes them.
#[derive(Default)]
pub(super) struct Counters(pub(super) MemoryStats);

impl Counters {
    #[inline]
    pub(super) fn take(&mut self, small: bool, bytes: usize, requested: usize) {
        let stats = &mut self.0;
        stats.allocation.add(small, 1);
        stats.allocated_bytes.add(small, bytes);
        stats.active.add(small, 1);
        stats.active_bytes.add(small, bytes);
        stats.requested_bytes.add(small, requested);
    }

    #[inline]
    pub(super) fn give_back(&mut self, small: bool, bytes: usize, requested: usize) {
        let stats = &mut self.0;
        stats.allocation.sub(small, 1);
        stats.allocated_bytes.sub(small, bytes);
        stats.requested_bytes.sub(small, requested);
    }

    /// A block that was given back can be taken again.
    #[inline]
    pub(super) fn idle(&mut self, small: bool, bytes: usize) {
        self.0.active.sub(small, 1);
        self.0.active_bytes.sub(small, bytes);
    }

    /// A free part of a segment came, or went.
    #[inline]
    pub(super) fn split_changed(&mut self, small: bool, gone: Option<usize>, came: Option<usize>) {
        if let Some(bytes) = gone {
            self.0.inactive_split.sub(small, 1);
            self.0.inactive_split_bytes.sub(small, bytes);
        }
        if let Some(bytes) = came {
            self.0.inactive_split.add(small, 1);
            self.0.inactive_split_bytes.add(small, bytes);
        }
    }

    pub(super) fn grow(&mut self, small: bool, bytes: usize) {
        self.0.segment.add(small, 1);
        self.0.reserved_bytes.add(small, bytes);
        self.0.num_device_alloc += 1;
    }

    pub(super) fn shrink(&mut self, small: bool, bytes: usize) {
        self.0.segment.sub(small, 1);
        self.0.reserved_bytes.sub(small, bytes);
        self.0.num_device_free += 1;
    }

    pub(super) fn reset_peak(&mut self) {
        self.0.each_pools(|pools| pools.each(|stat| stat.peak = stat.current));
    }

    pub(super) fn reset_accumulated(&mut self) {
        self.0.each_pools(|pools| pools.each(|stat| (stat.allocated, stat.freed) = (0, 0)));
        self.0.clear_counts();
    }
}
