//! Attention in blocks against attention written out.

use super::*;
use crate::Float;
use crate::testing::{Array, assert_close};
use crate::threads::with_threads;
use crate::{Layout, bf16};

/// Sizes: batch, heads, heads of keys, queries, keys, width.
const SIZES: &[[usize; 6]] = &[
    [1, 1, 1, 1, 1, 1],
    [2, 3, 3, 5, 7, 3],
    [2, 4, 2, 33, 40, 8],
    [1, 2, 1, 200, 530, 16],
    [1, 1, 1, 70, 1030, 4],
];

struct Case<T> {
    query: Array<T>,
    key: Array<T>,
    value: Array<T>,
    grad: Array<T>,
    mask: Option<Array<T>>,
    causal: bool,
}

const SCALE: f64 = 0.125;

/// An array of `[batch, heads, rows, width]` that lies as `[batch, rows, heads, width]`, among others.
fn interleaved<T: Float>([batch, heads, rows, width]: [usize; 4], seed: u64) -> Array<T> {
    let array = Array::random(&[batch, rows, 3 * heads, width], seed);
    array.with(|layout| layout.narrow(2, heads, heads).transpose(1, 2))
}

impl<T: Float> Case<T> {
    fn new([batch, heads, shared, queries, keys, width]: [usize; 6], masked: bool, causal: bool) -> Case<T> {
        Case {
            query: interleaved([batch, heads, queries, width], 1),
            key: interleaved([batch, shared, keys, width], 2),
            value: Array::random(&[batch, shared, keys, width], 3),
            grad: Array::random(&[batch, heads, queries, width], 4),
            mask: masked.then(|| Array::random(&[batch, 1, queries, keys], 5)),
            causal,
        }
    }

    fn how(&self) -> Attention<'_> {
        Attention { scale: SCALE, causal: self.causal, mask: self.mask.as_ref().map(Array::view) }
    }

    /// Result, logarithms of sums, and the three gradients.
    fn run<L: Float>(&self) -> (Array<T>, Array<L>, [Array<T>; 3]) {
        let shape = self.query.layout.shape();
        // Results hold rubbish before, and lie as `[batch, queries, heads, width]`.
        let fresh = |shape: &[usize]| {
            let layout = Layout::ordered(shape, &[0, 2, 1, 3]).unwrap();
            Array { elements: vec![T::nan(); layout.len()], layout }
        };
        let (mut out, mut sums) = (fresh(shape), Array::<L>::zeros(&shape[..3]));
        let [query, key, value] = [&self.query, &self.key, &self.value].map(Array::view);
        attention(query, key, value, self.how(), out.view_mut(), sums.view_mut());
        let mut grads = [&self.query, &self.key, &self.value].map(|x| fresh(x.layout.shape()));
        let given = Attended { query, key, value, out: out.view(), log_sum: sums.view() };
        attention_backward(self.grad.view(), given, self.how(), grads.each_mut().map(Array::view_mut));
        (out, sums, grads)
    }

    /// The same in double precision, row by row.
    fn reference(&self) -> (Vec<f64>, [Vec<f64>; 3]) {
        let (&[batch, heads, queries, width], &[_, shared, keys, _]) =
            (self.query.layout.shape(), self.key.layout.shape())
        else {
            panic!("not heads")
        };
        let [q, k, v, g] = [&self.query, &self.key, &self.value, &self.grad].map(Array::wide);
        let mask = self.mask.as_ref().map(Array::wide);
        let (mut out, mut dq) = (vec![0.0; q.len()], vec![0.0; q.len()]);
        let (mut dk, mut dv) = (vec![0.0; k.len()], vec![0.0; k.len()]);
        for (b, h, i) in
            (0..batch * heads * queries).map(|n| (n / queries / heads, n / queries % heads, n % queries))
        {
            let row = ((b * heads + h) * queries + i) * width;
            let key = |j: usize| ((b * shared + h / (heads / shared)) * keys + j) * width;
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let score = |j: usize| {
                let added = mask.as_ref().map_or(0.0, |mask| mask[(b * queries + i) * keys + j]);
                let hidden = self.causal && j > i;
                if hidden {
                    f64::NEG_INFINITY
                } else {
                    SCALE * dot(&q[row..][..width], &k[key(j)..][..width]) + added
                }
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if max == f64::NEG_INFINITY {
                continue;
            }
            let sum: f64 = scores.iter().map(|score| (score - max).exp()).sum();
            let weights: Vec<f64> = scores.iter().map(|score| (score - max).exp() / sum).collect();
            let grad = &g[row..][..width];
            let slopes: Vec<f64> = (0..keys).map(|j| dot(grad, &v[key(j)..][..width])).collect();
            let mean = dot(&weights, &slopes);
            for (j, (weight, slope)) in weights.iter().zip(slopes).enumerate() {
                let slope = weight * (slope - mean) * SCALE;
                for x in 0..width {
                    out[row + x] += weight * v[key(j) + x];
                    dv[key(j) + x] += weight * grad[x];
                    dq[row + x] += slope * k[key(j) + x];
                    dk[key(j) + x] += slope * q[row + x];
                }
            }
        }
        (out, [dq, dk, dv])
    }
}

fn check<T: Float, L: Float>(tolerance: f64) {
    for &sizes in SIZES {
        for (masked, causal) in [(false, false), (false, true), (true, false), (true, true)] {
            let case = Case::<T>::new(sizes, masked, causal);
            let ((out, _, grads), (expected, slopes)) = (case.run::<L>(), case.reference());
            let close = |ours: &Array<T>, expected: &[f64]| {
                let largest = expected.iter().fold(1.0, |a: f64, b| a.max(b.abs()));
                let scaled = |x: &[f64]| x.iter().map(|x| x / largest).collect::<Vec<_>>();
                assert_close(&scaled(&ours.wide()), &scaled(expected), tolerance);
            };
            close(&out, &expected);
            grads.iter().zip(&slopes).for_each(|(ours, expected)| close(ours, expected));
        }
    }
}

#[test]
fn blocks_agree_with_rows_in_double_precision() {
    check::<f64, f64>(1e-12);
    check::<f32, f32>(2e-5);
    check::<bf16, f32>(2e-2);
}

#[test]
fn every_number_of_threads_gives_the_same_bits() {
    let case = Case::<f32>::new([2, 4, 2, 130, 600, 32], true, true);
    let bits = |threads: usize| {
        let (out, sums, grads) = with_threads(threads, || case.run::<f32>());
        let arrays = [out, sums].into_iter().chain(grads);
        arrays.flat_map(|array| array.elements).map(f32::to_bits).collect::<Vec<_>>()
    };
    assert!(bits(1) == bits(2) && bits(1) == bits(3));
}

#[test]
fn a_query_that_sees_no_key_gets_zeros_and_gives_no_gradient() {
    let mut case = Case::<f32>::new([1, 1, 1, 3, 4, 2], true, false);
    let mask = case.mask.as_mut().unwrap();
    mask.elements[4..8].fill(f32::NEG_INFINITY);
    let (out, sums, [to_query, to_key, _]) = case.run::<f32>();
    assert_eq!(&out.elements[2..4], [0.0, 0.0]);
    assert_eq!(sums.elements[1], f32::NEG_INFINITY);
    assert_eq!(&to_query.elements[2..4], [0.0, 0.0]);
    assert!(to_key.elements.iter().all(|x| x.is_finite()));
    let (expected, _) = case.reference();
    assert_close(&out.wide(), &expected, 1e-5);
}

#[test]
fn a_mask_of_truths_hides_as_infinity_does() {
    let mut case = Case::<f32>::new([2, 2, 2, 9, 11, 4], true, false);
    let truths = Array::new(&[9, 11], &(0..99).map(|i| i % 3 != 0).collect::<Vec<bool>>());
    let added = |&seen: &bool| if seen { 0.0 } else { f32::NEG_INFINITY };
    case.mask = Some(Array::new(&[9, 11], &truths.elements.iter().map(added).collect::<Vec<_>>()));
    let (expected, ..) = case.run::<f32>();
    let (mut out, mut sums) = (Array::<f32>::zeros(&[2, 2, 9, 4]), Array::<f32>::zeros(&[2, 2, 9]));
    let how = Attention { mask: Some(truths.view()), ..case.how() };
    attention(case.query.view(), case.key.view(), case.value.view(), how, out.view_mut(), sums.view_mut());
    assert_eq!(out.list(), expected.list());
}

#[test]
fn nan_in_a_query_stays_in_its_row() {
    let mut case = Case::<f32>::new([1, 1, 1, 40, 40, 4], false, true);
    case.query = Array::random(&[1, 1, 40, 4], 1);
    case.query.elements[4 * 7] = f32::NAN;
    let (out, ..) = case.run::<f32>();
    let broken: Vec<usize> = (0..40).filter(|row| out.elements[row * 4].is_nan()).collect();
    assert_eq!(broken, [7]);
}
