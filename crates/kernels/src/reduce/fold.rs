//! Pairwise folds over slices and over rows.
//!
//! What is folded is cut into spans by shape alone, for several threads; their results are folded
//! in order.

use super::blocks::Blocks;
use crate::elementwise::cost;
use crate::scratch::Scratch;
use crate::wide::{is_computed_in, wide};
use crate::{Element, Number, threads};

/// Running results side by side: enough to hide the latency of an addition.
const LANES: usize = 32;
/// Elements folded one after the other, lane by lane, before halves are paired.
const RUN: usize = 1024;
/// Places from which runs of long slices are gathered.
const PLACES: usize = 4;
/// Elements from which on a slice is long.
const FAR: usize = 1 << 14;
/// Rows folded one after the other.
const ROWS: usize = 32;
/// Elements that one thread folds at once.
const SPAN: usize = 1 << 16;
/// Columns folded together: their results stay in the first cache.
const STRIP: usize = 2048;

/// The loops of one way to fold. All that leads to them is compiled once per element type.
pub(super) trait Folding<T>: Sync {
    /// The fold of all elements.
    fn slice(&self, x: &[T], empty: T) -> T;
    /// Folds a row into `out`.
    fn merge(&self, out: &mut [T], row: &[T]);
    /// Folds four rows into `out`.
    fn merge_four(&self, out: &mut [T], rows: [&[T]; 4]);
}

impl<T: Element, F: Fn(T, T) -> T + Copy + Sync> Folding<T> for F {
    fn slice(&self, x: &[T], empty: T) -> T {
        fold(x, empty, *self)
    }

    fn merge(&self, out: &mut [T], row: &[T]) {
        merge(out, row, *self);
    }

    fn merge_four(&self, out: &mut [T], rows: [&[T]; 4]) {
        merge_four(out, rows, *self);
    }
}

/// The sum of all elements.
pub(crate) fn sum_slice<T: Number>(x: &[T]) -> T {
    fold(x, T::ZERO, T::plus)
}

/// The sum of no more than a span.
pub(super) fn sum_few<T: Number>(x: &[T]) -> T {
    assert!(x.len() <= SPAN, "{} elements are more than a span", x.len());
    sum_slice(x)
}

/// Folds all elements, in an order of its own; `empty` is the fold of nothing.
fn fold<T: Element>(x: &[T], empty: T, f: impl Fn(T, T) -> T + Copy) -> T {
    // What no order changes needs none, and what is not computed in need not be fast.
    if x.len() < LANES || !is_computed_in::<T>() {
        return x.iter().copied().reduce(f).unwrap_or(empty);
    }
    if x.len() < RUN + LANES { run(x, f) } else { pairwise(x, f) }
}

wide! {
    /// As [`fold`], over elements that make one run.
    fn run[T: Element, F: Fn(T, T) -> T + Copy](x: &[T], f: F) -> T, for T {
        lanes(x, f)
    }
}

wide! {
    /// As [`fold`], over several runs.
    fn pairwise[T: Element, F: Fn(T, T) -> T + Copy](x: &[T], f: F) -> T, for T {
        let mut pairs = Pairs { partial: [x[0]; 64], depth: 0, runs: 0 };
        // Runs are gathered from places apart: the processor fetches ahead at each of them.
        let place = if x.len() < FAR { 0 } else { (x.len() - LANES) / RUN * (RUN / PLACES) };
        for at in (0..place).step_by(RUN / PLACES) {
            pairs.push(gathered(std::array::from_fn(|i| &x[i * place + at..][..RUN / PLACES]), f), f);
        }
        let mut rest = &x[PLACES * place..];
        while rest.len() >= RUN + LANES {
            let (run, after) = rest.split_at(RUN);
            rest = after;
            pairs.push(lanes(run, f), f);
        }
        pairs.finish(lanes(rest, f), f)
    }
}

/// A stack of partial results, each over twice as many runs as the one above it.
struct Pairs<T> {
    partial: [T; 64],
    depth: usize,
    runs: usize,
}

impl<T: Copy> Pairs<T> {
    #[inline(always)]
    fn push(&mut self, run: T, f: impl Fn(T, T) -> T) {
        self.partial[self.depth] = run;
        self.depth += 1;
        self.runs += 1;
        for _ in 0..self.runs.trailing_zeros() {
            self.depth -= 1;
            self.partial[self.depth - 1] = f(self.partial[self.depth - 1], self.partial[self.depth]);
        }
    }

    #[inline(always)]
    fn finish(&self, last: T, f: impl Fn(T, T) -> T) -> T {
        self.partial[..self.depth].iter().rev().fold(last, |sum, &part| f(part, sum))
    }
}

/// Folds a run of which each place has a part, lane by lane.
#[inline(always)]
fn gathered<T: Copy>(parts: [&[T]; PLACES], f: impl Fn(T, T) -> T + Copy) -> T {
    let parts = parts.map(|part| part.as_chunks::<{ LANES / PLACES }>().0);
    let mut sums = [parts[0][0]; PLACES];
    (0..PLACES).for_each(|place| sums[place] = parts[place][0]);
    #[expect(clippy::needless_range_loop, reason = "all places move on together")]
    for at in 1..RUN / LANES {
        for place in 0..PLACES {
            for (sum, &x) in sums[place].iter_mut().zip(&parts[place][at]) {
                *sum = f(*sum, x);
            }
        }
    }
    lanes(sums.as_flattened(), f)
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
pub(super) fn fold_blocks<T: Element>(blocks: &Blocks<'_, T>, out: &mut [T], empty: T, f: &dyn Folding<T>) {
    if blocks.elements.is_empty() {
        return out.fill(empty);
    }
    let &Blocks { ref elements, size, inner } = blocks;
    let rows = if inner == 1 { SPAN } else { (SPAN / inner).max(1).next_multiple_of(ROWS) };
    let spans = size.div_ceil(rows);
    if spans == 1 {
        return fold_spans(elements, [size, size, inner], out, empty, f);
    }
    let mut partial = Scratch::new(out.len() * spans);
    fold_spans(elements, [size, rows, inner], &mut partial, empty, f);
    fold_spans(&partial, [spans, spans, inner], out, empty, f);
}

/// Folds groups of `size` rows, `rows` at a time, each to one row of `out`; rows are of `inner` elements.
fn fold_spans<T: Element>(
    x: &[T],
    [size, rows, inner]: [usize; 3],
    out: &mut [T],
    empty: T,
    f: &dyn Folding<T>,
) {
    let (spans, cost) = (size.div_ceil(rows), cost(size_of_val(x)));
    // Where a span starts, in rows, and how many there are.
    let span = |number: usize| {
        let first = number % spans * rows;
        (number / spans * size + first, rows.min(size - first))
    };
    let together = (SPAN / (rows * inner)).max(1);
    if inner == 1 {
        threads::each_chunk(out, together, cost, |i, out| {
            for (number, out) in (i * together..).zip(out) {
                let (first, count) = span(number);
                *out = f.slice(&x[first..][..count], empty);
            }
        });
    } else if inner <= STRIP {
        threads::each_chunk(out, together * inner, cost, |i, out| {
            for (number, out) in (i * together..).zip(out.chunks_mut(inner)) {
                let (first, count) = span(number);
                fold_strip(&x[first * inner..], inner, count, out, f);
            }
        });
    } else {
        let strips = out.chunks_mut(inner).enumerate().flat_map(|(number, out)| {
            out.chunks_mut(STRIP).enumerate().map(move |(strip, out)| (number, strip, out))
        });
        threads::each_of(strips.collect(), cost, |(number, strip, out)| {
            let (first, count) = span(number);
            fold_strip(&x[first * inner + strip * STRIP..], inner, count, out, f);
        });
    }
}

/// The sum of rows, each as long as `out`.
pub(crate) fn sum_columns<T: Number>(rows: &[T], out: &mut [T]) {
    let (inner, count) = (out.len(), rows.len() / out.len().max(1));
    match count {
        0 => out.fill(T::ZERO),
        _ => fold_strip(rows, inner, count, out, &T::plus),
    }
}

/// Folds at least one row, `stride` elements apart.
fn fold_strip<T: Element>(x: &[T], stride: usize, count: usize, out: &mut [T], f: &dyn Folding<T>) {
    let levels = count.div_ceil(ROWS).next_power_of_two().ilog2() as usize;
    let mut scratch = Scratch::new(levels * out.len());
    fold_rows(x, stride, count, out, &mut scratch, f);
}

/// As [`fold_strip`], with room for the results of halves.
fn fold_rows<T: Element>(
    x: &[T],
    stride: usize,
    count: usize,
    out: &mut [T],
    scratch: &mut [T],
    f: &dyn Folding<T>,
) {
    if count <= ROWS {
        let width = out.len();
        let row = |row: usize| &x[row * stride..][..width];
        out.copy_from_slice(row(0));
        let single = 1 + (count - 1) / 4 * 4;
        (1..single).step_by(4).for_each(|at| f.merge_four(out, [0, 1, 2, 3].map(|i| row(at + i))));
        return (single..count).for_each(|at| f.merge(out, row(at)));
    }
    // Halves of whole blocks, so that there is room for each.
    let half = count.div_ceil(ROWS).next_power_of_two() / 2 * ROWS;
    let (other, scratch) = scratch.split_at_mut(out.len());
    fold_rows(x, stride, half, out, scratch, f);
    fold_rows(&x[half * stride..], stride, count - half, other, scratch, f);
    f.merge(out, other);
}

wide! {
    /// Four rows at once: the processor fetches ahead in each.
    fn merge_four[T: Element, F: Fn(T, T) -> T](out: &mut [T], rows: [&[T]; 4], f: F), for T {
        let [a, b, c, d] = rows;
        for ((((out, &a), &b), &c), &d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *out = f(*out, f(f(a, b), f(c, d)));
        }
    }
}

wide! {
    fn merge[T: Element, F: Fn(T, T) -> T](out: &mut [T], row: &[T], f: F), for T {
        for (out, &x) in out.iter_mut().zip(row) {
            *out = f(*out, x);
        }
    }
}
