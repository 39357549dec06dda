//! Attention by kernels in blocks, or with all weights at hand where dropout or their gradient need them.

use super::super::cast::Temporary;
use super::super::numbers::{numbers, singles, store};
use super::seen::Added;
use cresset_kernels::attention::{self as kernels, Attended, Attention};
use cresset_kernels::functions::{Add, Log};
use cresset_kernels::{DType, Layout, Scalar, View, ViewMut, elementwise, matrix};

/// How often the maximum and the sum of each query are repeated.
pub(super) const COPIES: usize = 8;

/// Weights that survive, as bits, and what they are divided by.
pub(super) struct Drop {
    pub(super) bits: Vec<u8>,
    pub(super) keep: f64,
}

impl Drop {
    fn factor(&self, at: usize) -> f32 {
        if self.bits[at / 8] >> (at % 8) & 1 == 1 { (1.0 / self.keep) as f32 } else { 0.0 }
    }
}

/// Writes the result, and gives the logarithm of each query's sum of exponentials.
pub(super) fn forward(
    [query, key, value]: [View<'_>; 3],
    scale: f64,
    added: &Added,
    drop: Option<&Drop>,
    out: ViewMut<'_>,
) -> Temporary {
    let log_sums = Temporary::new(DType::F32, &query.shape()[..3]);
    match drop {
        None => added.with(|mask| {
            let how = Attention { scale, causal: false, mask };
            log_sums.write(|log_sum| kernels::attention(query, key, value, how, out, log_sum));
        }),
        Some(drop) => {
            let heads = Heads::new([query, key, value], scale, added);
            let mut result = vec![0.0; out.layout().len()];
            let mut sums = vec![0.0; heads.count() * heads.rows];
            for at in 0..heads.count() {
                let (mut weights, log_sum) = heads.weights(at);
                heads.drop(at, &mut weights, drop);
                let (rows, keys, width) = (heads.rows, heads.keys, heads.value_width);
                let to = &mut result[at * rows * width..][..rows * width];
                product(&weights, [rows, keys], false, heads.value(at), [keys, width], false, to);
                sums[at * rows..][..rows].copy_from_slice(&log_sum);
            }
            store(&result, out);
            log_sums.write(|to| store(&sums, to));
        }
    }
    log_sums
}

/// Writes the gradients for query, key and value.
pub(super) fn backward(
    grad: View<'_>,
    [query, key, value, out]: [View<'_>; 4],
    log_sum: View<'_>,
    scale: f64,
    added: &Added,
    gradients: [ViewMut<'_>; 3],
) {
    let given = Attended { query, key, value, out, log_sum };
    added.with(|mask| {
        kernels::attention_backward(grad, given, Attention { scale, causal: false, mask }, gradients);
    });
}

/// As [`backward`], with weights that are dropped, and the gradient for what was added to scores before they
/// were scaled by `shift_scale`; that is summed over what it was repeated for.
pub(super) fn backward_dropped(
    grad: View<'_>,
    [query, key, value]: [View<'_>; 3],
    scale: f64,
    added: &Added,
    drop: Option<&Drop>,
    gradients: [ViewMut<'_>; 3],
    shift: Option<(ViewMut<'_>, f64)>,
) {
    let heads = Heads::new([query, key, value], scale, added);
    let (rows, keys, width, deep) = (heads.rows, heads.keys, heads.width, heads.value_width);
    let grads = singles(grad);
    let [mut to_query, mut to_key, mut to_value] =
        [query, key, value].map(|x| vec![0.0f32; x.layout().len()]);
    let mut to_scores = vec![0.0f32; if shift.is_some() { heads.count() * rows * keys } else { 0 }];
    for at in 0..heads.count() {
        let (weights, _) = heads.weights(at);
        let mut dropped = weights.clone();
        if let Some(drop) = drop {
            heads.drop(at, &mut dropped, drop);
        }
        let grad = &grads[at * rows * deep..][..rows * deep];
        let shared = heads.shared_of(at);
        let mut part = vec![0.0; keys * deep];
        product(&dropped, [rows, keys], true, grad, [rows, deep], false, &mut part);
        add(&mut to_value[shared * keys * deep..][..keys * deep], &part);
        let mut slopes = vec![0.0; rows * keys];
        product(grad, [rows, deep], false, heads.value(at), [keys, deep], true, &mut slopes);
        if let Some(drop) = drop {
            heads.drop(at, &mut slopes, drop);
        }
        for (slopes, weights) in slopes.chunks_mut(keys.max(1)).zip(weights.chunks(keys.max(1))) {
            let mean: f32 = slopes.iter().zip(weights).map(|(slope, weight)| slope * weight).sum();
            slopes.iter_mut().zip(weights).for_each(|(slope, weight)| *slope = weight * (*slope - mean));
        }
        if shift.is_some() {
            to_scores[at * rows * keys..][..rows * keys].copy_from_slice(&slopes);
        }
        slopes.iter_mut().for_each(|slope| *slope *= scale as f32);
        let to = &mut to_query[at * rows * width..][..rows * width];
        product(&slopes, [rows, keys], false, heads.key(at), [keys, width], false, to);
        let mut part = vec![0.0; keys * width];
        product(&slopes, [rows, keys], true, heads.query(at), [rows, width], false, &mut part);
        add(&mut to_key[shared * keys * width..][..keys * width], &part);
    }
    let [query, key, value] = gradients;
    store(&to_query, query);
    store(&to_key, key);
    store(&to_value, value);
    if let Some((shift, factor)) = shift {
        let scores = [heads.batch, heads.heads, rows, keys];
        store(&summed(&to_scores, scores, shift.shape(), factor as f32), shift);
    }
}

/// Scores summed over the dimensions that `shape` has once.
fn summed(scores: &[f32], sizes: [usize; 4], shape: &[usize], factor: f32) -> Vec<f32> {
    let mut sums = vec![0.0; shape.iter().product()];
    for (at, score) in scores.iter().enumerate() {
        let (mut rest, mut place, mut step) = (at, 0, 1);
        for dim in (0..4).rev() {
            let index = rest % sizes[dim];
            rest /= sizes[dim];
            if shape[dim] > 1 {
                place += index * step;
            }
            step *= shape[dim];
        }
        sums[place] += score * factor;
    }
    sums
}

/// Queries, keys and values in single precision, and what their scores are made of.
struct Heads {
    batch: usize,
    heads: usize,
    shared: usize,
    rows: usize,
    keys: usize,
    width: usize,
    value_width: usize,
    parts: [Vec<f32>; 3],
    scale: f64,
    /// For every score, or for all samples or heads at once.
    added: Option<(Vec<f64>, [usize; 2])>,
}

impl Heads {
    fn new([query, key, value]: [View<'_>; 3], scale: f64, added: &Added) -> Heads {
        let (&[batch, heads, rows, width], &[_, shared, keys, _]) = (query.shape(), key.shape()) else {
            unreachable!("of rank 4")
        };
        let added = added.with(|added| {
            let added = added?;
            let outer = [added.shape()[0], added.shape()[1]];
            let of_truth = |seen: f64| if seen != 0.0 { 0.0 } else { f64::NEG_INFINITY };
            let values = numbers(added);
            let is_truth = added.dtype() == DType::Bool;
            Some((if is_truth { values.into_iter().map(of_truth).collect() } else { values }, outer))
        });
        let value_width = value.shape()[3];
        let parts = [query, key, value].map(singles);
        Heads { batch, heads, shared, rows, keys, width, value_width, parts, scale, added }
    }

    fn count(&self) -> usize {
        self.batch * self.heads
    }

    /// The keys' head that a query's head looks at, of all samples.
    fn shared_of(&self, at: usize) -> usize {
        let (sample, head) = (at / self.heads, at % self.heads);
        sample * self.shared + head / (self.heads / self.shared)
    }

    fn query(&self, at: usize) -> &[f32] {
        let size = self.rows * self.width;
        &self.parts[0][at * size..][..size]
    }

    fn key(&self, at: usize) -> &[f32] {
        let size = self.keys * self.width;
        &self.parts[1][self.shared_of(at) * size..][..size]
    }

    fn value(&self, at: usize) -> &[f32] {
        let size = self.keys * self.value_width;
        &self.parts[2][self.shared_of(at) * size..][..size]
    }

    /// The weights of one head, and the logarithm of each query's sum of exponentials.
    fn weights(&self, at: usize) -> (Vec<f32>, Vec<f32>) {
        let (rows, keys, width) = (self.rows, self.keys, self.width);
        let mut scores = vec![0.0; rows * keys];
        product(self.query(at), [rows, width], false, self.key(at), [keys, width], true, &mut scores);
        scores.iter_mut().for_each(|score| *score *= self.scale as f32);
        if let Some((added, [samples, heads])) = &self.added {
            let sample = if *samples == 1 { 0 } else { at / self.heads };
            let head = if *heads == 1 { 0 } else { at % self.heads };
            let plane = &added[(sample * heads + head) * rows * keys..][..rows * keys];
            scores.iter_mut().zip(plane).for_each(|(score, added)| *score += *added as f32);
        }
        let log_sums = scores.chunks_mut(keys.max(1)).map(softmax).collect();
        (scores, log_sums)
    }

    fn drop(&self, at: usize, weights: &mut [f32], drop: &Drop) {
        let first = at * self.rows * self.keys;
        weights.iter_mut().enumerate().for_each(|(i, weight)| *weight *= drop.factor(first + i));
    }
}

/// Scores as weights; none at all if no key is seen. Gives the logarithm of the sum of exponentials.
fn softmax(row: &mut [f32]) -> f32 {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if largest == f32::NEG_INFINITY {
        row.fill(0.0);
        return largest;
    }
    row.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|score| *score /= sum);
    largest + sum.ln()
}

fn add(to: &mut [f32], part: &[f32]) {
    to.iter_mut().zip(part).for_each(|(to, part)| *to += part);
}

/// `out = a @ b` of row-major matrices, either of which may be turned.
fn product(
    a: &[f32],
    a_shape: [usize; 2],
    turn_a: bool,
    b: &[f32],
    b_shape: [usize; 2],
    turn_b: bool,
    out: &mut [f32],
) {
    let lie = |[rows, columns]: [usize; 2], turn: bool| {
        let layout = Layout::contiguous(&[rows, columns]).expect("as many elements as there are");
        if turn { layout.transpose(0, 1) } else { layout }
    };
    let (left, right) = (lie(a_shape, turn_a), lie(b_shape, turn_b));
    let result = lie([left.shape()[0], right.shape()[1]], false);
    matrix::gemm(1.0, View::of(a, &left), View::of(b, &right), 0.0, ViewMut::of(out, &result));
}

/// Writes what is kept of each query's exponentials: the logarithm of their sum as if it were their maximum,
/// and beside it a sum of 1, which together stand for the same.
pub(super) fn keep(log_sums: &Temporary, largest: Option<ViewMut<'_>>, sums: Option<ViewMut<'_>>) {
    if let Some(out) = largest {
        log_sums.read(|numbers| {
            let column = Layout::contiguous(&[numbers.shape(), &[1]].concat()).expect("as many elements");
            let wide = column.broadcast_to(out.shape()).expect("a column fills rows");
            elementwise::copy(numbers.with_layout(&wide), out);
        });
    }
    if let Some(out) = sums {
        elementwise::fill(Scalar::Int(1), out);
    }
}

/// The logarithm of each query's sum of exponentials, of what was kept.
pub(super) fn log_sums(largest: View<'_>, sums: View<'_>) -> Temporary {
    let last = largest.layout().rank() - 1;
    let first = |x: View<'_>| x.layout().select(last, 0);
    let (of_largest, of_sums) = (first(largest), first(sums));
    let result = Temporary::of(sums.with_layout(&of_sums), DType::F32);
    result.write(|mut logarithms| {
        elementwise::unary_in_place(Log, logarithms.reborrow());
        let one = Add { alpha: Scalar::Int(1) };
        elementwise::binary_in_place(one, logarithms, largest.with_layout(&of_largest));
    });
    result
}
