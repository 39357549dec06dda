//! Bookkeeping of blocks: segments of memory, cut up and joined again. No memory is touched.
//!
//! A segment starts as one free block. Taking part of a block splits it; a block given back
//! is joined with free neighbours. Blocks of a segment belong to one [`Pool`] and are handed
//! out in it only.

use std::collections::BTreeSet;

/// Who shares free blocks: one stream, and either small or large requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    pub(crate) stream: usize,
    pub(crate) small: bool,
}

/// A block's place in the book.
pub(crate) type Id = u32;

/// A block that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) id: Id,
    pub(crate) address: usize,
    pub(crate) bytes: usize,
}

#[derive(Clone, Copy)]
struct Block {
    address: usize,
    bytes: usize,
    pool: Pool,
    used: bool,
    /// Neighbours in the same segment.
    before: Option<Id>,
    after: Option<Id>,
}

/// All blocks of one device.
#[derive(Default)]
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    /// Places in `blocks` that are free for use.
    vacant: Vec<Id>,
    /// The free blocks of each pool. There are few pools, so they are searched in order.
    free: Vec<(Pool, Free)>,
}

/// Free blocks by size, so that the first one that is large enough fits best.
type Free = BTreeSet<(usize, usize, Id)>;

/// Every block is a multiple of this, so every block starts aligned to it.
pub(crate) const GRAIN: usize = 512;
const SMALL_REST: usize = GRAIN;
const LARGE_REST: usize = 1 << 20;

impl Blocks {
    /// Takes `bytes`, a multiple of [`GRAIN`], from the free blocks of `pool`.
    pub(crate) fn take(&mut self, pool: Pool, bytes: usize) -> Option<Taken> {
        let free = self.free_of(pool);
        let best = *free.range((bytes, 0, 0)..).next()?;
        free.remove(&best);
        let (size, address, id) = best;
        let least = if pool.small { SMALL_REST } else { LARGE_REST };
        if size - bytes >= least {
            self.split(id, bytes);
        }
        let block = &mut self.blocks[id as usize];
        block.used = true;
        Some(Taken { id, address, bytes: block.bytes })
    }

    /// Adds a new segment, all of it free.
    pub(crate) fn add(&mut self, pool: Pool, address: usize, bytes: usize) {
        let id = self.insert(Block { address, bytes, pool, used: false, before: None, after: None });
        self.set_free(id);
    }

    /// Gives a block back. Returns its size.
    pub(crate) fn give_back(&mut self, id: Id) -> usize {
        let Block { bytes, before, after, .. } = self.blocks[id as usize];
        self.blocks[id as usize].used = false;
        let mut id = id;
        if let Some(after) = self.if_free(after) {
            self.join(id, after);
        }
        if let Some(before) = self.if_free(before) {
            self.join(before, id);
            id = before;
        }
        self.set_free(id);
        bytes
    }

    /// Removes the segments that nothing is used of. Returns their addresses and sizes.
    pub(crate) fn remove_unused(&mut self) -> Vec<(usize, usize)> {
        let mut removed = Vec::new();
        for (_, free) in &mut self.free {
            free.retain(|&(bytes, address, id)| {
                let block = &self.blocks[id as usize];
                let is_part = block.before.is_some() || block.after.is_some();
                if !is_part {
                    removed.push((address, bytes));
                    self.vacant.push(id);
                }
                is_part
            });
        }
        removed
    }

    /// Lets the pools of stream `to` have all that those of `from` had. None of it is used.
    pub(crate) fn inherit(&mut self, from: usize, to: usize) {
        for small in [true, false] {
            let left = std::mem::take(self.free_of(Pool { stream: from, small }));
            for (bytes, address, id) in left {
                self.blocks[id as usize].pool = Pool { stream: to, small };
                self.free_of(Pool { stream: to, small }).insert((bytes, address, id));
            }
        }
        self.free.retain(|(pool, _)| pool.stream != from);
    }

    /// Cuts a block that is in no free list to `bytes`; the rest becomes a free block.
    fn split(&mut self, id: Id, bytes: usize) {
        let block = self.blocks[id as usize];
        let rest = self.insert(Block {
            address: block.address + bytes,
            bytes: block.bytes - bytes,
            before: Some(id),
            ..block
        });
        if let Some(after) = block.after {
            self.blocks[after as usize].before = Some(rest);
        }
        let block = &mut self.blocks[id as usize];
        block.bytes = bytes;
        block.after = Some(rest);
        self.set_free(rest);
    }

    /// Adds block `second` to its neighbour `first`; both are in no free list.
    fn join(&mut self, first: Id, second: Id) {
        let gone = self.blocks[second as usize];
        let block = &mut self.blocks[first as usize];
        block.bytes += gone.bytes;
        block.after = gone.after;
        if let Some(after) = gone.after {
            self.blocks[after as usize].before = Some(first);
        }
        self.vacant.push(second);
    }

    /// The neighbour, taken off its free list, if it is free.
    fn if_free(&mut self, neighbour: Option<Id>) -> Option<Id> {
        let id = neighbour?;
        let Block { bytes, address, pool, used, .. } = self.blocks[id as usize];
        if used {
            return None;
        }
        self.free_of(pool).remove(&(bytes, address, id));
        Some(id)
    }

    fn set_free(&mut self, id: Id) {
        let block = self.blocks[id as usize];
        self.free_of(block.pool).insert((block.bytes, block.address, id));
    }

    fn free_of(&mut self, pool: Pool) -> &mut Free {
        let at = self.free.iter().position(|(other, _)| *other == pool).unwrap_or_else(|| {
            self.free.push((pool, Free::new()));
            self.free.len() - 1
        });
        &mut self.free[at].1
    }

    fn insert(&mut self, block: Block) -> Id {
        match self.vacant.pop() {
            Some(id) => {
                self.blocks[id as usize] = block;
                id
            }
            None => {
                self.blocks.push(block);
                (self.blocks.len() - 1) as Id
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Pool = Pool { stream: 0, small: true };
    const SEGMENT: usize = 2 << 20;

    #[test]
    fn a_block_given_back_joins_its_neighbours() {
        let mut blocks = Blocks::default();
        blocks.add(SMALL, SEGMENT, SEGMENT);
        let taken: Vec<Taken> = (0..3).filter_map(|_| blocks.take(SMALL, GRAIN)).collect();
        assert_eq!(taken.iter().map(|t| t.address - SEGMENT).collect::<Vec<_>>(), [0, GRAIN, 2 * GRAIN]);
        for at in [0, 2, 1] {
            assert!(blocks.remove_unused().is_empty());
            assert_eq!(blocks.give_back(taken[at].id), GRAIN);
        }
        assert_eq!(blocks.remove_unused(), [(SEGMENT, SEGMENT)]);
        assert_eq!(blocks.take(SMALL, GRAIN), None);
    }

    #[test]
    fn a_large_block_is_not_split_for_a_small_rest() {
        let (pool, mib) = (Pool { stream: 0, small: false }, 1 << 20);
        let mut blocks = Blocks::default();
        blocks.add(pool, 0, 4 * mib);
        let taken = blocks.take(pool, 4 * mib - GRAIN).expect("it fits");
        assert_eq!(taken.bytes, 4 * mib);
        blocks.give_back(taken.id);
        assert_eq!(blocks.take(pool, 3 * mib).map(|taken| taken.bytes), Some(3 * mib));
    }

    #[test]
    fn pools_share_nothing_until_one_inherits() {
        let mut blocks = Blocks::default();
        blocks.add(Pool { stream: 7, small: true }, 0, SEGMENT);
        assert_eq!(blocks.take(SMALL, GRAIN), None);
        blocks.inherit(7, 0);
        let taken = blocks.take(SMALL, GRAIN).expect("it was inherited");
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

    #[test]
    fn no_byte_is_handed_out_twice_and_all_come_back() {
        let (mut blocks, mut state, mut held, mut next) = (Blocks::default(), 1, Vec::<Taken>::new(), 1);
        for _ in 0..20_000 {
            if held.len() < 100 && !noise(&mut state).is_multiple_of(3) {
                let bytes = (1 + noise(&mut state) % 64) * GRAIN;
                let taken = blocks.take(SMALL, bytes).unwrap_or_else(|| {
                    blocks.add(SMALL, next * SEGMENT, SEGMENT);
                    next += 2;
                    blocks.take(SMALL, bytes).expect("a new segment has room")
                });
                let apart = |other: &Taken| {
                    other.address + other.bytes <= taken.address
                        || taken.address + taken.bytes <= other.address
                };
                assert!(taken.bytes >= bytes && held.iter().all(apart), "{taken:?} was handed out before");
                held.push(taken);
            } else if !held.is_empty() {
                let given = held.swap_remove(noise(&mut state) % held.len());
                assert_eq!(blocks.give_back(given.id), given.bytes);
            }
        }
        held.iter().for_each(|taken| assert_eq!(blocks.give_back(taken.id), taken.bytes));
        let removed: usize = blocks.remove_unused().iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(removed, (next - 1) / 2 * SEGMENT);
    }
}
