//! The gradients of normalization by groups that need not lie in one piece.

use super::{PIECE, Shift};
use crate::computing::{load, store};
use crate::elementwise::cost;
use crate::lanes::sums;
use crate::scratch::Elements;
use crate::wide::wide;
use crate::{DType, Float, View, ViewMut, threads};

/// What was normalized: elements, the weight of each channel, and what was done to each group. A tensor is seen
/// as `[outer, count, inner]`, by groups and by channels.
pub struct Grouped<'a> {
    /// The elements.
    pub x: View<'a>,
    /// How groups lie.
    pub groups: [usize; 3],
    /// Mean and scale of each group.
    pub shifts: &'a [Shift],
    /// Whether these are of the elements themselves, which then get a gradient through them.
    pub own: bool,
    /// How channels lie.
    pub channels: [usize; 3],
    /// What each is multiplied by.
    pub weight: Option<View<'a>>,
}

/// The gradients for elements, weights and biases: those that there is room for.
pub fn grouped_backward(grad: View<'_>, of: &Grouped<'_>, gradients: [Option<ViewMut<'_>>; 3]) {
    if of.x.dtype() == DType::F64 {
        backward::<f64>(grad, of, gradients);
    } else {
        backward::<f32>(grad, of, gradients);
    }
}

/// The sum of gradients, and of gradients times normalized elements.
type Sums = [f64; 2];

fn backward<T: Float>(grad: View<'_>, of: &Grouped<'_>, [input, weights, biases]: [Option<ViewMut<'_>>; 3]) {
    let (grad, x) = (load::<T>(grad), load::<T>(of.x));
    let (shifts, own, [_, groups, inner]) = (of.shifts, of.own, of.groups);
    let [_, channels, run] = of.channels;
    let weight = of.weight.map(|weight| load::<T>(weight));
    let weight = weight.unwrap_or_else(|| Elements::repeated(T::ONE, channels));
    let place = |at: usize| (at * run / inner.max(1) % groups.max(1), at % channels.max(1));
    let mut runs = vec![[0.0; 2]; x.len() / run.max(1)];
    threads::each_chunk(&mut runs, (PIECE / run.max(1)).max(1), cost(2 * size_of_val(&*x)), |piece, sums| {
        let first = piece * (PIECE / run.max(1)).max(1);
        for (at, sums) in (first..).zip(sums) {
            let (mean, scale) = shifts[place(at).0];
            let range = at * run..(at + 1) * run;
            *sums = run_sums(&grad[range.clone()], &x[range], T::narrow(mean), T::narrow(scale));
        }
    });
    let (mut by_group, mut by_channel) = (vec![[0.0; 2]; groups], vec![[0.0; 2]; channels]);
    for (at, sums) in runs.iter().enumerate() {
        let (group, channel) = place(at);
        let weight = weight[channel].wide();
        for i in 0..2 {
            by_group[group][i] += weight * sums[i];
            by_channel[channel][i] += sums[i];
        }
    }
    if let Some(input) = input {
        let count = x.len().checked_div(groups).map_or(1.0, |size| size as f64);
        store::<T>(input, |out| {
            let pieces = (PIECE / run.max(1)).max(1);
            let work = cost(3 * size_of_val(out));
            threads::each_chunk(out, pieces * run.max(1), work, |piece, out| {
                for (at, out) in (piece * pieces..).zip(out.chunks_exact_mut(run.max(1))) {
                    let (group, channel) = place(at);
                    let [sum, aligned] = if own { by_group[group] } else { [0.0; 2] };
                    let (mean, scale) = shifts[group];
                    let numbers = [mean, scale, sum / count, aligned / count].map(T::narrow);
                    let range = at * run..(at + 1) * run;
                    input_run(&grad[range.clone()], &x[range], numbers, weight[channel], out);
                }
            });
        });
    }
    keep::<T>(weights, &by_channel, 1);
    keep::<T>(biases, &by_channel, 0);
}

fn keep<T: Float>(out: Option<ViewMut<'_>>, sums: &[Sums], which: usize) {
    if let Some(out) = out {
        store::<T>(out, |out| out.iter_mut().zip(sums).for_each(|(out, sums)| *out = T::narrow(sums[which])));
    }
}

wide! {
    fn run_sums[T: Float](grad: &[T], x: &[T], mean: T, scale: T) -> Sums {
        sums(grad, x, |grad, x| [grad, grad * ((x - mean) * scale)])
    }
}

wide! {
    fn input_run[T: Float](grad: &[T], x: &[T], numbers: [T; 4], weight: T, out: &mut [T]) {
        let [mean, scale, sum, aligned] = numbers;
        for ((out, &grad), &x) in out.iter_mut().zip(grad).zip(x) {
            *out = (grad * weight - sum - (x - mean) * scale * aligned) * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    #[test]
    fn gradients_of_own_statistics_have_neither_mean_nor_spread() {
        let x = Array::new(&[2, 1, 2], &[1.0f64, 2.0, 3.0, 6.0]);
        let grad = Array::new(&[2, 1, 2], &[1.0f64, -1.0, 0.5, 2.0]);
        let shifts = [(3.0, 1.0 / 3.5f64.sqrt())];
        let of = Grouped {
            x: x.view(),
            groups: [2, 1, 2],
            shifts: &shifts,
            own: true,
            channels: [2, 1, 2],
            weight: None,
        };
        let mut out = Array::new(&[2, 1, 2], &[0.0f64; 4]);
        let (mut weight, mut bias) = (Array::new(&[1], &[0.0f64]), Array::new(&[1], &[0.0f64]));
        grouped_backward(
            grad.view(),
            &of,
            [Some(out.view_mut()), Some(weight.view_mut()), Some(bias.view_mut())],
        );
        let out: Vec<f64> = crate::elementwise::to_vec(out.view());
        let along: f64 = out.iter().zip([1.0, 2.0, 3.0, 6.0]).map(|(out, x)| out * (x - 3.0)).sum();
        assert!(out.iter().sum::<f64>().abs() < 1e-12 && along.abs() < 1e-12, "{out:?}");
        assert_eq!(crate::elementwise::to_vec::<f64>(bias.view()), [2.5]);
    }
}
