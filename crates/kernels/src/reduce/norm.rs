//! Norms of any order.

use super::blocks::{self, Blocks};
use super::fold::fold_blocks;
use crate::elementwise::{Single, contiguous, floats, to_vec, write};
use crate::functions::is_nan;
use crate::{DType, Float, View, ViewMut};

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
    let mut elements = to_vec::<T>(x);
    elements.iter_mut().for_each(|x| *x = term(*x, order));
    let layout = contiguous(x.shape());
    let blocks = Blocks::<T>::new(View::of(&elements, &layout), dims);
    write(out, |out: &mut [T]| {
        if order.is_infinite() {
            assert!(out.is_empty() || blocks.size > 0, "the extreme of no elements");
            let above = order > 0.0;
            let pick = |a: T, b: T| if is_nan(a) || (!is_nan(b) && (a > b) == above) { a } else { b };
            return fold_blocks(&blocks, out, T::ZERO, pick);
        }
        fold_blocks(&blocks, out, T::ZERO, T::plus);
        out.iter_mut().for_each(|sum| *sum = root(*sum, order));
    });
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
