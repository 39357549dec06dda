//! Squares of elements turned, so that rows become columns.

use super::stream::{LINE, fetch};
use crate::Element;

/// Side of the squares that are turned at once.
pub(super) const SQUARE: usize = 8;

/// `out[row * width + column] = from[column * step + row]`, for numbers of rows and columns that are
/// multiples of [`SQUARE`].
///
/// Columns are finished one after the other: lines of memory that are far apart may throw each other
/// out of the cache. If they are `far` even from that, those of the next columns are asked for meanwhile.
pub(super) fn squares<T: Element>(
    from: &[T],
    step: usize,
    out: &mut [T],
    width: usize,
    [rows, columns]: [usize; 2],
    far: bool,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    let from = &from[..(columns - 1) * step + rows];
    let out = &mut out[..(rows - 1) * width + columns];
    // Spread over the work: memory takes a few requests at a time.
    let ask = |column: usize, row: usize| {
        if far && row.is_multiple_of(LINE / size_of::<T>()) {
            (column..columns.min(column + SQUARE))
                .for_each(|column| fetch(&from[column * step + row..][..1]));
        }
    };
    #[cfg(target_arch = "x86_64")]
    if size_of::<T>() == 4 && crate::wide::is_wide() {
        #[expect(unsafe_code, reason = "shuffles have no portable form, and need a feature")]
        // SAFETY: the processor has AVX2; elements are of 4 bytes; the furthest element read and the
        // furthest written are the last of the slices, which were cut to that above.
        unsafe {
            for column in (0..columns).step_by(SQUARE) {
                for row in (0..rows).step_by(SQUARE) {
                    ask(column + SQUARE, row);
                    let from = from.as_ptr().add(column * step + row).cast();
                    turn_words(from, step, out.as_mut_ptr().add(row * width + column).cast(), width);
                }
            }
        }
        return;
    }
    for column in (0..columns).step_by(SQUARE) {
        for row in (0..rows).step_by(SQUARE) {
            ask(column + SQUARE, row);
            turn(&from[column * step + row..], step, &mut out[row * width + column..], width);
        }
    }
}

#[inline(always)]
fn turn<T: Element>(from: &[T], step: usize, out: &mut [T], width: usize) {
    let line = |i: usize| -> [T; SQUARE] { *from[i * step..].first_chunk().expect("a whole square") };
    let lines: [[T; SQUARE]; SQUARE] = std::array::from_fn(line);
    for row in 0..SQUARE {
        let out = &mut out[row * width..][..SQUARE];
        out.iter_mut().zip(&lines).for_each(|(out, line)| *out = line[row]);
    }
}

/// Turns a square of elements of 4 bytes, whatever they are: they are only moved.
///
/// # Safety
/// 8 elements can be read at each of 8 steps, and written at each of 8 widths.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "reads and writes vectors through pointers")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn turn_words(from: *const f32, step: usize, out: *mut f32, width: usize) {
    use std::arch::x86_64::*;
    // SAFETY: the caller's promise.
    let lines: [__m256; SQUARE] = std::array::from_fn(|i| unsafe { _mm256_loadu_ps(from.add(i * step)) });
    // Single elements, then pairs, then fours change places.
    let pairs: [__m256; SQUARE] = std::array::from_fn(|i| {
        let (a, b) = (lines[i / 2 * 2], lines[i / 2 * 2 + 1]);
        if i % 2 == 0 { _mm256_unpacklo_ps(a, b) } else { _mm256_unpackhi_ps(a, b) }
    });
    let fours: [__m256; SQUARE] = std::array::from_fn(|i| {
        let first = i / 4 * 4 + i % 4 / 2;
        let (a, b) = (pairs[first], pairs[first + 2]);
        if i % 2 == 0 { _mm256_shuffle_ps::<0x44>(a, b) } else { _mm256_shuffle_ps::<0xee>(a, b) }
    });
    for row in 0..SQUARE {
        let (a, b) = (fours[row % 4], fours[row % 4 + 4]);
        let line =
            if row < 4 { _mm256_permute2f128_ps::<0x20>(a, b) } else { _mm256_permute2f128_ps::<0x31>(a, b) };
        // SAFETY: the caller's promise.
        unsafe { _mm256_storeu_ps(out.add(row * width), line) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Element>(element: impl Fn(usize) -> T) {
        for [rows, columns] in [[8, 8], [16, 8], [8, 24], [0, 8], [64, 64]] {
            let (step, width) = (rows + 3, columns + 5);
            let from: Vec<T> = (0..step * columns).map(&element).collect();
            let mut out = vec![T::default(); rows * width];
            squares(&from, step, &mut out, width, [rows, columns], columns > rows);
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                assert_eq!(out[row * width + column], from[column * step + row]);
            }
            let untouched = (0..rows).flat_map(|row| &out[row * width..][columns..width]);
            assert!(untouched.clone().all(|&x| x == T::default()));
        }
    }

    #[test]
    fn squares_of_every_size_of_element_are_turned() {
        check(|i| i as f32);
        check(|i| i as i16);
        check(|i| i as f64);
        check(|i| i % 3 == 0);
    }
}
