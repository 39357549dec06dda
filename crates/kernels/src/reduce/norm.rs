//! Norms of any order.

use super::blocks::{self, Blocks};
use super::fold::fold_blocks;
use crate::computing::load;
use crate::elementwise::{Single, contiguous, cost, floats, to_scratch, write};
use crate::functions::is_nan;
use crate::lanes::sums;
use crate::scratch::Scratch;
use crate::wide::wide;
use crate::{DType, Float, View, ViewMut, threads};

/// The norm of `order` over `dims`: `(sum |x|^order)^(1 / order)`, the largest or smallest
/// magnitude for an infinite order, the count of elements other than zero for order 0.
///
/// # Panics
/// If there is nothing to choose the largest or smallest from.
pub fn norm(order: f64, x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    blocks::check(x.shape(), dims, out.shape());
    floats!(out.dtype(), T => norm_as::<T>(order, x, dims, out), single => {
        let mut wide = Single::zeros(out.shape());
        norm_as::<f32>(order, x, dims, wide.view_mut());
        wide.store(out);
    });
}

fn norm_as<T: Float>(order: f64, x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    if let (2.0, Some(elements)) = (order, x.layout().is_contiguous().then(|| load::<T>(x))) {
        let layout = contiguous(x.shape());
        let blocks = Blocks::<T>::new(View::of(&elements, &layout), dims);
        if blocks.inner == 1 && !elements.is_empty() {
            return write(out, |out| lengths(&blocks, out));
        }
    }
    let mut elements = to_scratch::<T>(x);
    elements.iter_mut().for_each(|x| *x = term(*x, order));
    let layout = contiguous(x.shape());
    let blocks = Blocks::<T>::new(View::of(&elements, &layout), dims);
    write(out, |out: &mut [T]| {
        if order.is_infinite() {
            assert!(out.is_empty() || blocks.size > 0, "the extreme of no elements");
            let above = order > 0.0;
            let pick = |a: T, b: T| if is_nan(a) || (!is_nan(b) && (a > b) == above) { a } else { b };
            return fold_blocks(&blocks, out, T::ZERO, &pick);
        }
        fold_blocks(&blocks, out, T::ZERO, &T::plus);
        out.iter_mut().for_each(|sum| *sum = root(*sum, order));
    });
}

/// Elements whose squares one thread adds up at once.
const SPAN: usize = 1 << 16;

/// The root of the sum of squares of each row.
fn lengths<T: Float>(rows: &Blocks<'_, T>, out: &mut [T]) {
    let (x, spans) = (&*rows.elements, rows.size.div_ceil(SPAN));
    let mut partial = Scratch::<f64>::new(out.len() * spans);
    let together = (SPAN / rows.size).max(1);
    threads::each_chunk(&mut partial, together, cost(size_of_val(x)), |i, partial| {
        for (number, sum) in (i * together..).zip(partial) {
            let (row, first) = (number / spans, number % spans * SPAN);
            *sum = squares(&x[row * rows.size..][first..rows.size.min(first + SPAN)]);
        }
    });
    for (out, partial) in out.iter_mut().zip(partial.chunks(spans)) {
        *out = T::narrow(partial.iter().sum::<f64>().sqrt());
    }
}

wide! {
    fn squares[T: Float](x: &[T]) -> f64 {
        sums(x, x, |a, b| [a * b])[0]
    }
}

/// What is summed, or chosen from, for one element.
fn term<T: Float>(x: T, order: f64) -> T {
    match order {
        0.0 if x == T::ZERO => T::ZERO,
        0.0 => T::ONE,
        1.0 => x.abs(),
        2.0 => x * x,
        order if order.is_infinite() => x.abs(),
        order => x.abs().powf(T::narrow(order)),
    }
}

fn root<T: Float>(sum: T, order: f64) -> T {
    match order {
        0.0 | 1.0 => sum,
        2.0 => sum.sqrt(),
        order => sum.powf(T::narrow(1.0 / order)),
    }
}
