//! Largest and smallest elements. NaN beats everything, and the first of equals wins.

use super::blocks::{self, Blocks};
use crate::elementwise::write;
use crate::functions::is_nan;
use crate::scratch::Scratch;
use crate::{Element, View, ViewMut, with_dtype};

/// The largest elements along `dim`, and their indices as i64.
pub fn max(x: View<'_>, dim: usize, values: ViewMut<'_>, indices: ViewMut<'_>) {
    with_dtype!(x.dtype(), T => pick::<T>(x, dim, values, indices, T::gt));
}

/// The smallest elements along `dim`, and their indices as i64.
pub fn min(x: View<'_>, dim: usize, values: ViewMut<'_>, indices: ViewMut<'_>) {
    with_dtype!(x.dtype(), T => pick::<T>(x, dim, values, indices, T::lt));
}

/// The indices, as i64, of the largest elements along `dim`.
pub fn argmax(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    with_dtype!(x.dtype(), T => {
        let (mut values, layout) = (Scratch::<T>::new(out.layout().len()), out.layout());
        let layout = crate::elementwise::contiguous(layout.shape());
        pick::<T>(x, dim, ViewMut::of(&mut values, &layout), out, T::gt);
    });
}

/// The indices, as i64, of the smallest elements along `dim`.
pub fn argmin(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    with_dtype!(x.dtype(), T => {
        let (mut values, layout) = (Scratch::<T>::new(out.layout().len()), out.layout());
        let layout = crate::elementwise::contiguous(layout.shape());
        pick::<T>(x, dim, ViewMut::of(&mut values, &layout), out, T::lt);
    });
}

/// The largest elements over `dims`.
pub fn amax(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    with_dtype!(x.dtype(), T => extreme::<T>(x, dims, out, |a, b| if a >= b || is_nan(a) { a } else { b }));
}

/// The smallest elements over `dims`.
pub fn amin(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    with_dtype!(x.dtype(), T => extreme::<T>(x, dims, out, |a, b| if a <= b || is_nan(a) { a } else { b }));
}

fn extreme<T: Element>(x: View<'_>, dims: &[usize], out: ViewMut<'_>, f: impl Fn(T, T) -> T + Copy + Sync) {
    blocks::check(x.shape(), dims, out.shape());
    let none = dims.iter().any(|&dim| x.shape()[dim] == 0);
    assert!(out.layout().is_empty() || !none, "the extreme of no elements");
    blocks::fold(x, dims, out, T::default(), &f);
}

/// What is reduced to one row of the output each, if there is any output.
fn groups<'a, T: Element>(blocks: &'a Blocks<'_, T>, out: usize) -> Option<std::slice::ChunksExact<'a, T>> {
    assert!(out == 0 || blocks.size > 0, "the extreme of no elements");
    (out > 0).then(|| blocks.elements.chunks_exact(blocks.size * blocks.inner))
}

fn pick<T: Element>(
    x: View<'_>,
    dim: usize,
    values: ViewMut<'_>,
    indices: ViewMut<'_>,
    beats: impl Fn(&T, &T) -> bool + Copy,
) {
    // A number by itself is a row of one.
    let dims: &[usize] = if x.shape().is_empty() { &[] } else { &[dim] };
    blocks::check(x.shape(), dims, values.shape());
    blocks::check(x.shape(), dims, indices.shape());
    let blocks = Blocks::<T>::new(x, dims);
    write(values, |values: &mut [T]| {
        write(indices, |indices: &mut [i64]| {
            let Some(groups) = groups(&blocks, values.len()) else { return };
            let outputs = values.chunks_exact_mut(blocks.inner).zip(indices.chunks_exact_mut(blocks.inner));
            for ((values, indices), rows) in outputs.zip(groups) {
                pick_rows(rows, values, indices, beats);
            }
        });
    });
}

fn pick_rows<T: Element>(rows: &[T], values: &mut [T], indices: &mut [i64], beats: impl Fn(&T, &T) -> bool) {
    let inner = values.len();
    values.copy_from_slice(&rows[..inner]);
    indices.fill(0);
    for (i, row) in rows.chunks_exact(inner).enumerate().skip(1) {
        for ((value, index), x) in values.iter_mut().zip(&mut *indices).zip(row) {
            if beats(x, value) || (is_nan(*x) && !is_nan(*value)) {
                (*value, *index) = (*x, i as i64);
            }
        }
    }
}
