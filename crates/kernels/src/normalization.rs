//! Mean and spread of groups of elements, and elements without them.

mod backward;
mod layer;

pub use backward::{Grouped, grouped_backward};
pub use layer::{Normalized, layer_norm, norm_backward, rms_norm};

use crate::computing::{load, store};
use crate::elementwise::cost;
use crate::lanes::sums;
use crate::scratch::Elements;
use crate::wide::wide;
use crate::{DType, Float, View, ViewMut, threads};

/// Elements that are computed as one piece.
const PIECE: usize = 1 << 13;

/// Mean and variance of each group: `x` is seen as `[outer, groups, inner]`, and a group is all
/// that has one number in the middle. The variance is the mean of squares, in double precision.
pub fn moments(x: View<'_>, [outer, groups, inner]: [usize; 3]) -> Vec<(f64, f64)> {
    if x.dtype() == DType::F64 {
        moments_of(&load::<f64>(x), [outer, groups, inner])
    } else {
        moments_of(&load::<f32>(x), [outer, groups, inner])
    }
}

fn moments_of<T: Float>(x: &[T], [outer, groups, inner]: [usize; 3]) -> Vec<(f64, f64)> {
    let count = (outer * inner) as f64;
    let mut moments = vec![(0.0, 0.0); groups];
    threads::each_chunk(&mut moments, 1, cost(4 * size_of_val(x)), |group, moments| {
        let runs = || (0..outer).map(move |at| &x[(at * groups + group) * inner..][..inner]);
        let near = T::narrow(runs().map(|run| differences(run, T::ZERO)[0]).sum::<f64>() / count);
        let [off, squares] = runs().fold([0.0; 2], |[off, squares], run| {
            let [more_off, more_squares] = differences(run, near);
            [off + more_off, squares + more_squares]
        });
        // The sum of differences takes out of the squares what rounding of the mean put in.
        moments[0] = (near.wide() + off / count, ((squares - off * off / count) / count).max(0.0));
    });
    moments
}

wide! {
    /// The sum of differences from `mean`, and of their squares.
    fn differences[T: Float](x: &[T], mean: T) -> [f64; 2] {
        sums(x, x, |x, _| [x - mean, (x - mean) * (x - mean)])
    }
}

/// What is subtracted from the elements of a group, and what they are multiplied by then.
pub type Shift = (f64, f64);

/// `out = (x - mean) * scale * weight + bias`. A tensor is seen as `[outer, count, inner]`: by
/// `groups`, with a mean and scale per group, and by `channels`, with a weight and bias for each.
pub fn normalize(
    x: View<'_>,
    groups: [usize; 3],
    shifts: &[Shift],
    channels: [usize; 3],
    affine: [Option<View<'_>>; 2],
    out: ViewMut<'_>,
) {
    if out.dtype() == DType::F64 {
        normalize_as::<f64>(x, groups, shifts, channels, affine, out);
    } else {
        normalize_as::<f32>(x, groups, shifts, channels, affine, out);
    }
}

fn normalize_as<T: Float>(
    x: View<'_>,
    [_, groups, inner]: [usize; 3],
    shifts: &[Shift],
    [_, channels, repeat]: [usize; 3],
    affine: [Option<View<'_>>; 2],
    out: ViewMut<'_>,
) {
    let x = load::<T>(x);
    let [weight, bias] = affine.map(|x| x.map(|x| load::<T>(x)));
    let weight = weight.unwrap_or_else(|| Elements::repeated(T::ONE, channels));
    let bias = bias.unwrap_or_else(|| Elements::repeated(T::ZERO, channels));
    store::<T>(out, |out| {
        let size = inner.max(1);
        let runs = (PIECE / size).max(1);
        let cost = cost(3 * size_of_val(out));
        threads::each_chunk(out, runs * size, cost, |piece, out| {
            for (i, out) in (piece * runs..).zip(out.chunks_exact_mut(size)) {
                let (mean, scale) = shifts[i % groups];
                let shift = (T::narrow(mean), T::narrow(scale));
                let first = i * inner / repeat;
                let parts = out.chunks_exact_mut(repeat).zip(x[i * size..][..size].chunks_exact(repeat));
                for (channel, (out, x)) in (first..).zip(parts) {
                    move_run(x, shift, (weight[channel % channels], bias[channel % channels]), out);
                }
            }
        });
    });
}

wide! {
    fn move_run[T: Float](x: &[T], shift: (T, T), affine: (T, T), out: &mut [T]) {
        let ((mean, scale), (weight, bias)) = (shift, affine);
        for (out, &x) in out.iter_mut().zip(x) {
            *out = (x - mean) * scale * weight + bias;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    #[test]
    fn groups_may_lie_apart() {
        let x = Array::new(&[2, 2, 2], &[1.0f32, 2.0, 10.0, 10.0, 3.0, 4.0, 10.0, 10.0]);
        assert_eq!(moments(x.view(), [2, 2, 2]), [(2.5, 1.25), (10.0, 0.0)]);
    }
}
