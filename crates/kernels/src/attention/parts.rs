//! What attention works on: heads of tensors, rows to fill, masks, and blocks of scores.

use super::Attention;
use crate::elementwise::{contiguous, to_vec};
use crate::matrix::{Part, PartMut, multiply};
use crate::{DType, Element, Float, Layout, View, ViewMut};
use std::marker::PhantomData;

/// Sizes, numbers, and where blocks end: by shape alone.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) batch: usize,
    pub(super) heads: usize,
    /// Heads of keys and values.
    pub(super) shared: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) width: usize,
    pub(super) scale: f64,
    pub(super) causal: bool,
}

/// Sums side by side, in two vector registers.
pub(super) const LANES: usize = 16;

/// Queries of one block: whole blocks of the kernels for vectors, and few, so that causal ones skip more.
pub(super) const QUERIES: usize = 48;
/// Keys of one block: scores of a block of queries stay in the second-level cache.
pub(super) const KEYS: usize = 512;

impl Shape {
    pub(super) fn of(query: View<'_>, key: View<'_>, how: &Attention<'_>) -> Shape {
        let (&[batch, heads, queries, width], &[_, shared, keys, _]) = (query.shape(), key.shape()) else {
            panic!("attention: {:?} and {:?} are not batches of heads", query.shape(), key.shape());
        };
        Shape { batch, heads, shared, queries, keys, width, scale: how.scale, causal: how.causal }
    }

    pub(super) fn blocks(&self) -> usize {
        self.queries.div_ceil(QUERIES)
    }

    /// The queries of a block.
    pub(super) fn range(&self, block: usize) -> (usize, usize) {
        let first = block * QUERIES;
        (first, QUERIES.min(self.queries - first))
    }

    /// How many keys some query before `end` sees.
    pub(super) fn seen(&self, end: usize) -> usize {
        if self.causal { end.min(self.keys) } else { self.keys }
    }

    /// Which key head a head of queries looks at.
    pub(super) fn key_head(&self, head: usize) -> usize {
        head / (self.heads / self.shared)
    }

    /// Nanoseconds of `products` multiplications of all scores, roughly.
    pub(super) fn cost(&self, products: usize) -> usize {
        let scores = self.batch * self.heads * self.queries * self.keys;
        scores * (products * self.width / 32 + 1) / if self.causal { 2 } else { 1 }
    }
}

/// One tensor of `[batch, heads, rows, width]`, or without a width.
#[derive(Clone, Copy)]
pub(super) struct Heads<'a, T> {
    elements: &'a [T],
    strides: [usize; 4],
    pub(super) width: usize,
}

impl<'a, T: Float> Heads<'a, T> {
    pub(super) fn new(x: View<'a>) -> Heads<'a, T> {
        let mut strides = [1; 4];
        strides[..x.shape().len()].copy_from_slice(x.layout().strides());
        Heads { elements: x.span(), strides, width: x.shape().get(3).copied().unwrap_or(1) }
    }

    pub(super) fn at(&self, batch: usize, head: usize, row: usize) -> &'a [T] {
        &self.elements[batch * self.strides[0] + head * self.strides[1] + row * self.strides[2]..]
    }

    /// Some rows of a head, as a matrix.
    pub(super) fn part(&self, [batch, head]: [usize; 2], row: usize, rows: usize) -> Part<'a, T> {
        let [_, _, down, across] = self.strides;
        Part { elements: self.at(batch, head, row), rows, columns: self.width, down, across }
    }
}

/// A tensor that threads fill row by row.
pub(super) struct Rows<'a, T> {
    start: *mut T,
    layout: &'a Layout,
    pub(super) width: usize,
    _elements: PhantomData<&'a mut T>,
}

// SAFETY: rows are written through `fill` alone, each by one thread.
unsafe impl<T: Send> Sync for Rows<'_, T> {}

impl<'a, T: Element> Rows<'a, T> {
    pub(super) fn new(mut x: ViewMut<'a>) -> Rows<'a, T> {
        let width = x.shape().get(3).copied().unwrap_or(1);
        Rows { start: x.pointer(), layout: x.layout(), width, _elements: PhantomData }
    }

    /// Writes one row.
    ///
    /// # Safety
    /// No other thread writes the same row.
    pub(super) unsafe fn fill(&self, at: [usize; 3], elements: impl Iterator<Item = T>) {
        let (shape, strides) = (self.layout.shape(), self.layout.strides());
        assert!(at.iter().zip(shape).all(|(at, size)| at < size), "attention: row {at:?} of {shape:?}");
        let first: usize = at.iter().zip(strides).map(|(at, stride)| at * stride).sum();
        let across = strides.get(3).copied().unwrap_or(1);
        // SAFETY: indices are inside of the shape, so elements are the view's; the caller promises
        // that no other thread writes them.
        unsafe {
            let start = self.start.add(first);
            if across == 1 {
                let row = std::slice::from_raw_parts_mut(start, self.width);
                return row.iter_mut().zip(elements).for_each(|(place, element)| *place = element);
            }
            for (i, element) in elements.take(self.width).enumerate() {
                start.add(i * across).write(element);
            }
        }
    }
}

/// A mask as numbers to add: `-inf` where bool says that a key is not seen.
pub(super) struct Added<'a, T> {
    elements: Option<Vec<T>>,
    view: View<'a>,
    layout: Layout,
}

impl<'a, T: Float> Added<'a, T> {
    pub(super) fn new(mask: View<'a>) -> Added<'a, T> {
        if mask.dtype() == T::DTYPE {
            return Added { elements: None, view: mask, layout: mask.layout().clone() };
        }
        let layout = contiguous(mask.shape());
        let elements = match mask.dtype() {
            DType::Bool => {
                let added = |&seen: &bool| if seen { T::ZERO } else { T::neg_infinity() };
                mask.array::<bool>().iter().map(added).collect()
            }
            _ => to_vec(mask),
        };
        Added { elements: Some(elements), view: mask, layout }
    }

    pub(super) fn view(&self, shape: &Shape) -> Mask<'_, T> {
        let all = [shape.batch, shape.heads, shape.queries, shape.keys];
        let layout = self.layout.broadcast_to(&all).expect("a mask broadcasts to all scores");
        let strides = std::array::from_fn(|dim| layout.strides()[dim]);
        Mask { elements: self.elements.as_deref().unwrap_or_else(|| self.view.span()), strides }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Mask<'a, T> {
    elements: &'a [T],
    strides: [usize; 4],
}

impl<T: Float> Mask<'_, T> {
    /// Adds the mask of one query and some keys to their scores.
    pub(super) fn add(&self, at: [usize; 4], scores: &mut [T]) {
        let first: usize = at.iter().zip(self.strides).map(|(at, stride)| at * stride).sum();
        match self.strides[3] {
            1 => scores
                .iter_mut()
                .zip(&self.elements[first..])
                .for_each(|(score, &mask)| *score = *score + mask),
            stride => scores.iter_mut().enumerate().for_each(|(i, score)| {
                *score = *score + self.elements[first + i * stride];
            }),
        }
    }
}

/// A block of scores: the products of some queries and keys, scaled and masked.
pub(super) struct Scores<'s, T> {
    pub(super) shape: &'s Shape,
    pub(super) mask: Option<Mask<'s, T>>,
    pub(super) at: [usize; 2],
    pub(super) first: usize,
    pub(super) queries: usize,
    pub(super) first_key: usize,
    pub(super) keys: usize,
}

impl<T: Float> Scores<'_, T> {
    pub(super) fn fill(&self, query: Part<'_, T>, key: Part<'_, T>, scores: &mut [T]) {
        let out = PartMut { elements: scores, rows: self.queries, columns: self.keys, down: self.keys };
        multiply(T::narrow(self.shape.scale), query, key.transposed(), T::ZERO, out);
        if let Some(mask) = self.mask {
            for (row, scores) in scores.chunks_exact_mut(self.keys).enumerate() {
                mask.add([self.at[0], self.at[1], self.first + row, self.first_key], scores);
            }
        }
    }

    /// How many of the block's keys a row's query sees.
    pub(super) fn seen(&self, row: usize) -> usize {
        self.shape.seen(self.first + row + 1).saturating_sub(self.first_key).min(self.keys)
    }
}
