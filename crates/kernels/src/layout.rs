//! Shapes and strides: how elements lie in a buffer.

use smallvec::SmallVec;
use std::fmt;

/// Sizes or strides, one per dimension; up to four need no allocation.
pub type Dims = SmallVec<[usize; 4]>;

/// Which elements of a buffer make up an n-dimensional array, and in what order.
///
/// Strides and offset count elements. Invariant: the number of elements fits in an `isize`,
/// the furthest element in a `usize`.
#[derive(PartialEq, Eq)]
pub struct Layout {
    shape: Dims,
    strides: Dims,
    offset: usize,
    /// What every look at the elements asks for, worked out once.
    len: usize,
    end: usize,
    contiguous: bool,
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Layout {
        Layout { shape: copy(&self.shape), strides: copy(&self.strides), ..*self }
    }
}

/// A copy without a call, where there are few: cloning would go number by number.
#[inline]
fn copy(dims: &Dims) -> Dims {
    match **dims {
        [] => Dims::new(),
        [a] => Dims::from_buf_and_len([a, 0, 0, 0], 1),
        [a, b] => Dims::from_buf_and_len([a, b, 0, 0], 2),
        [a, b, c] => Dims::from_buf_and_len([a, b, c, 0], 3),
        [a, b, c, d] => Dims::from_buf([a, b, c, d]),
        _ => Dims::from_slice(dims),
    }
}

impl Layout {
    /// `None` if the furthest element is beyond counting.
    fn new(shape: Dims, strides: Dims, offset: usize) -> Option<Layout> {
        let len = count(&shape)?;
        let end = if len == 0 { 0 } else { end(&shape, &strides, offset)? };
        let contiguous = len == 0 || is_row_major(&shape, &strides);
        Some(Layout { shape, strides, offset, len, end, contiguous })
    }

    /// Row-major elements from the start of a buffer; `None` if there are too many to count.
    #[inline]
    pub fn contiguous(shape: &[usize]) -> Option<Layout> {
        if let &[rows, columns] = shape {
            return Layout::matrix(rows, columns);
        }
        let mut strides = Dims::from_slice(shape);
        let mut step = 1usize;
        for stride in strides.iter_mut().rev() {
            let size = std::mem::replace(stride, step);
            step = step.checked_mul(size.max(1))?;
        }
        isize::try_from(step).ok()?;
        let len = if shape.contains(&0) { 0 } else { step };
        Some(Layout { shape: Dims::from_slice(shape), strides, offset: 0, len, end: len, contiguous: true })
    }

    /// A row-major matrix: what small tensors mostly are, without loops.
    #[inline]
    fn matrix(rows: usize, columns: usize) -> Option<Layout> {
        let step = columns.max(1);
        isize::try_from(rows.max(1).checked_mul(step)?).ok()?;
        let len = rows * columns;
        let (shape, strides) =
            (Dims::from_buf_and_len([rows, columns, 0, 0], 2), Dims::from_buf_and_len([step, 1, 0, 0], 2));
        Some(Layout { shape, strides, offset: 0, len, end: len, contiguous: true })
    }

    /// Whether both shapes are the same. Shapes are short: a call to compare them costs more.
    #[inline]
    pub fn has_shape(&self, shape: &[usize]) -> bool {
        same(&self.shape, shape)
    }

    /// Any elements at all; `None` if `shape` and `strides` differ in length or the
    /// furthest element is beyond counting.
    pub fn strided(shape: &[usize], strides: &[usize], offset: usize) -> Option<Layout> {
        if shape.len() != strides.len() {
            return None;
        }
        Layout::new(Dims::from_slice(shape), Dims::from_slice(strides), offset)
    }

    /// Size of each dimension.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements from one index to the next, per dimension.
    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Elements before the first.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many dimensions there are.
    #[inline]
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// One more than the furthest element: what a buffer must hold.
    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }

    /// Whether elements lie one after the other in row-major order.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Whether all indices lead to one element, as in a number expanded to a shape.
    #[inline]
    pub fn is_one_repeated(&self) -> bool {
        self.end == self.offset + 1
    }

    /// Whether two indices may lead to the same element, as in an expanded view.
    #[inline]
    pub fn may_overlap(&self) -> bool {
        !self.contiguous && self.strides_meet()
    }

    fn strides_meet(&self) -> bool {
        let mut dims: SmallVec<[(usize, usize); 4]> = self
            .strides
            .iter()
            .copied()
            .zip(self.shape.iter().copied())
            .filter(|&(_, size)| size > 1)
            .collect();
        dims.sort_unstable();
        let mut reach = 0;
        dims.iter().any(|&(stride, size)| {
            let overlaps = stride <= reach;
            reach += stride * (size - 1);
            overlaps
        })
    }

    /// Whether each element between the first and the furthest is there, once.
    pub fn is_dense(&self) -> bool {
        self.end - self.offset.min(self.end) == self.len && !self.may_overlap()
    }

    /// Whether two layouts of one buffer share elements without being the same. Only layouts
    /// without gaps are told apart: others may lie between each other.
    pub fn crosses(&self, other: &Layout) -> bool {
        let apart = self.end <= other.offset || other.end <= self.offset;
        if self == other {
            return false;
        }
        if apart || self.is_empty() || other.is_empty() || !self.is_dense() || !other.is_dense() {
            return false;
        }
        (self.offset, self.end) != (other.offset, other.end) || self.steps().ne(other.steps())
    }

    /// The strides that matter: those of dimensions with more than one index.
    fn steps(&self) -> impl Iterator<Item = usize> {
        self.strides.iter().zip(&self.shape).filter(|&(_, &size)| size > 1).map(|(&stride, _)| stride)
    }

    /// The same elements repeated to fill `shape`, by strides of zero; `None` if a
    /// dimension is neither equal nor 1.
    #[inline]
    pub fn broadcast_to(&self, shape: &[usize]) -> Option<Layout> {
        let added = shape.len().checked_sub(self.rank())?;
        let mut strides = Dims::from_elem(0, shape.len());
        for (i, (&size, &stride)) in self.shape.iter().zip(&self.strides).enumerate() {
            match shape[added + i] {
                wanted if wanted == size => strides[added + i] = stride,
                _ if size == 1 => {}
                _ => return None,
            }
        }
        // New dimensions of size 1 go on as those after them would, so that what was contiguous stays so.
        for dim in (0..added).rev().filter(|&dim| shape[dim] == 1 && dim + 1 < shape.len()) {
            strides[dim] = shape[dim + 1].saturating_mul(strides[dim + 1]);
        }
        Layout::new(Dims::from_slice(shape), strides, self.offset)
    }

    /// Dimensions `a` and `b` exchanged.
    pub fn transpose(&self, a: usize, b: usize) -> Layout {
        let (mut shape, mut strides) = (copy(&self.shape), copy(&self.strides));
        shape.swap(a, b);
        strides.swap(a, b);
        Layout::new(shape, strides, self.offset).expect("the same elements can be counted")
    }

    /// The dimensions in another order: dimension `i` of the result is dimension `order[i]`.
    ///
    /// # Panics
    /// If `order` does not name each dimension once.
    pub fn permute(&self, order: &[usize]) -> Layout {
        let mut seen = Dims::from_elem(0, self.rank());
        order.iter().for_each(|&dim| seen[dim] += 1);
        assert!(seen.iter().all(|&times| times == 1), "permute: {order:?} of {self:?}");
        let pick = |of: &[usize]| order.iter().map(|&dim| of[dim]).collect();
        Layout::new(pick(&self.shape), pick(&self.strides), self.offset)
            .expect("the same elements can be counted")
    }

    /// `size` indices of dimension `dim` from `start` on.
    pub fn narrow(&self, dim: usize, start: usize, size: usize) -> Layout {
        let fits = start.checked_add(size).is_some_and(|end| end <= self.shape[dim]);
        assert!(fits, "narrow: {start} + {size} is beyond {}", self.shape[dim]);
        let mut shape = copy(&self.shape);
        shape[dim] = size;
        Layout::new(shape, copy(&self.strides), self.moved(dim, start))
            .expect("some of the elements can be counted")
    }

    /// Every `step`th index of dimension `dim`, the first included; `None` if the step is
    /// beyond counting.
    pub fn step(&self, dim: usize, step: usize) -> Option<Layout> {
        let (mut shape, mut strides) = (copy(&self.shape), copy(&self.strides));
        shape[dim] = self.shape[dim].div_ceil(step);
        strides[dim] = strides[dim].checked_mul(step)?;
        Layout::new(shape, strides, self.offset)
    }

    /// What lies at `index` of dimension `dim`, without that dimension.
    pub fn select(&self, dim: usize, index: usize) -> Layout {
        assert!(index < self.shape[dim], "select: {index} is beyond {}", self.shape[dim]);
        let (mut shape, mut strides) = (copy(&self.shape), copy(&self.strides));
        shape.remove(dim);
        strides.remove(dim);
        Layout::new(shape, strides, self.moved(dim, index)).expect("some of the elements can be counted")
    }

    /// A new dimension of size 1 before dimension `dim`.
    pub fn unsqueeze(&self, dim: usize) -> Layout {
        let (mut shape, mut strides) = (copy(&self.shape), copy(&self.strides));
        let stride = shape.get(dim).map_or(1, |&size| size.saturating_mul(strides[dim]));
        shape.insert(dim, 1);
        strides.insert(dim, stride);
        Layout::new(shape, strides, self.offset).expect("the same elements can be counted")
    }

    /// Without those of the dimensions `dims` whose size is 1.
    pub fn squeeze(&self, dims: &[usize]) -> Layout {
        let stays = |dim: &usize| self.shape[*dim] != 1 || !dims.contains(dim);
        let pick = |of: &[usize]| (0..self.rank()).filter(stays).map(|dim| of[dim]).collect();
        Layout::new(pick(&self.shape), pick(&self.strides), self.offset)
            .expect("the same elements can be counted")
    }

    /// The diagonal of dimensions `a` and `b`, as the last dimension; it starts `offset` above
    /// the main one, or below if negative.
    pub fn diagonal(&self, a: usize, b: usize, offset: isize) -> Layout {
        let (down, right) = (offset.min(0).unsigned_abs(), offset.max(0).unsigned_abs());
        let size = self.shape[a].saturating_sub(down).min(self.shape[b].saturating_sub(right));
        let rest = |of: &[usize], last: usize| {
            let others = (0..self.rank()).filter(|&dim| dim != a && dim != b).map(|dim| of[dim]);
            others.chain([last]).collect()
        };
        let shape = rest(&self.shape, size);
        let strides = rest(&self.strides, self.strides[a].saturating_add(self.strides[b]));
        let none = size == 0 || self.len == 0;
        let start = if none { self.offset } else { self.moved(a, down) + right * self.strides[b] };
        Layout::new(shape, strides, start).expect("some of the elements can be counted")
    }

    /// Windows of `size` along dimension `dim`, one every `step`; what a window holds becomes
    /// the last dimension. `None` if the elements are then too many to count.
    ///
    /// # Panics
    /// If a window is larger than the dimension, or the step is 0.
    pub fn windows(&self, dim: usize, size: usize, step: usize) -> Option<Layout> {
        let (mut shape, mut strides) = (copy(&self.shape), copy(&self.strides));
        shape[dim] = (shape[dim] - size) / step + 1;
        shape.push(size);
        strides.push(strides[dim]);
        strides[dim] = strides[dim].checked_mul(step)?;
        Layout::new(shape, strides, self.offset)
    }

    /// The elements of `shape` one after the other in the order of `dims`, the first one outermost;
    /// `None` if there are too many to count.
    pub fn ordered(shape: &[usize], dims: &[usize]) -> Option<Layout> {
        let mut strides = Dims::from_elem(1, shape.len());
        let mut step = 1usize;
        for &dim in dims.iter().rev() {
            strides[dim] = step;
            step = step.checked_mul(shape[dim].max(1))?;
        }
        Layout::new(Dims::from_slice(shape), strides, 0)
    }

    /// The same order of elements without gaps, from the start of a buffer; row-major where
    /// elements overlap or lie apart.
    pub fn dense(&self) -> Option<Layout> {
        if self.contiguous || !self.is_dense() {
            return Layout::contiguous(&self.shape);
        }
        Layout::strided(&self.shape, &self.strides, 0)
    }

    /// Where index `at` of dimension `dim` starts. Nothing lies there if there are no elements.
    fn moved(&self, dim: usize, at: usize) -> usize {
        if self.len == 0 { self.offset } else { self.offset + at * self.strides[dim] }
    }

    /// The same elements in the same order under another shape, without moving any;
    /// `None` if strides cannot express it or the number of elements differs.
    pub fn view(&self, shape: &[usize]) -> Option<Layout> {
        let wanted = Layout::contiguous(shape)?;
        if wanted.len != self.len {
            return None;
        }
        if self.len == 0 {
            return Layout::new(wanted.shape, wanted.strides, self.offset);
        }
        let mut strides = Dims::from_elem(1, shape.len());
        let mut blocks = self.blocks().into_iter().rev();
        let (mut left, mut stride) = blocks.next().unwrap_or((1, 1));
        for (at, &size) in shape.iter().enumerate().rev() {
            if left == 1 && size != 1 {
                (left, stride) = blocks.next()?;
            }
            if left % size != 0 {
                return None;
            }
            strides[at] = stride;
            left /= size;
            stride *= size;
        }
        Layout::new(wanted.shape, strides, self.offset)
    }

    /// Runs of dimensions that behave like one: their sizes multiplied, and the stride
    /// of the innermost.
    fn blocks(&self) -> SmallVec<[(usize, usize); 4]> {
        let mut blocks: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for (&size, &stride) in self.shape.iter().zip(&self.strides).filter(|&(&size, _)| size != 1) {
            match blocks.last_mut() {
                Some((run, step)) if *step == size * stride => (*run, *step) = (*run * size, stride),
                _ => blocks.push((size, stride)),
            }
        }
        blocks
    }
}

#[inline]
fn same(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// How many elements a shape has; `None` if too many to count, also if a size of 0 hides it.
fn count(shape: &[usize]) -> Option<usize> {
    let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size.max(1)))?;
    isize::try_from(count).ok()?;
    Some(if shape.contains(&0) { 0 } else { count })
}

/// One more than the furthest element of a shape without zeros; `None` if beyond counting.
fn end(shape: &[usize], strides: &[usize], offset: usize) -> Option<usize> {
    let mut steps = shape.iter().zip(strides);
    let furthest =
        steps.try_fold(offset, |at, (size, stride)| at.checked_add((size - 1).checked_mul(*stride)?));
    furthest?.checked_add(1)
}

fn is_row_major(shape: &[usize], strides: &[usize]) -> bool {
    let mut step = 1;
    shape.iter().zip(strides).rev().filter(|&(&size, _)| size != 1).all(|(&size, &stride)| {
        let follows = stride == step;
        step *= size;
        follows
    })
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} strides {:?} offset {}", &self.shape[..], &self.strides[..], self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_layouts_are_row_major_and_counted() {
        let layout = Layout::contiguous(&[2, 3, 4]).unwrap();
        assert_eq!(layout.strides(), [12, 4, 1]);
        assert_eq!((layout.len(), layout.end()), (24, 24));
        assert!(layout.is_contiguous() && !layout.may_overlap());
        assert!(Layout::contiguous(&[usize::MAX, 2]).is_none());
        assert_eq!(Layout::contiguous(&[0, 5]).unwrap().end(), 0);
        assert_eq!(Layout::contiguous(&[]).unwrap().len(), 1);
    }

    #[test]
    fn broadcasting_repeats_by_strides_of_zero() {
        let row = Layout::contiguous(&[3]).unwrap();
        let grid = row.broadcast_to(&[2, 3]).unwrap();
        assert_eq!(grid.strides(), [0, 1]);
        assert!(grid.may_overlap());
        assert!(row.broadcast_to(&[4]).is_none());
        assert!(row.broadcast_to(&[]).is_none());
    }

    #[test]
    fn a_view_exists_only_where_strides_can_express_it() {
        let layout = Layout::contiguous(&[2, 3, 4]).unwrap();
        assert_eq!(layout.view(&[6, 4]).unwrap().strides(), [4, 1]);
        let swapped = layout.transpose(0, 1);
        assert!(swapped.view(&[6, 4]).is_none());
        assert_eq!(swapped.view(&[3, 2, 2, 2]).unwrap().strides(), [4, 12, 2, 1]);
        assert!(layout.view(&[5]).is_none());
        assert_eq!(layout.view(&[1, 24, 1]).unwrap().shape(), [1, 24, 1]);
        assert_eq!(Layout::contiguous(&[]).unwrap().view(&[1, 1]).unwrap().len(), 1);
        assert_eq!(Layout::contiguous(&[0, 3]).unwrap().view(&[3, 0]).unwrap().len(), 0);
    }

    #[test]
    fn parts_of_a_layout_start_where_their_first_element_lies() {
        let layout = Layout::contiguous(&[2, 3, 4]).unwrap();
        let part = layout.narrow(1, 1, 2);
        assert_eq!((part.shape(), part.offset()), (&[2, 2, 4][..], 4));
        let part = layout.narrow(2, 1, 3).step(2, 2).unwrap();
        assert_eq!((part.shape(), part.strides(), part.offset()), (&[2, 3, 2][..], &[12, 4, 2][..], 1));
        let part = layout.select(0, 1);
        assert_eq!((part.shape(), part.strides(), part.offset()), (&[3, 4][..], &[4, 1][..], 12));
        let part = layout.diagonal(1, 2, 2);
        assert_eq!((part.shape(), part.strides(), part.offset()), (&[2, 2][..], &[12, 5][..], 2));
        assert_eq!(layout.diagonal(1, 2, -3).shape(), [2, 0]);
        let windows = layout.windows(2, 3, 1).unwrap();
        assert_eq!((windows.shape(), windows.strides()), (&[2, 3, 2, 3][..], &[12, 4, 1, 1][..]));
    }

    #[test]
    fn a_dense_layout_keeps_the_order_of_its_elements() {
        let turned = Layout::contiguous(&[2, 3, 4]).unwrap().permute(&[0, 2, 1]);
        assert_eq!(turned.dense().unwrap(), turned);
        assert_eq!(turned.narrow(0, 1, 1).dense().unwrap().strides(), [12, 1, 4]);
        assert_eq!(turned.narrow(2, 0, 2).dense().unwrap().strides(), [8, 2, 1]);
        assert_eq!(Layout::ordered(&[2, 3, 4, 5], &[0, 2, 3, 1]).unwrap().strides(), [60, 1, 15, 3]);
    }

    #[test]
    fn layouts_beyond_counting_are_refused() {
        assert!(Layout::strided(&[2, 2], &[usize::MAX, 1], 0).is_none());
        assert!(Layout::strided(&[1], &[1], usize::MAX).is_none());
        assert!(Layout::strided(&[2], &[1, 1], 0).is_none());
    }

    #[test]
    fn layouts_cross_where_they_share_elements_in_another_order_or_in_part() {
        let whole = Layout::contiguous(&[3, 3]).unwrap();
        assert!(whole.crosses(&whole.transpose(0, 1)));
        assert!(whole.crosses(&whole.narrow(0, 0, 2)));
        assert!(!whole.crosses(&whole.clone()));
        assert!(!whole.narrow(0, 0, 1).crosses(&whole.narrow(0, 1, 2)));
        assert!(!whole.narrow(1, 0, 1).crosses(&whole.narrow(1, 1, 1)));
    }

    #[test]
    fn overlap_is_seen_in_strides_that_cross() {
        assert!(Layout::strided(&[3, 3], &[1, 1], 0).unwrap().may_overlap());
        assert!(!Layout::strided(&[3, 3], &[3, 1], 0).unwrap().may_overlap());
        assert!(!Layout::strided(&[3, 3], &[1, 3], 0).unwrap().may_overlap());
    }
}
