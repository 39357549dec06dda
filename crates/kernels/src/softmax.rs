//! Softmax and its logarithm along one dimension, with gradients.

use crate::elementwise::{Single, cost, floats, pack, write};
use crate::lanes::{BLOCK, LANES, maximum, sums, total};
use crate::wide::wide;
use crate::{DType, Float, View, ViewMut, threads};

/// Elements of the rows that are computed as one piece.
const PIECE: usize = 1 << 13;

/// `out = log(exp(x) / sum(exp(x)))` along `dim`.
pub fn log_softmax(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    floats!(out.dtype(), T => along([x], dim, out, |[x], out| log_softmax_row::<T>(x, out)), single => {
        in_single([x], out, |[x], out| log_softmax(x, dim, out));
    });
}

/// `out = grad - exp(output) * sum(grad)` along `dim`.
pub fn log_softmax_backward(grad: View<'_>, output: View<'_>, dim: usize, out: ViewMut<'_>) {
    floats!(out.dtype(), T => along([grad, output], dim, out, |[grad, y], out| {
        log_softmax_backward_row::<T>(grad, y, out);
    }), single => in_single([grad, output], out, |[grad, y], out| log_softmax_backward(grad, y, dim, out)));
}

/// `out = exp(x) / sum(exp(x))` along `dim`.
pub fn softmax(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    floats!(out.dtype(), T => along([x], dim, out, |[x], out| softmax_row::<T>(x, out)), single => {
        in_single([x], out, |[x], out| softmax(x, dim, out));
    });
}

/// `out = output * (grad - sum(grad * output))` along `dim`.
pub fn softmax_backward(grad: View<'_>, output: View<'_>, dim: usize, out: ViewMut<'_>) {
    floats!(out.dtype(), T => along([grad, output], dim, out, |[grad, y], out| {
        softmax_backward_row::<T>(grad, y, out);
    }), single => in_single([grad, output], out, |[grad, y], out| softmax_backward(grad, y, dim, out)));
}

wide! {
    fn softmax_row[T: Float](x: &[T], out: &mut [T]), heavy if true {
        let sum = exponentials(x, maximum(x), Some(&mut *out));
        let factor = T::narrow(1.0 / sum);
        for out in out {
            *out = *out * factor;
        }
    }
}

wide! {
    fn log_softmax_row[T: Float](x: &[T], out: &mut [T]), heavy if true {
        let max = maximum(x);
        let shift = T::narrow(exponentials(x, max, None).ln());
        // Two steps, because the maximum may be so large that the sum of both loses the logarithm.
        for (out, &x) in out.iter_mut().zip(x) {
            *out = (x - max) - shift;
        }
    }
}

wide! {
    fn softmax_backward_row[T: Float](grad: &[T], y: &[T], out: &mut [T]) {
        let [sum] = sums(grad, y, |grad, y| [grad * y]);
        let sum = T::narrow(sum);
        for ((out, &grad), &y) in out.iter_mut().zip(grad).zip(y) {
            *out = y * (grad - sum);
        }
    }
}

wide! {
    fn log_softmax_backward_row[T: Float](grad: &[T], y: &[T], out: &mut [T]), heavy if true {
        let [sum] = sums(grad, grad, |grad, _| [grad]);
        let sum = T::narrow(sum);
        for ((out, &grad), &y) in out.iter_mut().zip(grad).zip(y) {
            *out = grad - y.exponential() * sum;
        }
    }
}

/// The sum of `exp(x - max)`; the powers themselves go to `out`, if given.
#[inline(always)]
fn exponentials<T: Float>(x: &[T], max: T, mut out: Option<&mut [T]>) -> f64 {
    let (mut sum, mut lanes) = (0.0, [T::ZERO; LANES]);
    let (chunks, rest) = x.as_chunks::<LANES>();
    for (i, chunk) in chunks.iter().enumerate() {
        let powers = powers(chunk, max, &mut lanes);
        if let Some(out) = &mut out {
            out[i * LANES..][..LANES].copy_from_slice(&powers);
        }
        if (i + 1) % (BLOCK / LANES) == 0 {
            sum += total(&lanes);
            lanes = [T::ZERO; LANES];
        }
    }
    if !rest.is_empty() {
        // The lanes beyond the end count for nothing.
        let mut last = [T::neg_infinity(); LANES];
        last[..rest.len()].copy_from_slice(rest);
        let powers = powers(&last, max, &mut lanes);
        if let Some(out) = &mut out {
            out[chunks.len() * LANES..].copy_from_slice(&powers[..rest.len()]);
        }
    }
    sum + total(&lanes)
}

/// `exp(x - max)`, added to `sums`.
#[inline(always)]
fn powers<T: Float>(x: &[T; LANES], max: T, sums: &mut [T; LANES]) -> [T; LANES] {
    let mut powers = *x;
    for (sum, power) in sums.iter_mut().zip(&mut powers) {
        *power = (*power - max).exponential();
        *sum = *sum + *power;
    }
    powers
}

/// Calls `f` with each line of the operands along `dim`.
fn along<T: Float, const N: usize>(
    inputs: [View<'_>; N],
    dim: usize,
    mut out: ViewMut<'_>,
    f: impl Fn([&[T]; N], &mut [T]) + Sync,
) {
    assert!(inputs.iter().all(|x| x.shape() == out.shape()), "softmax: operands have different shapes");
    let last = out.shape().len().saturating_sub(1);
    if dim != last {
        let layouts = inputs.map(|x| x.layout().transpose(dim, last));
        let turned = std::array::from_fn(|i| inputs[i].with_layout(&layouts[i]));
        let layout = out.layout().transpose(dim, last);
        return along(turned, last, out.with_layout(&layout), f);
    }
    let size = out.shape().last().copied().unwrap_or(1);
    if out.layout().is_empty() {
        return;
    }
    let inputs = inputs.map(|x| pack::<T>(x));
    write(out, |out| {
        let rows = (PIECE / size).max(1);
        // An exponential takes about as long as it takes to move 32 bytes.
        let cost = cost(size_of_val(out) * (N + 1) + 32 * out.len());
        threads::each_chunk(out, rows * size, cost, |i, out| {
            for (row, out) in (i * rows..).zip(out.chunks_exact_mut(size)) {
                f(std::array::from_fn(|n| &inputs[n][row * size..][..size]), out);
            }
        });
    });
}

fn in_single<const N: usize>(
    inputs: [View<'_>; N],
    out: ViewMut<'_>,
    f: impl Fn([View<'_>; N], ViewMut<'_>),
) {
    let inputs = inputs.map(|x| Single::load(x));
    let mut wide = Single::zeros(out.shape());
    f(std::array::from_fn(|i| inputs[i].view()), wide.view_mut());
    wide.store(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bf16;
    use crate::testing::{Array, SHAPES, arrangements, assert_close, operands};
    use ndarray::{ArrayD, Axis, IxDyn};

    /// The softmax in double precision.
    fn reference(x: &Array<f32>, dim: usize) -> ArrayD<f64> {
        let mut out = ArrayD::from_shape_vec(IxDyn(x.layout.shape()), x.wide()).unwrap();
        if out.ndim() == 0 {
            return ArrayD::from_elem(IxDyn(&[]), 1.0);
        }
        for mut line in out.lanes_mut(Axis(dim)) {
            let max = line.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            line.mapv_inplace(|x| (x - max).exp());
            let sum = line.sum();
            line.mapv_inplace(|x| x / sum);
        }
        out
    }

    fn list(x: &ArrayD<f64>) -> Vec<f64> {
        x.iter().copied().collect()
    }

    #[test]
    fn softmax_agrees_with_double_precision_along_every_dimension() {
        for shape in SHAPES {
            for dim in 0..shape.len().max(1) {
                for x in operands::<f32>(shape, 1) {
                    for mut out in arrangements::<f32>(shape, 2) {
                        let expected = reference(&x, dim);
                        softmax(x.view(), dim, out.view_mut());
                        assert_close(&out.wide(), &list(&expected), 1e-6);
                        log_softmax(x.view(), dim, out.view_mut());
                        assert_close(&out.wide(), &list(&expected.mapv(f64::ln)), 1e-6);
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_follow_their_formulas() {
        let (grad, y) = (Array::new(&[1, 2], &[1.0f64, 3.0]), Array::new(&[1, 2], &[0.25f64, 0.75]));
        let mut out = Array::<f64>::zeros(&[1, 2]);
        softmax_backward(grad.view(), y.view(), 1, out.view_mut());
        assert_eq!(out.elements, [0.25 * (1.0 - 2.5), 0.75 * (3.0 - 2.5)]);
        let log = Array::new(&[1, 2], &[0.25f64.ln(), 0.75f64.ln()]);
        log_softmax_backward(grad.view(), log.view(), 1, out.view_mut());
        assert_close(&out.elements, &[1.0 - 0.25 * 4.0, 3.0 - 0.75 * 4.0], 1e-15);
        log_softmax_backward(grad.view(), log.view(), 0, out.view_mut());
        assert_close(&out.elements, &[1.0 - 0.25, 3.0 - 0.75 * 3.0], 1e-15);
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let x = Array::new(&[2], &[10_000.0f32, 10_001.0]);
        let mut out = Array::<f32>::zeros(&[2]);
        log_softmax(x.view(), 0, out.view_mut());
        assert_close(&out.wide(), &[-1.313_261_7, -0.313_261_7], 1e-6);
    }

    #[test]
    fn half_precision_is_computed_in_single() {
        let x = Array::new(&[2], &[bf16::ONE; 2]);
        let mut out = Array::<bf16>::zeros(&[2]);
        softmax(x.view(), 0, out.view_mut());
        assert_eq!(out.wide(), [0.5, 0.5]);
    }
}
