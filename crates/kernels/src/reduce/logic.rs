//! Whether any or all elements are other than zero.

use super::blocks::{self, Blocks};
use super::fold::{Folding, fold_blocks};
use crate::elementwise::{contiguous, copy, to_vec};
use crate::{View, ViewMut};

/// Whether any element over `dims` is other than zero; none of nothing is.
pub fn any(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    truth(x, dims, out, false, &|a: bool, b: bool| a | b);
}

/// Whether all elements over `dims` are other than zero; all of nothing are.
pub fn all(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    truth(x, dims, out, true, &|a: bool, b: bool| a & b);
}

fn truth(x: View<'_>, dims: &[usize], out: ViewMut<'_>, empty: bool, f: &dyn Folding<bool>) {
    blocks::check(x.shape(), dims, out.shape());
    let (elements, layout) = (to_vec::<bool>(x), contiguous(x.shape()));
    let blocks = Blocks::new(View::of(&elements, &layout), dims);
    let mut truths = vec![empty; out.layout().len()];
    fold_blocks(&blocks, &mut truths, empty, f);
    copy(View::of(&truths, &contiguous(out.shape())), out);
}
