//! Tables whose rows are picked by number.

use super::places::numbers;
use super::{Combine, Places, pick, put};
use crate::elementwise::{contiguous, fill};
use crate::{Float, OutOfRange, Scalar, View, ViewMut, with_dtype};
use ndarray::{ArrayViewMutD, Axis};
use std::collections::HashMap;

/// `out[i.., :] = weight[indices[i..], :]`: indices of any shape, weight of two dimensions.
pub fn embedding(weight: View<'_>, indices: View<'_>, out: ViewMut<'_>) -> Result<(), OutOfRange> {
    assert_eq!(
        (&out.shape()[..indices.shape().len()], out.shape().last()),
        (indices.shape(), weight.shape().last()),
        "embedding: out has the shape of the indices and one row's size"
    );
    pick(weight, &Places::of_slices(weight.layout(), 0, indices, false)?, out);
    Ok(())
}

/// `out[indices[i..], :] = sum of grad[i.., :]`, with nothing for the padding index.
pub fn embedding_backward(
    grad: View<'_>,
    indices: View<'_>,
    padding: Option<usize>,
    mut out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let places = Places::of_slices(out.layout(), 0, indices, false)?;
    fill(Scalar::Int(0), out.reborrow());
    put(out.reborrow(), &places, grad, Combine::Add, true);
    if let Some(row) = padding.filter(|&row| row < out.shape()[0]) {
        clear_row(out, row);
    }
    Ok(())
}

fn clear_row(out: ViewMut<'_>, row: usize) {
    let (row, line) = ([row as i64], contiguous(&[1]));
    let places = Places::of_slices(out.layout(), 0, View::of(&row, &line), false).expect("the row exists");
    let zeros = line.broadcast_to(&[places.count()]).expect("one element fills any line");
    with_dtype!(out.dtype(), T => {
        put(out, &places, View::of(&[T::default()], &zeros), Combine::Replace, true);
    });
}

/// Divides each row of `out` by how often `indices`, known to be good, name it.
pub fn divide_rows_by_count(indices: View<'_>, mut out: ViewMut<'_>) {
    let mut counts = HashMap::<usize, usize>::new();
    let indices = numbers(indices, out.shape()[0], false).expect("the indices were looked at before");
    indices.into_iter().for_each(|row| *counts.entry(row).or_default() += 1);
    with_dtype!(out.dtype(), [floats] T => {
        for (row, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
            scale::<T>(out.array::<T>().index_axis_mut(Axis(0), row), 1.0 / count as f64);
        }
    }, else panic!("rows of floats are divided"));
}

/// Makes the rows that `indices` name no longer than `max`, by the norm `(sum |x|^p)^(1/p)`.
pub fn renormalize(mut table: ViewMut<'_>, indices: View<'_>, max: f64, p: f64) -> Result<(), OutOfRange> {
    let mut rows = numbers(indices, table.shape()[0], false)?;
    rows.sort_unstable();
    rows.dedup();
    with_dtype!(table.dtype(), [floats] T => {
        let mut table = table.array::<T>();
        for row in rows {
            let row = table.index_axis_mut(Axis(0), row);
            let norm = norm(row.iter().map(|x| x.wide().abs()), p);
            if norm > max {
                scale::<T>(row, max / (norm + 1e-7));
            }
        }
    }, else panic!("rows of floats have a norm"));
    Ok(())
}

fn norm(magnitudes: impl Iterator<Item = f64>, p: f64) -> f64 {
    if p == f64::INFINITY {
        return magnitudes.fold(0.0, f64::max);
    }
    magnitudes.map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p)
}

fn scale<T: Float>(mut row: ArrayViewMutD<'_, T>, factor: f64) {
    row.iter_mut().for_each(|x| *x = T::narrow(x.wide() * factor));
}
