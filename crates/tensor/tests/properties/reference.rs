//! The same steps, computed slowly and obviously: `ndarray` in `f64`, one element at a time.

use super::step::Step;
use ndarray::{ArrayD, Axis, Dimension as _, IxDyn, Slice};
use std::cmp::Ordering;

type Array = ArrayD<f64>;

/// The array whose element at an index is that of `x` at another.
fn picked(x: &Array, shape: &[usize], from: impl Fn(&[usize]) -> Vec<usize>) -> Array {
    Array::from_shape_fn(shape, |index| x[&from(index.slice())[..]])
}

/// Each line along a dimension, changed.
fn lines(mut x: Array, dim: usize, change: impl Fn(&mut Vec<f64>)) -> Array {
    if x.ndim() == 0 {
        let mut line = vec![x[IxDyn(&[])]];
        change(&mut line);
        return Array::from_elem(IxDyn(&[]), line[0]);
    }
    for mut lane in x.lanes_mut(Axis(dim)) {
        let mut line = lane.to_vec();
        change(&mut line);
        lane.iter_mut().zip(line).for_each(|(to, from)| *to = from);
    }
    x
}

/// Each line along a dimension, as one number.
fn folded(x: &Array, dim: usize, keep: bool, fold: impl Fn(&[f64]) -> f64) -> Array {
    if x.ndim() == 0 {
        return Array::from_elem(IxDyn(&[]), fold(&[x[IxDyn(&[])]]));
    }
    let out = x.map_axis(Axis(dim), |lane| fold(&lane.to_vec()));
    if keep { out.insert_axis(Axis(dim)) } else { out }
}

fn mean(line: &[f64]) -> f64 {
    line.iter().sum::<f64>() / line.len() as f64
}

/// NaN counts as larger than all.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

fn larger_first(a: f64, b: f64) -> Ordering {
    b.is_nan().cmp(&a.is_nan()).then(b.partial_cmp(&a).unwrap_or(Ordering::Equal))
}

fn without(index: &[usize], at: usize) -> Vec<usize> {
    let mut index = index.to_vec();
    index.remove(at);
    index
}

pub(super) fn run(step: Step, x: &Array) -> Array {
    let (rank, shape) = (x.ndim(), x.shape().to_vec());
    let dim = |choice: usize| choice % rank.max(1);
    match step {
        Step::Transpose(a, b) => {
            let mut out = x.clone();
            if rank > 0 {
                out.swap_axes(dim(a), dim(b));
            }
            out
        }
        Step::Slice { dim: along, start, stop, step } if rank > 0 => {
            let size = shape[dim(along)];
            let [start, stop] = [start, stop].map(|choice| (choice % (size + 1)) as isize);
            let range = Slice::new(start, Some(stop.max(start)), step as isize);
            x.slice_axis(Axis(dim(along)), range).to_owned()
        }
        Step::Select(along, index) if rank > 0 && shape[dim(along)] > 0 => {
            x.index_axis(Axis(dim(along)), index % shape[dim(along)]).to_owned()
        }
        Step::Unsqueeze(choice) if rank < 6 => x.clone().insert_axis(Axis(choice % (rank + 1))),
        Step::Expand if rank < 6 => picked(x, &[&[2], &shape[..]].concat(), |index| without(index, 0)),
        Step::Diagonal if rank > 1 => {
            let length = shape[0].min(shape[rank - 1]);
            let out = [&shape[1..rank - 1], &[length]].concat();
            picked(x, &out, |index| [&index[rank - 2..], &index[..rank - 2], &index[rank - 2..]].concat())
        }
        Step::Flatten => Array::from_shape_vec(IxDyn(&[x.len()]), x.iter().copied().collect()).unwrap(),
        Step::Flip(along) if rank > 0 => lines(x.clone(), dim(along), |line| line.reverse()),
        Step::Doubled(along) if rank > 0 => {
            let mut out = shape.clone();
            out[dim(along)] *= 2;
            picked(x, &out, |index| {
                let mut index = index.to_vec();
                index[dim(along)] %= shape[dim(along)];
                index
            })
        }
        Step::Slice { .. } | Step::Select(..) | Step::Unsqueeze(_) | Step::Expand | Step::Diagonal => {
            x.clone()
        }
        Step::Flip(_) | Step::Doubled(_) => x.clone(),
        Step::Neg => x.mapv(|x| -x),
        Step::Add(number) => x.mapv(|x| x + number as f64),
        Step::Mul(number) => x.mapv(|x| x * number as f64),
        Step::Square => x.mapv(|x| (x * x).tanh()),
        Step::Tanh => x.mapv(f64::tanh),
        Step::Sigmoid => x.mapv(|x| 1.0 / (1.0 + (-x).exp())),
        Step::Relu => x.mapv(|x| if x < 0.0 { 0.0 } else { x }),
        Step::Centered(along) => lines(x.clone(), dim(along), |line| {
            let mean = mean(line);
            line.iter_mut().for_each(|x| *x -= mean);
        }),
        Step::Softmax(along) => lines(x.clone(), dim(along), |line| {
            let sum: f64 = line.iter().map(|x| x.exp()).sum();
            line.iter_mut().for_each(|x| *x = x.exp() / sum);
        }),
        Step::Sum(along, keep) => folded(x, dim(along), keep, |line| line.iter().sum()),
        Step::Mean(along) => folded(x, dim(along), false, mean),
        Step::Maximum(along) => {
            folded(x, dim(along), false, |line| line.iter().copied().fold(f64::NEG_INFINITY, larger))
        }
        Step::Cumsum(along) => lines(x.clone(), dim(along), |line| {
            for i in 1..line.len() {
                line[i] += line[i - 1];
            }
        }),
        Step::Sorted(along) => lines(x.clone(), dim(along), |line| line.sort_by(|a, b| larger_first(*a, *b))),
        Step::Gram => gram(x),
    }
}

/// `tanh(x @ x')` of the last two dimensions.
fn gram(x: &Array) -> Array {
    let rank = x.ndim();
    let mut shape = x.shape().to_vec();
    shape[rank - 1] = shape[rank - 2];
    Array::from_shape_fn(shape, |index| {
        let row = |i: usize| {
            let stack = (0..rank - 2).fold(x.view(), |x, dim| x.index_axis_move(Axis(0), index[dim]));
            stack.index_axis_move(Axis(0), i)
        };
        let (a, b) = (row(index[rank - 2]), row(index[rank - 1]));
        a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>().tanh()
    })
}
