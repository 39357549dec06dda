//! Which parts of an address range are in use.

use crate::memory::Span;
use std::collections::BTreeMap;

/// Every block starts at a multiple of this.
const ALIGN: usize = 64;
/// What the hardware adds behind every block.
const PADDING: usize = 32;

/// Blocks handed out and gaps between them, by address.
pub(crate) struct Blocks {
    gaps: BTreeMap<usize, usize>,
    live: BTreeMap<usize, Block>,
    capacity: usize,
    used: usize,
}

/// One block: what was asked for, and what it takes.
struct Block {
    bytes: usize,
    taken: usize,
}

impl Blocks {
    /// Hands out at most `capacity` bytes at once, from `range`.
    pub(crate) fn new(range: Span, capacity: usize) -> Blocks {
        let gaps = BTreeMap::from([(range.start, range.bytes)]);
        Blocks { gaps, live: BTreeMap::new(), capacity, used: 0 }
    }

    /// The first gap that fits; `None` if there is none or the capacity is reached.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Option<usize> {
        let taken = bytes.checked_next_multiple_of(32)?.checked_add(PADDING)?;
        if taken > self.free() {
            return None;
        }
        let step = taken.checked_next_multiple_of(ALIGN)?;
        let (&start, &gap) = self.gaps.iter().find(|&(_, &gap)| gap >= step)?;
        self.gaps.remove(&start);
        if gap > step {
            self.gaps.insert(start + step, gap - step);
        }
        self.live.insert(start, Block { bytes, taken });
        self.used += taken;
        Some(start)
    }

    /// Ends the block that starts at `start`; false if there is none.
    pub(crate) fn release(&mut self, start: usize) -> bool {
        let Some(Block { taken, .. }) = self.live.remove(&start) else { return false };
        self.used -= taken;
        let (mut start, mut gap) = (start, taken.next_multiple_of(ALIGN));
        if let Some(after) = self.gaps.remove(&(start + gap)) {
            gap += after;
        }
        if let Some((&before, &size)) = self.gaps.range(..start).next_back()
            && before + size == start
        {
            self.gaps.remove(&before);
            (start, gap) = (before, size + gap);
        }
        self.gaps.insert(start, gap);
        true
    }

    /// The live block that `address` lies in.
    pub(crate) fn around(&self, address: usize) -> Option<Span> {
        let (&start, block) = self.live.range(..=address).next_back()?;
        (address - start < block.bytes).then_some(Span { start, bytes: block.bytes })
    }

    /// Bytes not handed out.
    pub(crate) fn free(&self) -> usize {
        self.capacity - self.used
    }

    /// Bytes there are in all.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: Span = Span { start: 0x1000, bytes: 4096 };

    #[test]
    fn blocks_are_aligned_padded_and_counted() {
        let mut blocks = Blocks::new(RANGE, 1000);
        let (one, two) = (blocks.allocate(1).unwrap(), blocks.allocate(33).unwrap());
        assert_eq!((one % 64, two % 64, blocks.free()), (0, 0, 1000 - 64 - 96));
        assert!(blocks.allocate(1000).is_none() && blocks.allocate(usize::MAX).is_none());
    }

    #[test]
    fn freed_neighbours_merge() {
        let mut blocks = Blocks::new(RANGE, 4096);
        let all: Vec<usize> = (0..4).map(|_| blocks.allocate(900).unwrap()).collect();
        for at in [1, 3, 2, 0] {
            assert!(blocks.release(all[at]));
        }
        assert!(!blocks.release(all[0]));
        assert_eq!((blocks.gaps.len(), blocks.free()), (1, 4096));
        assert_eq!(blocks.allocate(3000), Some(RANGE.start));
    }

    #[test]
    fn only_bytes_asked_for_belong_to_a_block() {
        let mut blocks = Blocks::new(RANGE, 4096);
        let start = blocks.allocate(10).unwrap();
        assert_eq!(blocks.around(start + 9), Some(Span { start, bytes: 10 }));
        assert_eq!(blocks.around(start + 10), None);
        blocks.release(start);
        assert_eq!(blocks.around(start), None);
    }
}
