//! In which order the output of a function of elements lies: in that of its operands.

use super::{Given, Inputs};
use crate::{Layout, Tensor};
use cresset_kernels::Dims;
use smallvec::SmallVec;
use std::cmp::Ordering;

/// Where an output of `shape` lies that is computed element by element from `inputs`; `None` if it is
/// row-major, as it is wherever the operands are.
#[inline]
pub(crate) fn kept<I: Inputs>(inputs: I, shape: &[usize]) -> Option<Layout> {
    let mut plain = true;
    inputs.each(|given| plain &= given.tensor().is_none_or(Tensor::is_contiguous));
    if plain { None } else { of_operands(inputs, shape) }
}

#[cold]
fn of_operands<I: Inputs>(inputs: I, shape: &[usize]) -> Option<Layout> {
    let mut layouts: SmallVec<[Layout; 3]> = SmallVec::new();
    inputs.each(|given: Given<'_>| layouts.extend(given.tensor().map(|tensor| tensor.layout().clone())));
    let first = &layouts[0];
    let alike = |layout: &Layout| layout.has_shape(shape) && layout.strides() == first.strides();
    if first.is_dense() && layouts.iter().all(alike) {
        return Layout::strided(shape, first.strides(), 0);
    }
    if layouts.iter().all(|layout| layout.has_shape(shape) && layout.is_contiguous()) {
        return None;
    }
    let strides: SmallVec<[Dims; 3]> = layouts.iter().map(|layout| spread(layout, shape)).collect();
    let order = order(&strides, shape);
    if order.iter().rev().copied().eq(0..shape.len()) {
        return None;
    }
    let slowest_first: Dims = order.into_iter().rev().collect();
    Layout::ordered(shape, &slowest_first)
}

/// The strides of an operand that is repeated to fill `shape`: 0 where it is.
fn spread(layout: &Layout, shape: &[usize]) -> Dims {
    let missing = shape.len() - layout.rank();
    let own = layout.shape().iter().zip(layout.strides()).zip(&shape[missing..]);
    let strides = own.map(|((&size, &stride), &wanted)| if size == 1 && wanted != 1 { 0 } else { stride });
    std::iter::repeat_n(0, missing).chain(strides).collect()
}

/// The dimensions, those whose elements lie closest together first. As torch has it, operands are asked one
/// after the other, those that are repeated have no say, and who cannot tell leaves things as they are.
fn order(strides: &[Dims], shape: &[usize]) -> Dims {
    let compare = |a: usize, b: usize| {
        for strides in strides {
            match strides[a].cmp(&strides[b]) {
                _ if strides[a] == 0 || strides[b] == 0 => {}
                Ordering::Equal if shape[a] > shape[b] => return Ordering::Greater,
                Ordering::Equal => {}
                told => return told,
            }
        }
        Ordering::Equal
    };
    let mut order: Dims = (0..shape.len()).rev().collect();
    for from in 1..order.len() {
        let mut at = from;
        for before in (0..from).rev() {
            match compare(order[before], order[at]) {
                Ordering::Greater => {
                    order.swap(before, at);
                    at = before;
                }
                Ordering::Less => break,
                Ordering::Equal => {}
            }
        }
    }
    order
}
