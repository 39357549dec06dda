//! The weighted average of values, block by block of keys.

use super::parts::{Heads, KEYS, LANES, Mask, Rows, Scores, Shape};
use crate::Float;
use crate::matrix::{Part, PartMut, multiply};
use crate::scratch::Scratch;
use crate::threads::each;
use crate::wide::wide;

pub(super) fn forward<T: Float>(
    [query, key, value]: [Heads<'_, T>; 3],
    mask: Option<Mask<'_, T>>,
    shape: Shape,
    out: Rows<'_, T>,
    log_sum: Rows<'_, T>,
) {
    let blocks = shape.blocks();
    each(shape.batch * shape.heads * blocks, shape.cost(4), |task| {
        let (at, block) = (task / blocks, task % blocks);
        let at = [at / shape.heads, at % shape.heads];
        let shared = [at[0], shape.key_head(at[1])];
        let (first, queries) = shape.range(block);
        let seen = shape.seen(first + queries);
        let mut scores = Scratch::new(queries * KEYS.min(seen));
        let mut sums = Scratch::new(queries * shape.width);
        let mut lines = vec![Line { max: T::neg_infinity(), sum: T::ZERO }; queries];
        for first_key in (0..seen).step_by(KEYS) {
            let keys = KEYS.min(seen - first_key);
            let scores = &mut scores[..queries * keys];
            let block = Scores { shape: &shape, mask, at, first, queries, first_key, keys };
            block.fill(query.part(at, first, queries), key.part(shared, first_key, keys), scores);
            let rows = scores.chunks_exact_mut(keys).zip(&mut lines).zip(sums.chunks_exact_mut(shape.width));
            for (row, ((scores, line), sums)) in rows.enumerate() {
                let (seen, unseen) = scores.split_at_mut(block.seen(row));
                line.weigh(seen, sums);
                unseen.fill(T::ZERO);
            }
            let weights = Part { elements: scores, rows: queries, columns: keys, down: keys, across: 1 };
            let sums =
                PartMut { elements: &mut sums, rows: queries, columns: shape.width, down: shape.width };
            let before = if first_key == 0 { T::ZERO } else { T::ONE };
            multiply(T::ONE, weights, value.part(shared, first_key, keys), before, sums);
        }
        for (row, (line, sums)) in lines.iter().zip(sums.chunks_exact(shape.width)).enumerate() {
            let factor = line.factor();
            // SAFETY: tasks are of different heads or queries.
            unsafe {
                out.fill([at[0], at[1], first + row], sums.iter().map(|&sum| sum * factor));
                log_sum.fill([at[0], at[1], first + row], [line.max + line.sum.ln()].into_iter());
            }
        }
    });
}

/// What is known of one query's scores so far.
#[derive(Clone, Copy)]
struct Line<T> {
    max: T,
    sum: T,
}

impl<T: Float> Line<T> {
    /// Turns more scores into exponentials; what was summed with a smaller maximum shrinks.
    fn weigh(&mut self, scores: &mut [T], sums: &mut [T]) {
        let max = largest(scores, self.max);
        // A query that sees nothing yet has weights of 0, not of NaN.
        let shift = if max == T::neg_infinity() { T::ZERO } else { max };
        if self.sum != T::ZERO && max != self.max {
            let shrink = (self.max - shift).exponential();
            self.sum = self.sum * shrink;
            sums.iter_mut().for_each(|sum| *sum = *sum * shrink);
        }
        self.sum = self.sum + exponentials(scores, shift);
        self.max = max;
    }

    /// What makes the sum of weights 1.
    fn factor(&self) -> T {
        if self.sum == T::ZERO { T::ZERO } else { T::ONE / self.sum }
    }
}

wide! {
    fn largest[T: Float](x: &[T], least: T) -> T {
        let (blocks, rest) = x.as_chunks::<LANES>();
        let mut lanes = [least; LANES];
        for block in blocks {
            for (lane, &x) in lanes.iter_mut().zip(block) {
                *lane = if x > *lane { x } else { *lane };
            }
        }
        lanes.iter().chain(rest).fold(least, |max, &x| if x > max { x } else { max })
    }
}

wide! {
    /// `x = exp(x - shift)`; gives the sum.
    fn exponentials[T: Float](x: &mut [T], shift: T) -> T, heavy if true {
        let (blocks, rest) = x.as_chunks_mut::<LANES>();
        let mut lanes = [T::ZERO; LANES];
        for block in blocks {
            for (lane, x) in lanes.iter_mut().zip(block) {
                *x = (*x - shift).exponential();
                *lane = *lane + *x;
            }
        }
        let mut sum = lanes.iter().fold(T::ZERO, |sum, &lane| sum + lane);
        for x in rest {
            *x = (*x - shift).exponential();
            sum = sum + *x;
        }
        sum
    }
}
