//! Free blocks of one pool, by size: the smallest that is large enough is found first.

use super::blocks::{GRAIN, Id, Node};
use std::collections::BTreeSet;

/// Small requests share segments of this size, so no block of theirs is larger.
pub(super) const SMALL_SEGMENT: usize = 2 << 20;

pub(super) enum Free {
    /// A list per size, for requests that come by the thousand.
    Small(Box<Bins>),
    /// By size and address.
    Large(BTreeSet<(usize, usize, Id)>),
}

impl Free {
    pub(super) fn new(small: bool) -> Free {
        if small { Free::Small(Box::new(Bins::new())) } else { Free::Large(BTreeSet::new()) }
    }

    pub(super) fn insert(&mut self, id: Id, nodes: &mut [Node]) {
        match self {
            Free::Small(bins) => bins.insert(id, nodes),
            Free::Large(set) => {
                let block = &nodes[id as usize];
                set.insert((block.bytes, block.address, id));
            }
        }
    }

    pub(super) fn remove(&mut self, id: Id, nodes: &mut [Node]) {
        match self {
            Free::Small(bins) => bins.remove(id, nodes),
            Free::Large(set) => {
                let block = &nodes[id as usize];
                set.remove(&(block.bytes, block.address, id));
            }
        }
    }

    /// The smallest block of at least `bytes`; it stays where it is.
    pub(super) fn best(&self, bytes: usize) -> Option<Id> {
        match self {
            Free::Small(bins) => bins.best(bytes),
            Free::Large(set) => set.range((bytes, 0, 0)..).next().map(|&(_, _, id)| id),
        }
    }

    /// The size of the largest block.
    pub(super) fn largest(&self) -> usize {
        match self {
            Free::Small(bins) => bins.largest(),
            Free::Large(set) => set.last().map_or(0, |&(bytes, _, _)| bytes),
        }
    }

    /// All blocks, in no order.
    pub(super) fn all(&self, nodes: &[Node]) -> Vec<Id> {
        match self {
            Free::Small(bins) => bins.all(nodes),
            Free::Large(set) => set.iter().map(|&(_, _, id)| id).collect(),
        }
    }
}

const BINS: usize = SMALL_SEGMENT / GRAIN;
const WORDS: usize = BINS / 64;
pub(super) const NONE: Id = Id::MAX;

/// A list per number of grains, and bits that tell which lists have something.
pub(super) struct Bins {
    first: [Id; BINS],
    words: [u64; WORDS],
    /// A bit per word that is not zero.
    filled: u64,
}

impl Bins {
    fn new() -> Bins {
        const { assert!(WORDS <= 64) };
        Bins { first: [NONE; BINS], words: [0; WORDS], filled: 0 }
    }

    fn bin(bytes: usize) -> usize {
        bytes / GRAIN - 1
    }

    fn insert(&mut self, id: Id, nodes: &mut [Node]) {
        let bin = Bins::bin(nodes[id as usize].bytes);
        let next = std::mem::replace(&mut self.first[bin], id);
        (nodes[id as usize].previous_free, nodes[id as usize].next_free) = (NONE, next);
        if next != NONE {
            nodes[next as usize].previous_free = id;
        }
        self.words[bin / 64] |= 1 << (bin % 64);
        self.filled |= 1 << (bin / 64);
    }

    fn remove(&mut self, id: Id, nodes: &mut [Node]) {
        let Node { bytes, previous_free, next_free, .. } = nodes[id as usize];
        if next_free != NONE {
            nodes[next_free as usize].previous_free = previous_free;
        }
        if previous_free != NONE {
            nodes[previous_free as usize].next_free = next_free;
            return;
        }
        let bin = Bins::bin(bytes);
        self.first[bin] = next_free;
        if next_free == NONE {
            self.words[bin / 64] &= !(1 << (bin % 64));
            if self.words[bin / 64] == 0 {
                self.filled &= !(1 << (bin / 64));
            }
        }
    }

    fn best(&self, bytes: usize) -> Option<Id> {
        let bin = Bins::bin(bytes);
        if bin >= BINS {
            return None;
        }
        let here = self.words[bin / 64] & (u64::MAX << (bin % 64));
        let (word, bits) = if here != 0 {
            (bin / 64, here)
        } else {
            let above = self.filled.checked_shr(bin as u32 / 64 + 1).unwrap_or(0);
            if above == 0 {
                return None;
            }
            let word = bin / 64 + 1 + above.trailing_zeros() as usize;
            (word, self.words[word])
        };
        Some(self.first[word * 64 + bits.trailing_zeros() as usize])
    }

    fn largest(&self) -> usize {
        let Some(word) = self.filled.checked_ilog2() else { return 0 };
        let bit = self.words[word as usize].ilog2();
        (word as usize * 64 + bit as usize + 1) * GRAIN
    }

    fn all(&self, nodes: &[Node]) -> Vec<Id> {
        let mut all = Vec::new();
        for &first in self.first.iter().filter(|&&first| first != NONE) {
            let mut id = first;
            while id != NONE {
                all.push(id);
                id = nodes[id as usize].next_free;
            }
        }
        all
    }
}
