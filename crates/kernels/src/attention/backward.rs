//! Gradients of queries, keys and values; weights are made again from the logarithms of their sums.

use super::parts::{Heads, KEYS, LANES, Mask, QUERIES, Rows, Scores, Shape};
use crate::Float;
use crate::matrix::{Part, PartMut, multiply};
use crate::scratch::Scratch;
use crate::threads::each;
use crate::wide::wide;

/// The tensors that gradients are made of.
pub(super) struct Inputs<'a, T> {
    pub(super) grad: Heads<'a, T>,
    pub(super) query: Heads<'a, T>,
    pub(super) key: Heads<'a, T>,
    pub(super) value: Heads<'a, T>,
    pub(super) out: Heads<'a, T>,
    pub(super) log_sum: Heads<'a, T>,
}

pub(super) fn backward<T: Float>(
    inputs: &Inputs<'_, T>,
    mask: Option<Mask<'_, T>>,
    shape: Shape,
    [to_query, to_key, to_value]: [Rows<'_, T>; 3],
) {
    each(shape.batch * shape.shared, shape.cost(10), |task| {
        let shared = [task / shape.shared, task % shape.shared];
        let size = shape.keys * shape.width;
        let mut work = Work::new(&shape);
        let (mut keys, mut values) = (Scratch::zeros(size), Scratch::zeros(size));
        let group = shape.heads / shape.shared;
        for head in shared[1] * group..(shared[1] + 1) * group {
            let at = [shared[0], head];
            for block in 0..shape.blocks() {
                let (first, queries) = shape.range(block);
                let seen = shape.seen(first + queries);
                for first_key in (0..seen).step_by(KEYS) {
                    let count = KEYS.min(seen - first_key);
                    let block = Scores { shape: &shape, mask, at, first, queries, first_key, keys: count };
                    work.add(inputs, &block, shared, [&mut keys, &mut values]);
                }
                for (row, grads) in work.queries.chunks_exact(shape.width).take(queries).enumerate() {
                    // SAFETY: tasks are of different heads.
                    unsafe { to_query.fill([at[0], at[1], first + row], grads.iter().copied()) };
                }
            }
        }
        for (out, grads) in [(&to_key, &keys), (&to_value, &values)] {
            for (row, grads) in grads.chunks_exact(shape.width).enumerate() {
                // SAFETY: tasks are of different heads.
                unsafe { out.fill([shared[0], shared[1], row], grads.iter().copied()) };
            }
        }
    });
}

/// Room for one block of the backward pass.
struct Work<T> {
    weights: Scratch<T>,
    slopes: Scratch<T>,
    /// Gradients of the block's queries.
    queries: Scratch<T>,
}

impl<T: Float> Work<T> {
    fn new(shape: &Shape) -> Work<T> {
        let scores = QUERIES * KEYS.min(shape.keys);
        Work {
            weights: Scratch::new(scores),
            slopes: Scratch::new(scores),
            queries: Scratch::new(QUERIES * shape.width),
        }
    }

    /// Adds what a block of scores contributes to all three gradients.
    fn add(&mut self, x: &Inputs<'_, T>, block: &Scores<'_, T>, shared: [usize; 2], sums: [&mut [T]; 2]) {
        let &Scores { at, first, queries, first_key, keys, shape, .. } = block;
        let width = shape.width;
        let (query, grad) = (x.query.part(at, first, queries), x.grad.part(at, first, queries));
        let (key, value) = (x.key.part(shared, first_key, keys), x.value.part(shared, first_key, keys));
        let (weights, slopes) = (&mut self.weights[..queries * keys], &mut self.slopes[..queries * keys]);
        block.fill(query, key, weights);
        let products = PartMut { elements: slopes, rows: queries, columns: keys, down: keys };
        multiply(T::ONE, grad, value.transposed(), T::ZERO, products);
        for (row, (weights, slopes)) in
            weights.chunks_exact_mut(keys).zip(slopes.chunks_exact_mut(keys)).enumerate()
        {
            let (out, log_sum) = (x.out.part(at, first + row, 1), x.log_sum.at(at[0], at[1], first + row)[0]);
            let mean = dot(x.grad.part(at, first + row, 1), out);
            let seen = if log_sum == T::neg_infinity() { 0 } else { block.seen(row) };
            slope(&mut weights[..seen], &mut slopes[..seen], [log_sum, mean, T::narrow(shape.scale)]);
            weights[seen..].fill(T::ZERO);
            slopes[seen..].fill(T::ZERO);
        }
        let part = |elements| Part { elements, rows: queries, columns: keys, down: keys, across: 1 };
        let (weights, slopes) = (part(&self.weights[..queries * keys]), part(&self.slopes[..queries * keys]));
        let [to_keys, to_values] = sums.map(|sums| PartMut {
            elements: &mut sums[first_key * width..],
            rows: keys,
            columns: width,
            down: width,
        });
        multiply(T::ONE, weights.transposed(), grad, T::ONE, to_values);
        multiply(T::ONE, slopes.transposed(), query, T::ONE, to_keys);
        let to_queries = PartMut { elements: &mut self.queries, rows: queries, columns: width, down: width };
        let before = if first_key == 0 { T::ZERO } else { T::ONE };
        multiply(T::ONE, slopes, key, before, to_queries);
    }
}

/// The sum of the products of two rows.
fn dot<T: Float>(a: Part<'_, T>, b: Part<'_, T>) -> T {
    if a.across == 1 && b.across == 1 {
        return products(&a.elements[..a.columns], &b.elements[..b.columns]);
    }
    (0..a.columns).fold(T::ZERO, |sum, i| sum + a.elements[i * a.across] * b.elements[i * b.across])
}

wide! {
    fn products[T: Float](a: &[T], b: &[T]) -> T {
        let ((blocks, rest), (others, other_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
        let mut lanes = [T::ZERO; LANES];
        for (a, b) in blocks.iter().zip(others) {
            for (lane, (&a, &b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                *lane = *lane + a * b;
            }
        }
        let sum = lanes.iter().fold(T::ZERO, |sum, &lane| sum + lane);
        rest.iter().zip(other_rest).fold(sum, |sum, (&a, &b)| sum + a * b)
    }
}

wide! {
    /// Scores become weights, and gradients of weights those of scores.
    fn slope[T: Float](weights: &mut [T], slopes: &mut [T], numbers: [T; 3]), heavy if true {
        let [log_sum, mean, scale] = numbers;
        for (weight, slope) in weights.iter_mut().zip(slopes) {
            *weight = (*weight - log_sum).exponential();
            *slope = *weight * (*slope - mean) * scale;
        }
    }
}
