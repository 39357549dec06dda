//! Any reduction seen as one over the middle of three dimensions.

use super::fold::{Folding, fold_blocks};
use crate::elementwise::{contiguous, pack, write};
use crate::scratch::{Elements, Scratch};
use crate::{Dims, Element, Layout, View, ViewMut};

/// Row-major elements of shape `[outer, size, inner]`, of which `size` is reduced.
pub(super) struct Blocks<'a, T: Element> {
    pub(super) elements: Elements<'a, T>,
    pub(super) size: usize,
    pub(super) inner: usize,
}

impl<'a, T: Element> Blocks<'a, T> {
    /// Elements that are contiguous and reduced over neighbouring dimensions are not copied.
    pub(super) fn new(x: View<'a>, dims: &[usize]) -> Blocks<'a, T> {
        let shape = x.shape();
        let reduced = |dim: &usize| dims.contains(dim);
        let size = (0..shape.len()).filter(reduced).map(|dim| shape[dim]).product();
        let first = (0..shape.len()).find(reduced).unwrap_or(0);
        let last = (0..shape.len()).rfind(reduced).map_or(0, |dim| dim + 1);
        if (first..last).all(|dim| reduced(&dim) || shape[dim] == 1) {
            let inner = shape[last..].iter().product();
            return Blocks { elements: pack(x), size, inner };
        }
        let order: Dims =
            (0..shape.len()).filter(|dim| !reduced(dim)).chain((0..shape.len()).filter(reduced)).collect();
        let pick = |from: &[usize]| order.iter().map(|&dim| from[dim]).collect::<Dims>();
        let strides = pick(x.layout().strides());
        let turned = Layout::strided(&pick(shape), &strides, x.layout().offset());
        let turned = turned.expect("the same elements in another order");
        let elements = Elements::Copied(pack(x.with_layout(&turned)).into_scratch());
        Blocks { elements, size, inner: 1 }
    }
}

/// Folds `x` over `dims` in an order of its own; `empty` is the fold of nothing.
///
/// Elements that fill their memory are not copied, in whatever order their dimensions are; but what
/// is folded to one element is that of a copy, to the last bit.
pub(super) fn fold<T: Element>(
    x: View<'_>,
    dims: &[usize],
    mut out: ViewMut<'_>,
    empty: T,
    f: &dyn Folding<T>,
) {
    if let (true, Some(order)) = (out.layout().len() > 1, memory_order(x.layout())) {
        let (layout, out_layout) = (x.layout().permute(&order), out.layout().permute(&order));
        let dims: Dims = (0..order.len()).filter(|&dim| dims.contains(&order[dim])).collect();
        return fold_in_order(x.with_layout(&layout), &dims, out.with_layout(&out_layout), empty, f);
    }
    fold_in_order(x, dims, out, empty, f);
}

/// The dimensions in the order in which elements lie, if that makes them contiguous and they are not yet.
fn memory_order(layout: &Layout) -> Option<Dims> {
    if layout.is_contiguous() {
        return None;
    }
    let mut order: Dims = (0..layout.rank()).collect();
    crate::rows::order_by(&mut order, |&a, &b| layout.strides()[a] >= layout.strides()[b]);
    layout.permute(&order).is_contiguous().then_some(order)
}

/// Folds the last reduced dimensions first if others lie between them: nothing is copied then.
fn fold_in_order<T: Element>(x: View<'_>, dims: &[usize], out: ViewMut<'_>, empty: T, f: &dyn Folding<T>) {
    let shape = x.shape();
    let counts = |dim: &usize| dims.contains(dim) && shape[*dim] != 1;
    let last = (0..shape.len()).rfind(counts).unwrap_or(0);
    let first = (0..last).rfind(|dim| !counts(dim) && shape[*dim] != 1).map_or(0, |dim| dim + 1);
    if x.layout().is_contiguous() && !x.layout().is_empty() && (0..first).any(|dim| counts(&dim)) {
        let mut kept = Dims::from_slice(shape);
        kept[first..=last].fill(1);
        let layout = contiguous(&kept);
        let mut partial = Scratch::new(layout.len());
        let inner: Dims = (first..=last).collect();
        fold_blocks(&Blocks::new(x, &inner), &mut partial, empty, f);
        return fold_in_order(View::of(&partial, &layout), dims, out, empty, f);
    }
    write(out, |out| fold_blocks(&Blocks::new(x, dims), out, empty, f));
}

/// The shape of the output is the input's with `dims` of size 1.
pub(super) fn check(shape: &[usize], dims: &[usize], out: &[usize]) {
    let fits = shape.len() == out.len()
        && (0..shape.len()).all(|dim| out[dim] == if dims.contains(&dim) { 1 } else { shape[dim] })
        && dims.iter().all(|&dim| dim < shape.len());
    assert!(fits, "reduction of {shape:?} over {dims:?} does not give {out:?}");
}
