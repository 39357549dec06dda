//! Rows without their mean and spread, and gradients through both, in one pass over memory.

use crate::computing::{load, store};
use crate::elementwise::cost;
use crate::lanes::sums;
use crate::reduce::sum_columns;
use crate::scratch::{Elements, Scratch};
use crate::wide::wide;
use crate::{DType, Float, View, ViewMut, threads};

/// Elements of the rows that are computed as one piece.
const PIECE: usize = 1 << 13;
/// Rows whose gradients are added up one after the other; their sums are then added pairwise.
const ROWS: usize = 64;

/// Rows of `size` elements without their mean and spread, times a weight, plus a bias, each of `size`
/// elements. `mean` and `scale`, what rows were multiplied by, get one element per row.
pub fn layer_norm(
    x: View<'_>,
    size: usize,
    affine: [Option<View<'_>>; 2],
    epsilon: f64,
    out: ViewMut<'_>,
    [mean, scale]: [ViewMut<'_>; 2],
) {
    if out.dtype() == DType::F64 {
        forward::<f64>(x, size, affine, epsilon, out, (Some(mean), scale));
    } else {
        forward::<f32>(x, size, affine, epsilon, out, (Some(mean), scale));
    }
}

/// Rows of `size` elements divided by the root of the mean of their squares, times a weight. `scale`,
/// what rows were multiplied by, gets one element per row.
pub fn rms_norm(
    x: View<'_>,
    size: usize,
    weight: Option<View<'_>>,
    epsilon: f64,
    out: ViewMut<'_>,
    scale: ViewMut<'_>,
) {
    if out.dtype() == DType::F64 {
        forward::<f64>(x, size, [weight, None], epsilon, out, (None, scale));
    } else {
        forward::<f32>(x, size, [weight, None], epsilon, out, (None, scale));
    }
}

/// Takes the mean away only if there is room for it.
fn forward<T: Float>(
    x: View<'_>,
    size: usize,
    [weight, bias]: [Option<View<'_>>; 2],
    epsilon: f64,
    out: ViewMut<'_>,
    (mean, scale): (Option<ViewMut<'_>>, ViewMut<'_>),
) {
    let (x, weight, bias) = (load::<T>(x), parameter(weight, size, T::ONE), parameter(bias, size, T::ZERO));
    let centred = mean.is_some();
    let kernel = |out: &mut [T], means: &mut [T], scales: &mut [T]| {
        if out.is_empty() {
            means.fill(T::nan());
            return scales.fill(T::nan());
        }
        let rows = (PIECE / size).max(1);
        let cost = cost(4 * size_of_val(out));
        let statistics = means.chunks_mut(rows).zip(scales.chunks_mut(rows));
        let pieces = out.chunks_mut(rows * size).zip(x.chunks(rows * size)).zip(statistics).collect();
        threads::each_of(pieces, cost, |((out, x), (means, scales))| {
            let statistics = means.iter_mut().zip(scales);
            for ((out, x), (mean, scale)) in out.chunks_mut(size).zip(x.chunks(size)).zip(statistics) {
                (*mean, *scale) = normalize_row(x, &weight, &bias, centred, epsilon, out);
            }
        });
    };
    store(out, |out| {
        store(scale, |scales| match mean {
            Some(mean) => store(mean, |means| kernel(out, means, scales)),
            None => kernel(out, &mut Scratch::new(scales.len()), scales),
        });
    });
}

/// The elements of a weight or bias, or what counts for nothing in its place.
fn parameter<T: Float>(x: Option<View<'_>>, size: usize, default: T) -> Elements<'_, T> {
    x.map_or_else(|| Elements::repeated(default, size), |x| load(x))
}

wide! {
    /// Gives the mean, 0 if it is not taken away, and what elements were multiplied by.
    fn normalize_row[T: Float](
        x: &[T], weight: &[T], bias: &[T], centred: bool, epsilon: f64, out: &mut [T],
    ) -> (T, T), heavy if true {
        let count = x.len() as f64;
        let near = if centred { T::narrow(sums(x, x, |x, _| [x])[0] / count) } else { T::ZERO };
        let [off, squares] = sums(x, x, |x, _| [x - near, (x - near) * (x - near)]);
        // The sum of differences takes out of the squares what rounding of the mean put in.
        let off = if centred { off } else { 0.0 };
        let variance = ((squares - off * off / count) / count).max(0.0);
        let (mean, scale) = (near + T::narrow(off / count), T::narrow(1.0 / (variance + epsilon).sqrt()));
        for (((out, &x), &weight), &bias) in out.iter_mut().zip(x).zip(weight).zip(bias) {
            *out = (x - mean) * scale * weight + bias;
        }
        (mean, scale)
    }
}

/// What [`layer_norm`] or [`rms_norm`] saw, and the mean and scale that it found.
#[derive(Clone, Copy)]
pub struct Normalized<'a> {
    /// The elements.
    pub x: View<'a>,
    /// Elements of a row.
    pub size: usize,
    /// What rows were multiplied by at last.
    pub weight: Option<View<'a>>,
    /// One per row, if it was taken away.
    pub mean: Option<View<'a>>,
    /// One per row.
    pub scale: View<'a>,
}

/// The gradients of [`layer_norm`] or [`rms_norm`] for input, weight and bias, those that are asked for.
pub fn norm_backward(grad: View<'_>, of: Normalized<'_>, gradients: [Option<ViewMut<'_>>; 3]) {
    if of.x.dtype() == DType::F64 {
        backward::<f64>(grad, of, gradients);
    } else {
        backward::<f32>(grad, of, gradients);
    }
}

fn backward<T: Float>(
    grad: View<'_>,
    of: Normalized<'_>,
    [input, weights, biases]: [Option<ViewMut<'_>>; 3],
) {
    let size = of.size;
    let (grad, x, weight) = (load::<T>(grad), load::<T>(of.x), parameter(of.weight, size, T::ONE));
    let (means, scales) = (of.mean.map(|mean| load::<T>(mean)), load::<T>(of.scale));
    let row = |row: usize| Row {
        grad: &grad[row * size..][..size],
        x: &x[row * size..][..size],
        mean: means.as_ref().map(|means| means[row]),
        scale: scales[row],
    };
    if let Some(input) = input {
        store::<T>(input, |input| {
            let rows = (PIECE / size.max(1)).max(1);
            let cost = cost(6 * size_of_val(input));
            threads::each_chunk(input, rows * size, cost, |i, out| {
                out.chunks_mut(size.max(1))
                    .zip(i * rows..)
                    .for_each(|(out, at)| input_row(row(at), &weight, out));
            });
        });
    }
    if weights.is_none() && biases.is_none() {
        return;
    }
    // A row of sums for the weight and one for the bias, per piece.
    let count = scales.len();
    let mut partial = Scratch::zeros(count.div_ceil(ROWS) * 2 * size);
    threads::each_chunk(&mut partial, 2 * size, cost(3 * size_of_val(&*x)), |i, sums| {
        let (weight, bias) = sums.split_at_mut(size);
        (i * ROWS..count.min((i + 1) * ROWS)).for_each(|at| add_row(row(at), weight, bias));
    });
    let mut sums = Scratch::zeros(2 * size);
    sum_columns(&partial, &mut sums);
    let (weight, bias) = sums.split_at(size);
    for (out, sums) in [(weights, weight), (biases, bias)] {
        if let Some(out) = out {
            store::<T>(out, |out| out.copy_from_slice(sums));
        }
    }
}

#[derive(Clone, Copy)]
struct Row<'a, T> {
    grad: &'a [T],
    x: &'a [T],
    mean: Option<T>,
    scale: T,
}

wide! {
    /// The gradient of a row: without its mean, and without what would change the spread.
    fn input_row[T: Float](row: Row<'_, T>, weight: &[T], out: &mut [T]) {
        let Row { grad, x, mean: given, scale } = row;
        let mean = given.unwrap_or(T::ZERO);
        // The weighted gradient is kept where its own gradient goes.
        for ((out, &grad), &weight) in out.iter_mut().zip(grad).zip(weight) {
            *out = grad * weight;
        }
        let [sum, aligned] = sums(out, x, |grad, x| [grad, grad * ((x - mean) * scale)]);
        let count = x.len() as f64;
        let average = if given.is_some() { T::narrow(sum / count) } else { T::ZERO };
        let aligned = T::narrow(aligned / count);
        for (out, &x) in out.iter_mut().zip(x) {
            *out = scale * ((*out - average) - (x - mean) * scale * aligned);
        }
    }
}

wide! {
    /// Adds what a row gives to the gradients of weight and bias.
    fn add_row[T: Float](row: Row<'_, T>, weight: &mut [T], bias: &mut [T]) {
        let Row { grad, x, mean, scale } = row;
        let mean = mean.unwrap_or(T::ZERO);
        for (((weight, bias), &grad), &x) in weight.iter_mut().zip(bias).zip(grad).zip(x) {
            *weight = *weight + grad * ((x - mean) * scale);
            *bias = *bias + grad;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Array, arrangements, assert_close};

    /// Output, mean and scale in double precision.
    fn reference(x: &[f64], size: usize, weight: &[f64], bias: &[f64]) -> [Vec<f64>; 3] {
        let (mut out, mut means, mut scales) = (vec![], vec![], vec![]);
        for row in x.chunks(size) {
            let mean = row.iter().sum::<f64>() / size as f64;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / size as f64;
            let scale = 1.0 / (variance + 1e-5).sqrt();
            out.extend(row.iter().zip(weight.iter().zip(bias)).map(|(x, (w, b))| (x - mean) * scale * w + b));
            means.push(mean);
            scales.push(scale);
        }
        [out, means, scales]
    }

    #[test]
    fn rows_of_any_length_and_arrangement_are_those_of_double_precision() {
        for (rows, size) in [(1, 1), (3, 5), (7, 32), (70, 33), (5, 1024), (2, 3001), (0, 4)] {
            let (weight, bias) = (Array::<f32>::random(&[size], 7), Array::<f32>::random(&[size], 8));
            for x in arrangements::<f32>(&[rows, size], 1) {
                let mut out = Array::<f32>::zeros(&[rows, size]);
                let (mut mean, mut scale) = (Array::<f32>::zeros(&[rows]), Array::<f32>::zeros(&[rows]));
                let affine = [Some(weight.view()), Some(bias.view())];
                layer_norm(x.view(), size, affine, 1e-5, out.view_mut(), [mean.view_mut(), scale.view_mut()]);
                let expected = reference(&x.wide(), size, &weight.wide(), &bias.wide());
                for (ours, expected) in [out, mean, scale].iter().zip(&expected) {
                    assert_close(&ours.wide(), expected, 2e-5);
                }
            }
        }
    }

    #[test]
    fn a_large_mean_leaves_the_spread() {
        let x: Vec<f32> = (0..1000).map(|i| 10_000.0 + (i % 7) as f32).collect();
        let (x, mut out) = (Array::new(&[1, 1000], &x), Array::<f32>::zeros(&[1, 1000]));
        let (mut mean, mut scale) = (Array::<f32>::zeros(&[1]), Array::<f32>::zeros(&[1]));
        layer_norm(x.view(), 1000, [None; 2], 0.0, out.view_mut(), [mean.view_mut(), scale.view_mut()]);
        let expected = reference(&x.wide(), 1000, &[1.0; 1000], &[0.0; 1000]);
        assert_close(&scale.wide(), &expected[2], 1e-4);
    }

    #[test]
    fn gradients_are_the_slopes_of_double_precision() {
        let (rows, size) = (130, 37);
        let (x, grad) = (Array::<f64>::random(&[rows, size], 1), Array::<f64>::random(&[rows, size], 2));
        let weight = Array::<f64>::random(&[size], 3);
        let loss = |x: &[f64], weight: &[f64], bias: &[f64]| -> f64 {
            reference(x, size, weight, bias)[0].iter().zip(&grad.elements).map(|(y, grad)| y * grad).sum()
        };
        let (mut out, mut mean, mut scale) =
            (Array::<f64>::zeros(&[rows, size]), Array::<f64>::zeros(&[rows]), Array::<f64>::zeros(&[rows]));
        let affine = [Some(weight.view()), None];
        layer_norm(x.view(), size, affine, 1e-5, out.view_mut(), [mean.view_mut(), scale.view_mut()]);
        let mut gradients = [&[rows, size][..], &[size], &[size]].map(Array::<f64>::zeros);
        let of = Normalized {
            x: x.view(),
            size,
            weight: Some(weight.view()),
            mean: Some(mean.view()),
            scale: scale.view(),
        };
        norm_backward(grad.view(), of, gradients.each_mut().map(|array| Some(array.view_mut())));
        let bias = vec![0.0; size];
        let slope = |which: usize, at: usize| {
            let [up, down] = [1e-5, -1e-5].map(|step| {
                let mut inputs = [x.elements.clone(), weight.elements.clone(), bias.clone()];
                inputs[which][at] += step;
                loss(&inputs[0], &inputs[1], &inputs[2])
            });
            (up - down) / 2e-5
        };
        for (which, gradient) in gradients.iter().enumerate() {
            for at in (0..gradient.elements.len()).step_by(gradient.elements.len() / 11) {
                assert_close(&[gradient.elements[at]], &[slope(which, at)], 1e-5);
            }
        }
    }

    #[test]
    fn roots_of_mean_squares_divide_rows_and_have_slopes() {
        let (rows, size) = (66, 45);
        let (x, grad) = (Array::<f64>::random(&[rows, size], 1), Array::<f64>::random(&[rows, size], 2));
        let weight = Array::<f64>::random(&[size], 3);
        let reference = |x: &[f64], weight: &[f64]| -> Vec<f64> {
            let row = |row: &[f64]| {
                let scale = 1.0 / (row.iter().map(|x| x * x).sum::<f64>() / size as f64 + 1e-5).sqrt();
                row.iter().zip(weight).map(|(x, weight)| x * scale * weight).collect::<Vec<_>>()
            };
            x.chunks(size).flat_map(row).collect()
        };
        let (mut out, mut scale) = (Array::<f64>::zeros(&[rows, size]), Array::<f64>::zeros(&[rows]));
        rms_norm(x.view(), size, Some(weight.view()), 1e-5, out.view_mut(), scale.view_mut());
        assert_close(&out.elements, &reference(&x.elements, &weight.elements), 1e-12);
        let mut gradients = [&[rows, size][..], &[size]].map(Array::<f64>::zeros);
        let of =
            Normalized { x: x.view(), size, weight: Some(weight.view()), mean: None, scale: scale.view() };
        let [input, weights] = gradients.each_mut().map(|array| Some(array.view_mut()));
        norm_backward(grad.view(), of, [input, weights, None]);
        let loss = |inputs: &[Vec<f64>; 2]| -> f64 {
            reference(&inputs[0], &inputs[1]).iter().zip(&grad.elements).map(|(y, grad)| y * grad).sum()
        };
        for (which, at) in [(0, 0), (0, 1000), (1, 0), (1, 44)] {
            let [up, down] = [1e-5, -1e-5].map(|step| {
                let mut inputs = [x.elements.clone(), weight.elements.clone()];
                inputs[which][at] += step;
                loss(&inputs)
            });
            assert_close(&[gradients[which].elements[at]], &[(up - down) / 2e-5], 1e-5);
        }
    }
}
