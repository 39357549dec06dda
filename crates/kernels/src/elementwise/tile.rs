//! One operand over a tile of the output, as rows of elements.

use super::stream::fetch;
use super::turn::{SQUARE, squares};
use crate::Element;
use smallvec::SmallVec;

/// Side of the squares that operands which jump are packed in: two fit into the first cache.
pub(super) const TILE: usize = 64;
/// The same where operands come from memory: several lines of it at each step, and packed elements
/// fit into the second cache.
pub(super) const FAR_TILE: usize = 128;
/// Rows that are asked for before their turn.
const AHEAD: usize = 8;

/// Elements that move by `step` along the rows of a tile and by `across` from row to row.
#[derive(Clone)]
pub(super) struct Operand<'a, T: Element> {
    elements: &'a [T],
    step: usize,
    across: usize,
    at: usize,
    columns: usize,
    /// Rows that are asked for ahead.
    asked: usize,
    /// Packed rows, or one element over and over.
    buffer: SmallVec<[T; TILE]>,
    /// Which element is repeated, and how often.
    repeated: (usize, usize),
}

impl<'a, T: Element> Operand<'a, T> {
    pub(super) fn new(elements: &'a [T], step: usize, across: usize) -> Operand<'a, T> {
        Operand {
            elements,
            step,
            across,
            at: 0,
            columns: 0,
            asked: 0,
            buffer: SmallVec::new(),
            repeated: (0, 0),
        }
    }

    /// Goes to the tile of rows and columns whose first element is at `at`, and is `far` if no cache has it.
    #[inline]
    pub(super) fn begin(&mut self, at: usize, [rows, columns]: [usize; 2], far: bool) {
        (self.at, self.columns, self.asked) = (at, columns, if far { rows } else { 0 });
        if self.step > 1 {
            self.pack(rows, far);
        }
    }

    fn pack(&mut self, rows: usize, far: bool) {
        let count = rows * self.columns;
        if self.buffer.len() < count {
            self.buffer.resize(count, T::default());
        }
        let from = &self.elements[self.at..];
        pack_tile(from, [self.step, self.across], &mut self.buffer[..count], self.columns, far);
    }

    /// One row of the tile.
    #[inline]
    pub(super) fn row(&mut self, row: usize) -> &[T] {
        match self.step {
            0 => self.repeat(self.at + row * self.across),
            1 => {
                let line = |row| &self.elements[self.at + row * self.across..][..self.columns];
                if row + AHEAD < self.asked {
                    fetch(line(row + AHEAD));
                }
                line(row)
            }
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
fn pack_tile<T: Element>(from: &[T], [step, across]: [usize; 2], out: &mut [T], columns: usize, far: bool) {
    let rows = out.len() / columns.max(1);
    let turned = if across == 1 { [rows, columns].map(|side| side - side % SQUARE) } else { [0; 2] };
    squares(from, step, out, columns, turned, far);
    for row in 0..rows {
        let first = if row < turned[0] { turned[1] } else { 0 };
        let from = from[row * across..].iter().step_by(step).skip(first);
        out[row * columns..][first..columns].iter_mut().zip(from).for_each(|(out, &x)| *out = x);
    }
}
