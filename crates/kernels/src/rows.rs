//! Several layouts of one shape walked together, one innermost run at a time.

use crate::Layout;
use smallvec::SmallVec;

/// Runs of elements on which every operand moves by a fixed step.
///
/// Dimensions are ordered by the first operand's strides and merged where all operands
/// allow, so that runs are as long as they can be.
pub(crate) struct Rows<const N: usize> {
    /// Elements in a run.
    pub(crate) len: usize,
    /// Steps within a run, per operand.
    pub(crate) steps: [usize; N],
    /// The dimensions around the runs, the outermost first.
    pub(crate) outer: SmallVec<[Dim<N>; 4]>,
}

/// Puts items in order and keeps equal ones as they are. For a few: the library's sort is worth its size
/// for many.
pub(crate) fn order_by<T>(items: &mut [T], in_order: impl Fn(&T, &T) -> bool) {
    for end in 1..items.len() {
        for at in (0..end).rev() {
            if in_order(&items[at], &items[at + 1]) {
                break;
            }
            items.swap(at, at + 1);
        }
    }
}

/// A dimension of all operands.
#[derive(Clone, Copy)]
pub(crate) struct Dim<const N: usize> {
    pub(crate) size: usize,
    /// Per operand.
    pub(crate) strides: [usize; N],
    index: usize,
}

impl<const N: usize> Rows<N> {
    /// The runs of layouts that have the same shape.
    pub(crate) fn new(layouts: [&Layout; N]) -> Rows<N> {
        let shape = layouts[0].shape();
        let mut dims: SmallVec<[Dim<N>; 4]> = SmallVec::new();
        for (at, &size) in shape.iter().enumerate().filter(|&(_, &size)| size != 1) {
            dims.push(Dim { size, strides: layouts.map(|layout| layout.strides()[at]), index: 0 });
        }
        order_by(&mut dims, |a, b| a.strides[0] >= b.strides[0]);
        let mut outer: SmallVec<[Dim<N>; 4]> = SmallVec::new();
        for dim in dims {
            match outer.last_mut() {
                Some(last) if (0..N).all(|i| last.strides[i] == dim.size * dim.strides[i]) => {
                    *last = Dim { size: last.size * dim.size, ..dim };
                }
                _ => outer.push(dim),
            }
        }
        let inner = outer.pop().unwrap_or(Dim { size: 1, strides: [1; N], index: 0 });
        Rows { len: inner.size, steps: inner.strides, outer }
    }

    /// Calls `f` with where each run starts, per operand, counted from the first element.
    pub(crate) fn for_each(self, mut f: impl FnMut([usize; N])) {
        if self.len == 0 || self.outer.iter().any(|dim| dim.size == 0) {
            return;
        }
        let mut walk = Walk::new(&self.outer, 0, [0; N]);
        loop {
            f(walk.at);
            if !walk.advance() {
                return;
            }
        }
    }
}

/// A way through the indices of some dimensions, none of size 0.
pub(crate) struct Walk<const N: usize> {
    dims: SmallVec<[Dim<N>; 4]>,
    /// Where the operands are.
    pub(crate) at: [usize; N],
}

impl<const N: usize> Walk<N> {
    /// From the index with number `first` on; operands are at `origin` for the index 0.
    pub(crate) fn new(dims: &[Dim<N>], first: usize, origin: [usize; N]) -> Walk<N> {
        let mut dims: SmallVec<[Dim<N>; 4]> = SmallVec::from_slice(dims);
        let (mut at, mut rest) = (origin, first);
        for dim in dims.iter_mut().rev() {
            dim.index = rest % dim.size;
            rest /= dim.size;
            at.iter_mut().zip(dim.strides).for_each(|(at, stride)| *at += dim.index * stride);
        }
        Walk { dims, at }
    }

    /// Moves to the next index; false after the last, which leads back to the first.
    pub(crate) fn advance(&mut self) -> bool {
        advance(&mut self.dims, &mut self.at)
    }
}

/// Moves to the next run; false after the last.
#[inline(never)]
fn advance<const N: usize>(outer: &mut [Dim<N>], at: &mut [usize; N]) -> bool {
    for dim in outer.iter_mut().rev() {
        dim.index += 1;
        let done = dim.index == dim.size;
        for (at, stride) in at.iter_mut().zip(dim.strides) {
            if done {
                *at -= stride * (dim.size - 1);
            } else {
                *at += stride;
            }
        }
        if !done {
            return true;
        }
        dim.index = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts<const N: usize>(layouts: [&Layout; N]) -> Vec<[usize; N]> {
        let mut starts = vec![];
        Rows::new(layouts).for_each(|at| starts.push(at));
        starts
    }

    #[test]
    fn equal_layouts_are_one_run_whatever_their_order() {
        let grid = Layout::contiguous(&[2, 3, 4]).unwrap();
        let rows = Rows::new([&grid, &grid]);
        assert_eq!((rows.len, rows.steps), (24, [1, 1]));
        let turned = grid.transpose(0, 2);
        assert_eq!(Rows::new([&turned, &turned]).len, 24);
    }

    #[test]
    fn a_broadcast_row_starts_over_in_each_run() {
        let grid = Layout::contiguous(&[2, 3]).unwrap();
        let row = Layout::contiguous(&[3]).unwrap().broadcast_to(&[2, 3]).unwrap();
        assert_eq!(starts([&grid, &row]), [[0, 0], [3, 0]]);
        let column = Layout::contiguous(&[2, 1]).unwrap().broadcast_to(&[2, 3]).unwrap();
        assert_eq!(starts([&grid, &column]), [[0, 0], [3, 1]]);
        assert_eq!(Rows::new([&grid, &column]).steps, [1, 0]);
        let turned = Layout::contiguous(&[3, 2]).unwrap().transpose(0, 1);
        assert_eq!(Rows::new([&grid, &turned]).steps, [1, 2]);
    }

    #[test]
    fn a_walk_may_begin_anywhere() {
        let grid = Layout::contiguous(&[2, 3, 4]).unwrap();
        let turned = Layout::contiguous(&[4, 3, 2]).unwrap().transpose(0, 2);
        let rows = Rows::new([&grid, &turned]);
        let all = starts([&grid, &turned]);
        for (first, at) in all.iter().enumerate() {
            assert_eq!(Walk::new(&rows.outer, first, [0; 2]).at, *at);
        }
    }

    #[test]
    fn a_single_element_is_a_run_and_nothing_is_none() {
        let one = Layout::contiguous(&[]).unwrap();
        assert_eq!(starts([&one]), [[0]]);
        let none = Layout::contiguous(&[3, 0, 2]).unwrap();
        assert_eq!(starts([&none]).len(), 0);
    }
}
