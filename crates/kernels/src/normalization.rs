//! Mean and spread of groups of elements, and elements without them.

use crate::computing::{load, store};
use crate::{DType, Float, View, ViewMut};

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
    let group = |group: usize| {
        let runs = (0..outer).map(move |at| &x[(at * groups + group) * inner..][..inner]);
        let mean = runs.clone().flatten().map(|x| x.wide()).sum::<f64>() / count;
        let squares = runs.flatten().map(|x| (x.wide() - mean) * (x.wide() - mean));
        (mean, squares.sum::<f64>() / count)
    };
    (0..groups).map(group).collect()
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
    let weight = weight.unwrap_or_else(|| vec![T::ONE; channels].into());
    let bias = bias.unwrap_or_else(|| vec![T::ZERO; channels].into());
    store::<T>(out, |out| {
        let runs = out.chunks_exact_mut(inner.max(1)).zip(x.chunks_exact(inner.max(1)));
        for (i, (out, x)) in runs.enumerate() {
            let (mean, scale) = shifts[i % groups];
            let (mean, scale) = (T::narrow(mean), T::narrow(scale));
            let first = i * inner / repeat;
            let runs = out.chunks_exact_mut(repeat).zip(x.chunks_exact(repeat));
            for (channel, (out, x)) in (first..).zip(runs) {
                let (weight, bias) = (weight[channel % channels], bias[channel % channels]);
                out.iter_mut().zip(x).for_each(|(out, &x)| *out = (x - mean) * scale * weight + bias);
            }
        }
    });
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
