//! The books against a model of their own: a million random requests.

use super::blocks::{Blocks, GRAIN, Pool, Taken};
use super::free::SMALL_SEGMENT;
use super::stats::{MemoryStats, Pools, Stat};
use super::{MIB, SMALL, block_size, segment_size};

const SMALL_POOL: Pool = Pool { stream: 0, small: true };

#[test]
fn a_block_has_room_for_the_margin() {
    assert_eq!([1, 480, 481, 512].map(block_size), [512, 512, 1024, 1024].map(Some));
    assert_eq!(block_size(usize::MAX), None);
    assert_eq!([512, SMALL, SMALL + 1, 10 * MIB - 1].map(segment_size), [2, 2, 20, 20].map(|n| n * MIB));
    assert_eq!([10 * MIB, 10 * MIB + 512].map(segment_size), [10, 12].map(|n| n * MIB));
}

#[test]
fn a_block_given_back_joins_its_neighbours() {
    let mut blocks = Blocks::default();
    blocks.add(SMALL_POOL, SMALL_SEGMENT, SMALL_SEGMENT);
    let taken: Vec<Taken> = (0..3).filter_map(|_| blocks.take(SMALL_POOL, GRAIN, 1)).collect();
    let places: Vec<usize> = taken.iter().map(|taken| taken.address - SMALL_SEGMENT).collect();
    assert_eq!(places, [0, GRAIN, 2 * GRAIN]);
    for at in [0, 2, 1] {
        assert!(blocks.remove_unused().is_empty());
        assert_eq!(blocks.give_back(taken[at].id), GRAIN);
    }
    assert_eq!(blocks.remove_unused(), [(SMALL_SEGMENT, SMALL_SEGMENT)]);
    assert_eq!(blocks.take(SMALL_POOL, GRAIN, 1), None);
}

#[test]
fn a_large_block_is_not_split_for_a_small_rest() {
    let pool = Pool { stream: 0, small: false };
    let mut blocks = Blocks::default();
    blocks.add(pool, 0, 4 * MIB);
    let taken = blocks.take(pool, 3 * MIB, 3 * MIB).expect("it fits");
    assert_eq!(taken.bytes, 4 * MIB);
    blocks.give_back(taken.id);
    let smaller = 3 * MIB - GRAIN;
    assert_eq!(blocks.take(pool, smaller, smaller).map(|taken| taken.bytes), Some(smaller));
}

#[test]
fn pools_share_nothing_until_one_inherits() {
    let mut blocks = Blocks::default();
    blocks.add(Pool { stream: 7, small: true }, 0, SMALL_SEGMENT);
    assert_eq!(blocks.take(SMALL_POOL, GRAIN, 1), None);
    blocks.inherit(7, 0);
    let taken = blocks.take(SMALL_POOL, GRAIN, 1).expect("it was inherited");
    blocks.give_back(taken.id);
    assert_eq!(blocks.remove_unused().len(), 1);
}

/// A small generator of repeatable noise.
fn noise(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}

/// What the books should say, kept in the plainest way.
#[derive(Default)]
struct Model {
    /// Blocks handed out, with what was asked for.
    held: Vec<(Taken, usize, bool)>,
    /// Blocks given back that some stream still uses.
    parked: Vec<(Taken, bool)>,
    /// Segments: address, size, whether small.
    segments: Vec<(usize, usize, bool)>,
    next: usize,
}

impl Model {
    fn sums(&self, small: Option<bool>) -> [u64; 7] {
        let is = |kind: bool| small.is_none_or(|small| small == kind);
        let held: Vec<_> = self.held.iter().filter(|(_, _, kind)| is(*kind)).collect();
        let parked: Vec<_> = self.parked.iter().filter(|(_, kind)| is(*kind)).collect();
        let segments: Vec<_> = self.segments.iter().filter(|(_, _, kind)| is(*kind)).collect();
        let bytes: usize = held.iter().map(|(taken, _, _)| taken.bytes).sum();
        let waiting: usize = parked.iter().map(|(taken, _)| taken.bytes).sum();
        [
            held.len(),
            bytes,
            held.iter().map(|(_, requested, _)| requested).sum(),
            held.len() + parked.len(),
            bytes + waiting,
            segments.len(),
            segments.iter().map(|(_, bytes, _)| bytes).sum(),
        ]
        .map(|number| number as u64)
    }

    fn agrees(&self, stats: &MemoryStats) {
        let of = |one: fn(&Pools) -> &Stat| {
            let all = [
                &stats.allocation,
                &stats.allocated_bytes,
                &stats.requested_bytes,
                &stats.active,
                &stats.active_bytes,
                &stats.segment,
                &stats.reserved_bytes,
            ];
            all.map(|pools| {
                let stat = one(pools);
                assert_eq!(
                    stat.allocated - stat.freed,
                    stat.current,
                    "what came and went adds up: {stats:?}"
                );
                assert!(stat.peak >= stat.current, "{stats:?}");
                stat.current
            })
        };
        assert_eq!(of(|pools| &pools.all), self.sums(None));
        assert_eq!(of(|pools| &pools.small_pool), self.sums(Some(true)));
        assert_eq!(of(|pools| &pools.large_pool), self.sums(Some(false)));
    }

    fn overlaps(&self, taken: &Taken) -> bool {
        let others =
            self.held.iter().map(|(taken, _, _)| taken).chain(self.parked.iter().map(|(taken, _)| taken));
        let apart = |other: &Taken| {
            other.address + other.bytes <= taken.address || taken.address + taken.bytes <= other.address
        };
        !others.into_iter().all(apart)
    }
}

/// Free parts of segments that are in use, found by looking at every block.
fn inactive_splits(blocks: &Blocks) -> (u64, u64) {
    let (mut count, mut bytes) = (0, 0);
    blocks.segments(|_, nodes| {
        let mut address = nodes[0].address;
        for node in nodes {
            assert_eq!(node.address, address, "blocks of a segment follow each other");
            address += node.bytes;
        }
        for pair in nodes.windows(2) {
            let both = [pair[0].used, pair[1].used];
            assert_ne!(both, [super::blocks::Use::Free; 2], "free neighbours are one block");
        }
        let free = nodes.iter().filter(|node| nodes.len() > 1 && node.used == super::blocks::Use::Free);
        free.for_each(|node| (count, bytes) = (count + 1, bytes + node.bytes as u64));
    });
    (count, bytes)
}

#[test]
fn a_million_requests_leak_nothing_and_hand_out_no_live_block() {
    const REQUESTS: usize = 1_000_000;
    const HELD: usize = 200;
    let (mut blocks, mut model, mut state) = (Blocks::default(), Model::default(), 1);
    for request in 0..REQUESTS {
        let stream = noise(&mut state) % 3;
        match noise(&mut state) % 100 {
            0..50 if model.held.len() < HELD => take(&mut blocks, &mut model, stream, &mut state),
            0..80 if !model.held.is_empty() => {
                let (taken, _, _) = model.held.swap_remove(noise(&mut state) % model.held.len());
                assert_eq!(blocks.give_back(taken.id), taken.bytes);
            }
            80..90 if !model.held.is_empty() => {
                let (taken, _, small) = model.held.swap_remove(noise(&mut state) % model.held.len());
                assert_eq!(blocks.park(taken.id), taken.bytes);
                model.parked.push((taken, small));
            }
            90..99 if !model.parked.is_empty() => {
                let (taken, _) = model.parked.swap_remove(noise(&mut state) % model.parked.len());
                blocks.free(taken.id);
            }
            99 if noise(&mut state).is_multiple_of(20) => empty(&mut blocks, &mut model),
            _ => {}
        }
        if request.is_multiple_of(997) {
            model.agrees(&blocks.counters.0);
            let split = &blocks.counters.0;
            let counted = (split.inactive_split.all.current, split.inactive_split_bytes.all.current);
            assert_eq!(counted, inactive_splits(&blocks));
        }
    }
    model.held.drain(..).for_each(|(taken, _, _)| assert_eq!(blocks.give_back(taken.id), taken.bytes));
    model.parked.drain(..).for_each(|(taken, _)| blocks.free(taken.id));
    empty(&mut blocks, &mut model);
    assert!(model.segments.is_empty(), "every segment went back");
    model.agrees(&blocks.counters.0);
    assert_eq!(blocks.largest_free(), 0);
}

fn take(blocks: &mut Blocks, model: &mut Model, stream: usize, state: &mut u64) {
    // Mostly small, some that share a large segment, a few that get their own.
    let requested = match noise(state) % 10 {
        0..7 => 1 + noise(state) % (64 * GRAIN),
        7..9 => 1 + noise(state) % (4 * MIB),
        _ => 1 + noise(state) % (30 * MIB),
    };
    let wanted = block_size(requested).expect("it is no huge number");
    let pool = Pool { stream, small: wanted <= SMALL };
    let taken = blocks.take(pool, wanted, requested).unwrap_or_else(|| {
        let bytes = segment_size(wanted);
        // Segments lie apart, so that no block could be joined to a foreign one unnoticed.
        let address = model.next + MIB;
        model.next = address + bytes;
        model.segments.push((address, bytes, pool.small));
        blocks.add(pool, address, bytes);
        blocks.take(pool, wanted, requested).expect("a new segment has room")
    });
    assert!(taken.bytes >= wanted && !model.overlaps(&taken), "{taken:?} was handed out before");
    let inside = |&(address, bytes, small): &(usize, usize, bool)| {
        small == pool.small && address <= taken.address && taken.address + taken.bytes <= address + bytes
    };
    assert!(model.segments.iter().any(inside), "{taken:?} is in no segment of its pool");
    model.held.push((taken, requested, pool.small));
}

fn empty(blocks: &mut Blocks, model: &mut Model) {
    for (address, bytes) in blocks.remove_unused() {
        let place = model.segments.iter().position(|segment| (segment.0, segment.1) == (address, bytes));
        model.segments.swap_remove(place.expect("only what was added is removed"));
        let gone = Taken { id: 0, address, bytes };
        assert!(!model.overlaps(&gone), "a segment in use was removed");
    }
}
