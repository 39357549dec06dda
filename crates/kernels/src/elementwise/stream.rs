//! Outputs far larger than the caches, written past them: a store that goes through a cache reads
//! the line first that it then overwrites.

use crate::Element;

/// Bytes from which on an output is not found in a cache by whoever reads it next.
const FAR: usize = 32 << 20;
/// Elements that are computed at once, before they leave the first cache.
const BLOCK: usize = 1024;

/// Whether a slice is large enough to be written past the caches.
pub(super) fn pays<T: Element>(out: &[T]) -> bool {
    size_of_val(out) >= FAR
}

/// Lets `fill` compute blocks of `out`, given where they start, and writes them past the caches.
pub(super) fn through<T: Element>(out: &mut [T], fill: impl Fn(usize, &mut [T])) {
    let mut block = vec![T::default(); BLOCK.min(out.len())];
    for (i, out) in out.chunks_mut(BLOCK).enumerate() {
        let block = &mut block[..out.len()];
        fill(i * BLOCK, block);
        copy(block, out);
    }
}

/// As `copy_from_slice`, past the caches where the processor can.
pub(super) fn copy<T: Element>(from: &[T], to: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if crate::wide::is_wide() {
        #[expect(unsafe_code, reason = "calls code for a feature that it has looked for")]
        // SAFETY: the processor has AVX2.
        return unsafe { copy_lines(from, to) };
    }
    to.copy_from_slice(from);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn copy_lines<T: Element>(from: &[T], to: &mut [T]) {
    use std::arch::x86_64::{__m256i, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};
    assert_eq!(from.len(), to.len());
    const LINE: usize = 64;
    // Whole lines only: a part of one would be read and merged.
    let head = to.as_ptr().align_offset(LINE).min(to.len());
    let lines = (to.len() - head) * size_of::<T>() / LINE;
    let body = head + lines * (LINE / size_of::<T>());
    to[..head].copy_from_slice(&from[..head]);
    to[body..].copy_from_slice(&from[body..]);
    let (source, target) =
        (from[head..body].as_ptr().cast::<__m256i>(), to[head..body].as_mut_ptr().cast::<__m256i>());
    for i in 0..2 * lines {
        #[expect(unsafe_code, reason = "stores that bypass the caches have no safe form")]
        // SAFETY: both slices hold `lines` lines of two vectors each; the target starts at a line.
        unsafe {
            _mm256_stream_si256(target.add(i), _mm256_loadu_si256(source.add(i)));
        }
    }
    // Other threads see these stores in order with those that follow.
    _mm_sfence();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_past_the_caches_arrives_whatever_its_alignment() {
        let from: Vec<f32> = (0..5000).map(|i| i as f32).collect();
        for (start, len) in [(0, 5000), (1, 100), (3, 1), (7, 0), (9, 15), (15, 2049), (16, 4984)] {
            let mut to = vec![-1.0f32; 5000];
            copy(&from[..len], &mut to[start..][..len]);
            assert_eq!(to[start..][..len], from[..len]);
            assert!(to[..start].iter().chain(&to[start + len..]).all(|&x| x == -1.0));
            through(&mut to[start..][..len], |at, block| block.copy_from_slice(&from[at..][..block.len()]));
            assert_eq!(to[start..][..len], from[..len]);
        }
    }
}
