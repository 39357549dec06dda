//! Many elements to one: sums, products, means, variances, norms, extremes and where they are.
//!
//! Outputs keep reduced dimensions with size 1. Sums are pairwise, so that errors grow with
//! the logarithm of the count; half precision is added up in `f32`.

mod blocks;
mod extremes;
mod fold;
mod logic;
mod moments;
mod norm;
#[cfg(test)]
mod tests;

pub use extremes::{amax, amin, argmax, argmin, max, min};
pub use logic::{all, any};
pub use moments::{Moments, moments};
pub use norm::norm;

use fold::Folding;
pub(crate) use fold::{sum_columns, sum_slice};

use crate::elementwise::{Single, contiguous, floats, numbers, to_vec};
use crate::{DType, Float, Number, View, ViewMut, view};

/// The sum over `dims`, computed in the element type of `out`, to which `x` is converted.
pub fn sum(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    blocks::check(x.shape(), dims, out.shape());
    numbers!(out.dtype(), T => sum_as::<T>(x, dims, out), single => {
        let mut wide = Single::zeros(out.shape());
        sum_as::<f32>(x, dims, wide.view_mut());
        wide.store(out);
    });
}

/// The sum of all elements, few enough for one span, of `dtype` F32 or F64 and one after the other: what [`sum`]
/// does, for those who know so much already.
#[inline]
pub fn sum_bytes(dtype: DType, x: &[u8], out: &mut [u8]) {
    floats!(dtype, T => view::floats_mut::<T>(out)[0] = fold::sum_few(view::floats::<T>(x)),
        single => panic!("half precision is computed as f32"));
}

/// The mean over `dims`, for floats; NaN over nothing.
pub fn mean(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    blocks::check(x.shape(), dims, out.shape());
    floats!(out.dtype(), T => mean_as::<T>(x, dims, out), single => {
        let mut wide = Single::zeros(out.shape());
        mean_as::<f32>(x, dims, wide.view_mut());
        wide.store(out);
    });
}

/// The product over `dims`, computed in the element type of `out`, to which `x` is converted.
pub fn prod(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    blocks::check(x.shape(), dims, out.shape());
    numbers!(out.dtype(), T => prod_as::<T>(x, dims, out), single => {
        let mut wide = Single::zeros(out.shape());
        prod_as::<f32>(x, dims, wide.view_mut());
        wide.store(out);
    });
}

fn prod_as<T: Number>(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    fold_as::<T>(x, dims, out, T::ONE, &T::times);
}

fn sum_as<T: Number>(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    fold_as::<T>(x, dims, out, T::ZERO, &T::plus);
}

fn fold_as<T: Number>(x: View<'_>, dims: &[usize], out: ViewMut<'_>, empty: T, f: &dyn Folding<T>) {
    if x.dtype() == T::DTYPE {
        return blocks::fold::<T>(x, dims, out, empty, f);
    }
    let (elements, layout) = (to_vec::<T>(x), contiguous(x.shape()));
    blocks::fold::<T>(View::of(&elements, &layout), dims, out, empty, f);
}

fn mean_as<T: Float>(x: View<'_>, dims: &[usize], mut out: ViewMut<'_>) {
    let count: usize = dims.iter().map(|&dim| x.shape()[dim]).product();
    let count = T::narrow(count as f64);
    sum_as::<T>(x, dims, out.reborrow());
    out.array::<T>().map_inplace(|sum| *sum = *sum / count);
}
