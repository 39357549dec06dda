//! Pairwise folds over slices and over rows.

use super::blocks::Blocks;
use crate::wide::wide;
use crate::{Element, Number};

/// Running results side by side: enough to hide the latency of an addition.
const LANES: usize = 32;
/// Elements folded one after the other, lane by lane, before halves are paired.
const RUN: usize = 1024;
/// Rows added one after the other.
const ROWS: usize = 32;

/// The sum of all elements.
pub(crate) fn sum_slice<T: Number>(x: &[T]) -> T {
    fold(x, T::ZERO, T::plus)
}

/// Folds all elements, in an order of its own; `empty` is the fold of nothing.
pub(crate) fn fold<T: Copy>(x: &[T], empty: T, f: impl Fn(T, T) -> T + Copy) -> T {
    if x.len() < LANES {
        return x.iter().copied().reduce(f).unwrap_or(empty);
    }
    pairwise(x, f)
}

wide! {
    /// As [`fold`], over at least one lane of elements.
    fn pairwise[T: Copy, F: Fn(T, T) -> T + Copy](x: &[T], f: F) -> T {
        // A stack of partial results, each over twice as many runs as the one above it.
        let mut partial = [x[0]; 64];
        let mut depth = 0;
        let (mut rest, mut runs) = (x, 0usize);
        while rest.len() >= RUN + LANES {
            let (run, after) = rest.split_at(RUN);
            rest = after;
            partial[depth] = lanes(run, f);
            depth += 1;
            runs += 1;
            for _ in 0..runs.trailing_zeros() {
                depth -= 1;
                partial[depth - 1] = f(partial[depth - 1], partial[depth]);
            }
        }
        let last = lanes(rest, f);
        partial[..depth].iter().rev().fold(last, |sum, &part| f(part, sum))
    }
}

#[inline(always)]
fn lanes<T: Copy>(x: &[T], f: impl Fn(T, T) -> T + Copy) -> T {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut sums = chunks[0];
    for chunk in &chunks[1..] {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum = f(*sum, x);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] = f(sums[i], sums[i + width]);
        }
        width /= 2;
    }
    rest.iter().fold(sums[0], |sum, &x| f(sum, x))
}

/// Folds each group of blocks to one row of `out`; `empty` is the fold of nothing.
pub(super) fn fold_blocks<T: Element>(
    blocks: &Blocks<'_, T>,
    out: &mut [T],
    empty: T,
    f: impl Fn(T, T) -> T + Copy,
) {
    if blocks.elements.is_empty() {
        return out.fill(empty);
    }
    let groups = blocks.elements.chunks_exact(blocks.size * blocks.inner);
    if blocks.inner == 1 {
        return out.iter_mut().zip(groups).for_each(|(out, row)| *out = fold(row, empty, f));
    }
    for (out, rows) in out.chunks_exact_mut(blocks.inner).zip(groups) {
        out.copy_from_slice(&rows[..blocks.inner]);
        rows.chunks_exact(blocks.inner).skip(1).for_each(|row| merge(out, row, f));
    }
}

wide! {
    fn merge[T: Copy, F: Fn(T, T) -> T](out: &mut [T], row: &[T], f: F) {
        for (out, &x) in out.iter_mut().zip(row) {
            *out = f(*out, x);
        }
    }
}

/// The sum of rows, each as long as `out`.
pub(crate) fn sum_columns<T: Number>(rows: &[T], out: &mut [T]) {
    if !out.is_empty() {
        sum_rows(rows, out, &mut scratch(rows.len() / out.len(), out.len()));
    }
}

/// Room for the partial sums of [`sum_rows`].
pub(super) fn scratch<T: Number>(rows: usize, inner: usize) -> Vec<T> {
    let levels = rows.div_ceil(ROWS).next_power_of_two().ilog2() as usize;
    vec![T::ZERO; levels * inner]
}

/// The sum of rows, each as long as `out`.
pub(super) fn sum_rows<T: Number>(rows: &[T], out: &mut [T], scratch: &mut [T]) {
    let inner = out.len();
    let count = rows.len() / inner;
    if count <= ROWS {
        return sum_few_rows(rows, out);
    }
    // Halves of whole blocks, so that the depth is what `scratch` counted.
    let half = count.div_ceil(ROWS).next_power_of_two() / 2 * ROWS;
    let (first, second) = rows.split_at(half * inner);
    let (other, scratch) = scratch.split_at_mut(inner);
    sum_rows(first, out, scratch);
    sum_rows(second, other, scratch);
    add(out, other);
}

wide! {
    fn add[T: Number](out: &mut [T], other: &[T]) {
        for (out, &other) in out.iter_mut().zip(other) {
            *out = out.plus(other);
        }
    }
}

fn sum_few_rows<T: Number>(rows: &[T], out: &mut [T]) {
    let mut rows = rows.chunks_exact(out.len());
    match rows.next() {
        Some(row) => out.copy_from_slice(row),
        None => out.fill(T::ZERO),
    }
    rows.for_each(|row| add(out, row));
}
