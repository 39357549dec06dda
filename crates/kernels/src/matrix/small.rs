//! Products of matrices so small that packing and choosing blocks costs more than multiplying.

use super::part::Places;
use crate::Float;
use crate::wide::wide;

/// The most columns, and the most rows of the right operand.
const SIDE: usize = 16;
/// Beyond this many multiplications the gemm crate is faster.
const MOST: usize = 2048;

pub(super) fn suits([m, k, n]: [usize; 3]) -> bool {
    n <= SIDE && k <= SIDE && m * n * k <= MOST
}

/// `out = alpha * a @ b + beta * out`, for shapes that [`suits`] accepts.
///
/// # Safety
/// As for `product_at`.
pub(super) unsafe fn product<T: Float>(shape: [usize; 3], alpha: T, at: Places<T>, beta: T) {
    debug_assert!(suits(shape));
    if shape[2] <= SIDE / 2 {
        // SAFETY: the caller's promise.
        unsafe { rows::<T, { SIDE / 2 }>(shape, alpha, at, beta) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { rows::<T, SIDE>(shape, alpha, at, beta) }
    }
}

/// # Safety
/// As for `product_at`; there are at most `N` columns.
unsafe fn rows<T: Float, const N: usize>([m, k, n]: [usize; 3], alpha: T, at: Places<T>, beta: T) {
    let (a, a_down, a_across) = at.a;
    let (b, b_down, b_across) = at.b;
    let (out, down, across) = at.out;
    let mut right = [[T::ZERO; N]; SIDE];
    for (i, row) in right.iter_mut().enumerate().take(k) {
        for (j, place) in row.iter_mut().enumerate().take(n) {
            // SAFETY: the index is inside of `b`.
            *place = unsafe { *b.add(i * b_down + j * b_across) };
        }
    }
    for first in (0..m).step_by(BLOCK) {
        let mut left = [[T::ZERO; BLOCK]; SIDE];
        for i in first..m.min(first + BLOCK) {
            for (p, column) in left.iter_mut().enumerate().take(k) {
                // SAFETY: the index is inside of `a`.
                column[i - first] = unsafe { *a.add(i * a_down + p * a_across) };
            }
        }
        let mut sums = [[T::ZERO; N]; BLOCK];
        combine(&left[..k], &right, &mut sums);
        for (i, sums) in (first..m).zip(&sums) {
            for (j, &sum) in sums.iter().enumerate().take(n) {
                // SAFETY: the index is inside of `out`, which is read only if it counts.
                unsafe {
                    let place = out.add(i * down + j * across);
                    let before = if beta == T::ZERO { T::ZERO } else { beta * *place };
                    *place = before + alpha * sum;
                }
            }
        }
    }
}

/// Rows that are computed together, so that none waits for another's sum.
const BLOCK: usize = 4;

wide! {
    /// Adds the rows of `right`, multiplied by the columns of `left`, to each of `sums`.
    fn combine[T: Float, const N: usize](left: &[[T; BLOCK]], right: &[[T; N]; SIDE], sums: &mut [[T; N]; BLOCK]) {
        let mut together = *sums;
        for (left, right) in left.iter().zip(right) {
            for (sums, &left) in together.iter_mut().zip(left) {
                for (sum, &right) in sums.iter_mut().zip(right) {
                    *sum = *sum + left * right;
                }
            }
        }
        *sums = together;
    }
}
