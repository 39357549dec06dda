//! What memory the library takes by which torch runs a layer of long short-term memory: pages for states and gates,
//! and weights in its own order.

use crate::{DType, Device, Result, Tensor};

/// What each part of its memory begins at a multiple of.
const PAGE: usize = 4096;

/// Sizes of a layer.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) inputs: usize,
    pub(super) hidden: usize,
}

/// How far rows of `count` numbers lie apart.
fn row(count: usize) -> usize {
    let row = count.next_multiple_of(16);
    if row.is_multiple_of(256) { row + 16 } else { row }
}

/// Whole pages for so many numbers.
fn pages(numbers: usize) -> usize {
    (4 * numbers).next_multiple_of(PAGE)
}

impl Sizes {
    /// States of all steps and the first, of this layer and what it reads, in rows so far apart.
    fn states(self, row: usize) -> usize {
        pages(2 * (self.steps + 1) * self.batch * row)
    }

    fn gates(self) -> usize {
        pages(self.steps * self.batch * row(4 * self.hidden))
    }

    /// Bytes that are kept for the derivative.
    pub(super) fn workspace(self) -> usize {
        let hidden = pages(self.steps * self.batch * row(self.hidden));
        let wide = self.states(row(self.inputs.max(self.hidden)));
        self.gates() + hidden + 3 * wide + 2 * self.states(self.hidden)
    }

    /// Bytes of weights from so many numbers to the gates, a row for each number.
    fn weights(self, from: usize) -> usize {
        4 * from * if from == 1 { 4 * self.hidden } else { row(4 * self.hidden) }
    }

    fn scratch(self) -> usize {
        self.gates() + 2 * pages(self.batch * row(self.hidden)) + PAGE + 568
    }

    fn inference_scratch(self) -> usize {
        let Sizes { batch, inputs, hidden, .. } = self;
        let states = self.states(row(inputs.max(hidden))) + self.states(hidden);
        let step = pages(batch * row(4 * hidden)) + pages(batch * row(hidden));
        states + step + PAGE + if inputs == hidden && batch > 1 { 856 } else { 776 }
    }

    /// Memory that it works in while it runs a layer, with a workspace or without.
    pub(super) fn forward(self, keeps: bool) -> Result<Vec<Tensor>> {
        let both = [self.inputs, self.hidden];
        if keeps {
            let weights = both.into_iter().filter(|&from| from > 1).map(|from| self.weights(from));
            return weights.chain([self.scratch()]).map(taken).collect();
        }
        let block = if self.batch == 1 { 32 } else { 16 };
        let weights = both.map(|from| 16 * from * self.hidden.next_multiple_of(block));
        weights.into_iter().chain([self.inference_scratch()]).map(taken).collect()
    }

    /// Memory that it works in while it runs a layer backwards.
    pub(super) fn backward(self) -> Result<Vec<Tensor>> {
        let both = [self.inputs, self.hidden];
        let turned =
            both.into_iter().filter(|&from| row(from) != from).map(|from| 16 * self.hidden * row(from));
        let gradients = both.into_iter().map(|from| self.weights(from));
        turned.chain(gradients).chain([16 * self.hidden, self.scratch()]).map(taken).collect()
    }
}

fn taken(bytes: usize) -> Result<Tensor> {
    Tensor::uninit(&[bytes], DType::U8, Device::CPU)
}
