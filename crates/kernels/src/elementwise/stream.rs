//! Outputs far larger than the caches, written past them: a store that goes through a cache reads
//! the line first that it then overwrites.
//!
//! Four places of a piece are worked on in turn, so that the processor fetches ahead at each of
//! them: one core moves a third more than from a single place. Blocks are a fraction of a page,
//! because what is fetched ahead ends with it.

use crate::Element;
use crate::wide::is_computed_in;

/// Bytes from which on an output is not found in a cache by whoever reads it next. Tests have less, so that
/// they come here at all.
const FAR: usize = if cfg!(test) { 1 << 17 } else { 32 << 20 };
/// Elements that are computed at once, before the next place has its turn.
pub(super) const BLOCK: usize = 128;
/// Places that are worked on in turn.
pub(super) const PLACES: usize = 4;
/// Bytes that memory moves at once.
pub(super) const LINE: usize = 64;

/// Whether a slice is large enough to be written past the caches. Types that are computed in are worth
/// the code.
pub(super) fn pays<T: Element>(out: &[T]) -> bool {
    is_computed_in::<T>() && size_of_val(out) >= FAR
}

/// Lets `fill` compute blocks of `out`, given which place's turn it is and where they start, and writes
/// them past the caches. The blocks of one place follow each other.
pub(super) fn through<T: Element, const BLOCK: usize>(
    out: &mut [T],
    mut fill: impl FnMut(usize, usize, &mut [T]),
) {
    let mut block = [T::default(); BLOCK];
    let mut write = |place: usize, at: usize, out: &mut [T]| {
        let block = &mut block[..out.len()];
        fill(place, at, block);
        copy_past(block, out);
    };
    // Blocks of whole lines: a part of one would be read and merged.
    let head = out.as_ptr().align_offset(LINE).min(out.len());
    write(0, 0, &mut out[..head]);
    let len = (out.len() - head) / (PLACES * BLOCK) * BLOCK;
    for at in (head..head + len).step_by(BLOCK) {
        for (place, start) in (0..PLACES).map(|place| (place, at + place * len)) {
            write(place, start, &mut out[start..][..BLOCK]);
        }
    }
    let rest = head + PLACES * len;
    for (i, out) in out[rest..].chunks_mut(BLOCK).enumerate() {
        write(PLACES - 1, rest + i * BLOCK, out);
    }
    finish();
}

/// Copies past the caches. Other threads may see it only after [`finish`].
pub(super) fn copy_past<T: Element>(from: &[T], to: &mut [T]) {
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
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};
    assert_eq!(from.len(), to.len());
    let head = to.as_ptr().align_offset(LINE).min(to.len());
    let lines = (to.len() - head) * size_of::<T>() / LINE;
    let body = head + lines * (LINE / size_of::<T>());
    if lines * LINE < size_of_val(to) {
        to[..head].copy_from_slice(&from[..head]);
        to[body..].copy_from_slice(&from[body..]);
    }
    let (source, target) =
        (from[head..body].as_ptr().cast::<__m256i>(), to[head..body].as_mut_ptr().cast::<__m256i>());
    for i in 0..2 * lines {
        #[expect(unsafe_code, reason = "stores that bypass the caches have no safe form")]
        // SAFETY: both slices hold `lines` lines of two vectors each; the target starts at a line.
        unsafe {
            _mm256_stream_si256(target.add(i), _mm256_loadu_si256(source.add(i)));
        }
    }
}

/// Lets other threads see what was copied before they see anything that this thread does next.
pub(super) fn finish() {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "an instruction that the compiler does not take for granted")]
    // SAFETY: every x86-64 processor has SSE.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Asks memory for elements that are to be read soon.
#[inline]
pub(super) fn fetch<T: Element>(elements: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in elements.chunks(LINE / size_of::<T>()) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        #[expect(unsafe_code, reason = "an instruction that the compiler does not take for granted")]
        // SAFETY: every x86-64 processor has SSE, and nothing is read.
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = elements;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_past_the_caches_arrives_whatever_its_alignment() {
        let from: Vec<f32> = (0..5000).map(|i| i as f32).collect();
        for (start, len) in [(0, 5000), (1, 100), (3, 1), (7, 0), (9, 15), (15, 2049), (16, 4984)] {
            let mut to = vec![-1.0f32; 5000];
            let mut next = [None; PLACES];
            through::<_, BLOCK>(&mut to[start..][..len], |place, at, block| {
                assert!(next[place].is_none_or(|next| next == at), "a place goes on where it was");
                next[place] = Some(at + block.len());
                block.copy_from_slice(&from[at..][..block.len()])
            });
            assert_eq!(to[start..][..len], from[..len]);
            assert!(to[..start].iter().chain(&to[start + len..]).all(|&x| x == -1.0));
        }
    }
}
