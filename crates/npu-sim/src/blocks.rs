//! Which parts of an address range are in use.

use crate::memory::Span;
use std::collections::BTreeMap;

/// Every block starts at a multiple of this.
const ALIGN: usize = 64;
/// What the hardware adds behind every block.
const PADDING: usize = 32;
/// What blocks of huge pages are made of, and what they start at.
const HUGE_PAGE: usize = 2 << 20;
const HUGE_FROM: usize = 1 << 20;

/// How a block is rounded.
#[derive(Clone, Copy)]
pub(crate) struct Rounding {
    /// Add what the hardware adds.
    pub(crate) padded: bool,
    /// Take huge pages if the block is large.
    pub(crate) huge: bool,
}

impl Rounding {
    /// Bytes taken for a block of `bytes`.
    fn round(self, bytes: usize) -> Option<usize> {
        let padding = if self.padded { PADDING } else { 0 };
        let taken = bytes.checked_next_multiple_of(32)?.checked_add(padding)?;
        match self.huge && bytes > HUGE_FROM {
            true => taken.checked_next_multiple_of(HUGE_PAGE),
            false => Some(taken),
        }
    }
}

/// Blocks handed out and gaps between them, by address.
pub(crate) struct Blocks {
    gaps: BTreeMap<usize, usize>,
    live: BTreeMap<usize, Block>,
    /// Addresses that blocks are mapped to later, by their start.
    reserved: BTreeMap<usize, usize>,
    capacity: usize,
    used: usize,
    peak: usize,
}

/// One block: what was asked for, and what it takes.
struct Block {
    bytes: usize,
    taken: usize,
    /// Whether its bytes were taken apart from its address; such blocks may follow each other.
    mapped: bool,
}

impl Blocks {
    /// Hands out at most `capacity` bytes at once, from `range`.
    pub(crate) fn new(range: Span, capacity: usize) -> Blocks {
        let gaps = BTreeMap::from([(range.start, range.bytes)]);
        Blocks { gaps, live: BTreeMap::new(), reserved: BTreeMap::new(), capacity, used: 0, peak: 0 }
    }

    /// The first gap that fits; `None` if there is none or the capacity is reached.
    pub(crate) fn allocate(&mut self, bytes: usize, rounding: Rounding) -> Option<usize> {
        let taken = rounding.round(bytes)?;
        if taken > self.free() {
            return None;
        }
        let start = self.take_gap(taken.checked_next_multiple_of(ALIGN)?)?;
        self.live.insert(start, Block { bytes, taken, mapped: false });
        self.take(taken);
        Some(start)
    }

    /// Takes addresses from the first gap that has so many.
    fn take_gap(&mut self, step: usize) -> Option<usize> {
        let (&start, &gap) = self.gaps.iter().find(|&(_, &gap)| gap >= step)?;
        self.gaps.remove(&start);
        if gap > step {
            self.gaps.insert(start + step, gap - step);
        }
        Some(start)
    }

    /// Counts bytes as used, if there are so many; they have no address.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.free();
        if fits {
            self.used += bytes;
            self.peak = self.peak.max(self.used);
        }
        fits
    }

    /// Counts bytes as free again.
    pub(crate) fn give(&mut self, bytes: usize) {
        self.used -= bytes;
    }

    /// Takes addresses without bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Option<usize> {
        let start = self.take_gap(bytes.checked_next_multiple_of(ALIGN)?)?;
        self.reserved.insert(start, bytes);
        Some(start)
    }

    /// Gives such addresses back; false if blocks are mapped to them, or they were not reserved.
    pub(crate) fn unreserve(&mut self, start: usize) -> bool {
        let Some(&bytes) = self.reserved.get(&start) else { return false };
        if self.live.range(start..start + bytes).next().is_some() {
            return false;
        }
        self.reserved.remove(&start);
        self.give_gap(start, bytes.next_multiple_of(ALIGN));
        true
    }

    /// Makes a block at reserved addresses; false if they are not, or are in use.
    pub(crate) fn map(&mut self, start: usize, bytes: usize) -> bool {
        let span = Span { start, bytes };
        let around = self.reserved.range(..=start).next_back();
        let inside = around.is_some_and(|(&start, &bytes)| Span { start, bytes }.contains(span));
        let before = self.live.range(..span.end()).next_back();
        let used = before.is_some_and(|(&start, block)| Span { start, bytes: block.bytes }.meets(span));
        if inside && !used {
            self.live.insert(start, Block { bytes, taken: 0, mapped: true });
        }
        inside && !used
    }

    /// Ends such a block; gives its size.
    pub(crate) fn unmap(&mut self, start: usize) -> Option<usize> {
        let bytes = self.live.get(&start).filter(|block| block.mapped)?.bytes;
        self.live.remove(&start);
        Some(bytes)
    }

    /// Ends the block that starts at `start`; false if there is none.
    pub(crate) fn release(&mut self, start: usize) -> bool {
        if self.live.get(&start).is_none_or(|block| block.mapped) {
            return false;
        }
        let Some(Block { taken, .. }) = self.live.remove(&start) else { return false };
        self.used -= taken;
        self.give_gap(start, taken.next_multiple_of(ALIGN));
        true
    }

    fn give_gap(&mut self, mut start: usize, mut gap: usize) {
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
    }

    /// The live block that `address` lies in; mapped blocks that follow each other are one.
    pub(crate) fn around(&self, address: usize) -> Option<Span> {
        let (&start, block) = self.live.range(..=address).next_back()?;
        if address - start >= block.bytes {
            return None;
        }
        let mut span = Span { start, bytes: block.bytes };
        if block.mapped {
            let followers = self.live.range(span.end()..);
            for (&start, _) in followers.take_while(|(_, block)| block.mapped) {
                if start != span.end() {
                    break;
                }
                span.bytes += self.live[&start].bytes;
            }
        }
        Some(span)
    }

    /// Bytes not handed out.
    pub(crate) fn free(&self) -> usize {
        self.capacity - self.used
    }

    /// Bytes handed out, and the most that ever were.
    pub(crate) fn usage(&self) -> (usize, usize) {
        (self.used, self.peak)
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
    const PLAIN: Rounding = Rounding { padded: true, huge: false };

    #[test]
    fn large_blocks_come_in_huge_pages() {
        let range = Span { start: 0x1000, bytes: 16 << 20 };
        let mut blocks = Blocks::new(range, 8 << 20);
        let huge = Rounding { padded: true, huge: true };
        blocks.allocate(1 << 20, huge).unwrap();
        assert_eq!(blocks.usage().0, (1 << 20) + 32, "up to a megabyte pages are small");
        blocks.allocate((2 << 20) - 31, huge).unwrap();
        assert_eq!(blocks.usage().0, (1 << 20) + 32 + (4 << 20), "padding counts");
        assert!(blocks.allocate(2 << 20, huge).is_none(), "the rest holds no two such pages");
        blocks.allocate(2 << 20, PLAIN).unwrap();
    }

    #[test]
    fn blocks_are_aligned_padded_and_counted() {
        let mut blocks = Blocks::new(RANGE, 1000);
        let (one, two) = (blocks.allocate(1, PLAIN).unwrap(), blocks.allocate(33, PLAIN).unwrap());
        assert_eq!((one % 64, two % 64, blocks.free()), (0, 0, 1000 - 64 - 96));
        assert!(blocks.allocate(1000, PLAIN).is_none() && blocks.allocate(usize::MAX, PLAIN).is_none());
    }

    #[test]
    fn freed_neighbours_merge() {
        let mut blocks = Blocks::new(RANGE, 4096);
        let all: Vec<usize> = (0..4).map(|_| blocks.allocate(900, PLAIN).unwrap()).collect();
        for at in [1, 3, 2, 0] {
            assert!(blocks.release(all[at]));
        }
        assert!(!blocks.release(all[0]));
        assert_eq!((blocks.gaps.len(), blocks.free()), (1, 4096));
        assert_eq!(blocks.allocate(3000, PLAIN), Some(RANGE.start));
    }

    #[test]
    fn only_bytes_asked_for_belong_to_a_block() {
        let mut blocks = Blocks::new(RANGE, 4096);
        let start = blocks.allocate(10, PLAIN).unwrap();
        assert_eq!(blocks.around(start + 9), Some(Span { start, bytes: 10 }));
        assert_eq!(blocks.around(start + 10), None);
        blocks.release(start);
        assert_eq!(blocks.around(start), None);
    }

    #[test]
    fn mapped_blocks_that_follow_each_other_are_one() {
        let mut blocks = Blocks::new(RANGE, 4096);
        let start = blocks.reserve(1024).unwrap();
        assert!(blocks.take(512) && blocks.map(start, 256) && blocks.map(start + 256, 256));
        assert!(!blocks.map(start + 128, 64) && !blocks.map(start + 900, 256));
        assert_eq!(blocks.around(start + 10), Some(Span { start, bytes: 512 }));
        assert!(!blocks.release(start) && !blocks.unreserve(start));
        assert_eq!((blocks.unmap(start), blocks.unmap(start)), (Some(256), None));
        assert_eq!(blocks.around(start), None);
        assert_eq!(blocks.unmap(start + 256), Some(256));
        blocks.give(512);
        assert!(blocks.unreserve(start) && blocks.free() == 4096);
    }
}
