//! One operand over a tile of the output, as rows of elements.

use super::turn::{SQUARE, squares};
use crate::Element;
use smallvec::SmallVec;

/// Side of the squares that operands which jump are packed in: two fit into the first cache.
pub(super) const TILE: usize = 64;

/// Elements that move by `step` along the rows of a tile and by `across` from row to row.
#[derive(Clone)]
pub(super) struct Operand<'a, T: Element> {
    elements: &'a [T],
    step: usize,
    across: usize,
    at: usize,
    columns: usize,
    /// Packed rows, or one element over and over.
    buffer: SmallVec<[T; TILE]>,
    /// Which element is repeated, and how often.
    repeated: (usize, usize),
}

impl<'a, T: Element> Operand<'a, T> {
    pub(super) fn new(elements: &'a [T], step: usize, across: usize) -> Operand<'a, T> {
        Operand { elements, step, across, at: 0, columns: 0, buffer: SmallVec::new(), repeated: (0, 0) }
    }

    /// Goes to the tile of `rows` by `columns` elements whose first is at `at`.
    pub(super) fn begin(&mut self, at: usize, rows: usize, columns: usize) {
        (self.at, self.columns) = (at, columns);
        if self.step > 1 {
            if self.buffer.len() < rows * columns {
                self.buffer.resize(rows * columns, T::default());
            }
            let packed = &mut self.buffer[..rows * columns];
            pack_tile(&self.elements[at..], self.step, self.across, packed, columns);
        }
    }

    /// One row of the tile.
    pub(super) fn row(&mut self, row: usize) -> &[T] {
        match self.step {
            0 => self.repeat(self.at + row * self.across),
            1 => &self.elements[self.at + row * self.across..][..self.columns],
            _ => &self.buffer[row * self.columns..][..self.columns],
        }
    }

    fn repeat(&mut self, at: usize) -> &[T] {
        let (same, count) = self.repeated;
        if same != at || count < self.columns {
            self.buffer.clear();
            self.buffer.resize(self.columns, self.elements[at]);
            self.repeated = (at, self.columns);
        }
        &self.buffer[..self.columns]
    }
}

/// `out[row][column] = from[row * across + column * step]`
fn pack_tile<T: Element>(from: &[T], step: usize, across: usize, out: &mut [T], columns: usize) {
    let rows = out.len() / columns.max(1);
    let turned = if across == 1 { [rows, columns].map(|side| side - side % SQUARE) } else { [0; 2] };
    squares(from, step, out, columns, turned);
    for row in 0..rows {
        let first = if row < turned[0] { turned[1] } else { 0 };
        let from = from[row * across..].iter().step_by(step).skip(first);
        out[row * columns..][first..columns].iter_mut().zip(from).for_each(|(out, &x)| *out = x);
    }
}
