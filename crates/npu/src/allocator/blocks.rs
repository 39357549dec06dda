//! Bookkeeping of blocks: segments of memory, cut up and joined again. No memory is touched.
//!
//! A segment starts as one free block. Taking part of a block splits it; a block given back
//! is joined with free neighbours. Blocks of a segment belong to one [`Pool`] and are handed
//! out in it only. A block that other streams still work on is [parked](Blocks::park): it was
//! given back, and cannot be handed out yet.

use super::free::{Free, NONE};
use super::stats::Counters;

/// Who shares free blocks: one stream, and either small or large requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) stream: usize,
    pub(super) small: bool,
}

/// A block's place in the book.
pub(crate) type Id = u32;

/// A block that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) id: Id,
    pub(super) address: usize,
    pub(super) bytes: usize,
}

/// What a block is to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Free,
    /// Handed out.
    Held,
    /// Given back, while some stream may still work on it.
    Parked,
}

#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// What was asked for, of a block that is held.
    pub(super) requested: usize,
    pub(super) used: Use,
    /// Which pool, by its place in the book.
    pool: u32,
    /// Neighbours in the same segment.
    before: Id,
    pub(super) after: Id,
    /// Neighbours in a list of free blocks of one size.
    pub(super) previous_free: Id,
    pub(super) next_free: Id,
}

impl Node {
    fn is_part(&self) -> bool {
        self.before != NONE || self.after != NONE
    }
}

/// All blocks of one device.
#[derive(Default)]
pub(super) struct Blocks {
    nodes: Vec<Node>,
    /// Places in `nodes` that are free for use.
    vacant: Vec<Id>,
    /// There are few pools, so they are searched in order.
    pools: Vec<(Pool, Free)>,
    pub(super) counters: Counters,
}

/// Every block is a multiple of this, so every block starts aligned to it.
pub(super) const GRAIN: usize = 512;
/// The stream of a pool whose stream has ended; the next one takes its place.
const ENDED: usize = usize::MAX;
/// A large block is not split for a rest of this size or less.
const LARGE_REST: usize = 1 << 20;

impl Blocks {
    /// Takes `bytes`, a multiple of [`GRAIN`], from the free blocks of `pool`, for a request of
    /// `requested`.
    pub(super) fn take(&mut self, pool: Pool, bytes: usize, requested: usize) -> Option<Taken> {
        let place = self.pools.iter().position(|(other, _)| *other == pool)?;
        let (_, free) = &mut self.pools[place];
        let id = free.best(bytes)?;
        let Node { bytes: size, .. } = self.nodes[id as usize];
        let was_part = self.nodes[id as usize].is_part();
        free.remove(id, &mut self.nodes);
        let rest = size - bytes;
        let splits = if pool.small { rest >= GRAIN } else { rest > LARGE_REST };
        if splits {
            self.split(id, bytes);
        }
        let block = &mut self.nodes[id as usize];
        (block.used, block.requested) = (Use::Held, requested);
        let taken = Taken { id, address: block.address, bytes: block.bytes };
        self.counters.split_changed(pool.small, was_part.then_some(size), splits.then_some(rest));
        self.counters.take(pool.small, taken.bytes, requested);
        Some(taken)
    }

    /// Adds a new segment, all of it free.
    pub(super) fn add(&mut self, pool: Pool, address: usize, bytes: usize) {
        let place = self.place_of(pool);
        let id = self.insert(Node {
            address,
            bytes,
            requested: 0,
            used: Use::Free,
            pool: place as u32,
            before: NONE,
            after: NONE,
            previous_free: NONE,
            next_free: NONE,
        });
        self.set_free(id);
        self.counters.grow(pool.small, bytes);
    }

    /// Gives a block back, for others to take. Returns its size.
    pub(super) fn give_back(&mut self, id: Id) -> usize {
        let bytes = self.end_use(id);
        self.free(id);
        bytes
    }

    /// Gives a block back that nobody can take before [`free`](Blocks::free). Returns its size.
    pub(super) fn park(&mut self, id: Id) -> usize {
        let bytes = self.end_use(id);
        self.nodes[id as usize].used = Use::Parked;
        bytes
    }

    fn end_use(&mut self, id: Id) -> usize {
        let small = self.pool(id).small;
        let Node { bytes, requested, used, .. } = self.nodes[id as usize];
        debug_assert_eq!(used, Use::Held, "a block is given back once");
        self.counters.give_back(small, bytes, requested);
        bytes
    }

    /// Lets others take a block that was given back.
    pub(super) fn free(&mut self, id: Id) {
        let small = self.pool(id).small;
        let Node { bytes, before, after, .. } = self.nodes[id as usize];
        self.counters.idle(small, bytes);
        self.nodes[id as usize].used = Use::Free;
        let mut id = id;
        if let Some(after) = self.if_free(after) {
            self.counters.split_changed(small, Some(self.nodes[after as usize].bytes), None);
            self.join(id, after);
        }
        if let Some(before) = self.if_free(before) {
            self.counters.split_changed(small, Some(self.nodes[before as usize].bytes), None);
            self.join(before, id);
            id = before;
        }
        let node = &self.nodes[id as usize];
        self.counters.split_changed(small, None, node.is_part().then_some(node.bytes));
        self.set_free(id);
    }

    /// Removes the segments that nothing is used of. Returns their addresses and sizes.
    pub(super) fn remove_unused(&mut self) -> Vec<(usize, usize)> {
        let mut removed = Vec::new();
        for (pool, free) in &mut self.pools {
            for id in free.all(&self.nodes) {
                let Node { address, bytes, .. } = self.nodes[id as usize];
                if !self.nodes[id as usize].is_part() {
                    free.remove(id, &mut self.nodes);
                    self.vacant.push(id);
                    self.counters.shrink(pool.small, bytes);
                    removed.push((address, bytes));
                }
            }
        }
        removed
    }

    /// Lets the pools of stream `to` have all that those of `from` had.
    pub(super) fn inherit(&mut self, from: usize, to: usize) {
        for small in [true, false] {
            let (old, new) =
                (self.place_of(Pool { stream: from, small }), self.place_of(Pool { stream: to, small }));
            for id in self.pools[old].1.all(&self.nodes) {
                self.pools[old].1.remove(id, &mut self.nodes);
                self.pools[new].1.insert(id, &mut self.nodes);
            }
            for node in self.nodes.iter_mut().filter(|node| node.pool as usize == old) {
                node.pool = new as u32;
            }
            self.pools[old].0.stream = ENDED;
        }
    }

    /// The size of the largest block that could be taken by some stream.
    pub(super) fn largest_free(&self) -> usize {
        self.pools.iter().map(|(_, free)| free.largest()).max().unwrap_or(0)
    }

    /// Visits every segment: its pool, and its blocks in the order of their addresses.
    pub(super) fn segments(&self, mut visit: impl FnMut(Pool, &[Node])) {
        let is_vacant: std::collections::HashSet<Id> = self.vacant.iter().copied().collect();
        for (id, first) in self.nodes.iter().enumerate() {
            if first.before != NONE || is_vacant.contains(&(id as Id)) {
                continue;
            }
            let mut nodes = vec![*first];
            let mut next = first.after;
            while next != NONE {
                nodes.push(self.nodes[next as usize]);
                next = self.nodes[next as usize].after;
            }
            visit(self.pools[first.pool as usize].0, &nodes);
        }
    }

    /// Cuts a block that is in no free list to `bytes`; the rest becomes a free block.
    fn split(&mut self, id: Id, bytes: usize) {
        let block = self.nodes[id as usize];
        let rest = self.insert(Node {
            address: block.address + bytes,
            bytes: block.bytes - bytes,
            used: Use::Free,
            before: id,
            ..block
        });
        if block.after != NONE {
            self.nodes[block.after as usize].before = rest;
        }
        let block = &mut self.nodes[id as usize];
        block.bytes = bytes;
        block.after = rest;
        self.set_free(rest);
    }

    /// Adds block `second` to its neighbour `first`; both are in no free list.
    fn join(&mut self, first: Id, second: Id) {
        let gone = self.nodes[second as usize];
        let block = &mut self.nodes[first as usize];
        block.bytes += gone.bytes;
        block.after = gone.after;
        if gone.after != NONE {
            self.nodes[gone.after as usize].before = first;
        }
        self.vacant.push(second);
    }

    /// The neighbour, taken off its free list, if it is free.
    fn if_free(&mut self, neighbour: Id) -> Option<Id> {
        if neighbour == NONE || self.nodes[neighbour as usize].used != Use::Free {
            return None;
        }
        let pool = self.nodes[neighbour as usize].pool as usize;
        self.pools[pool].1.remove(neighbour, &mut self.nodes);
        Some(neighbour)
    }

    fn set_free(&mut self, id: Id) {
        let pool = self.nodes[id as usize].pool as usize;
        self.pools[pool].1.insert(id, &mut self.nodes);
    }

    fn pool(&self, id: Id) -> Pool {
        self.pools[self.nodes[id as usize].pool as usize].0
    }

    fn place_of(&mut self, pool: Pool) -> usize {
        let find = |pool: Pool| self.pools.iter().position(|(other, _)| *other == pool);
        let ended = Pool { stream: ENDED, ..pool };
        match find(pool).or_else(|| find(ended)) {
            Some(place) => {
                self.pools[place].0 = pool;
                place
            }
            None => {
                self.pools.push((pool, Free::new(pool.small)));
                self.pools.len() - 1
            }
        }
    }

    fn insert(&mut self, node: Node) -> Id {
        match self.vacant.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as Id
            }
        }
    }
}
