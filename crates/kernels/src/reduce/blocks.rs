//! Any reduction seen as one over the middle of three dimensions.

use crate::elementwise::pack;
use crate::{Dims, Element, Layout, View};
use std::borrow::Cow;

/// Row-major elements of shape `[outer, size, inner]`, of which `size` is reduced.
pub(super) struct Blocks<'a, T: Element> {
    pub(super) elements: Cow<'a, [T]>,
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
        let elements = Cow::Owned(pack(x.with_layout(&turned)).into_owned());
        Blocks { elements, size, inner: 1 }
    }
}

/// The shape of the output is the input's with `dims` of size 1.
pub(super) fn check(shape: &[usize], dims: &[usize], out: &[usize]) {
    let fits = shape.len() == out.len()
        && (0..shape.len()).all(|dim| out[dim] == if dims.contains(&dim) { 1 } else { shape[dim] })
        && dims.iter().all(|&dim| dim < shape.len());
    assert!(fits, "reduction of {shape:?} over {dims:?} does not give {out:?}");
}
