//! Matrices that are parts of larger arrays, and their product: the one place that calls the gemm crate.

use super::small;
use super::tiles::is_deep;
use crate::Float;
use gemm::Parallelism;

/// Blocks of the other operand from which on an operand in rows is packed: if it is deep, and if not.
const PACK_SOON: usize = 4;
const PACK_LATE: usize = 128;

/// A matrix to read: rows lie `down` elements apart, columns `across`.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a, T> {
    pub(crate) elements: &'a [T],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) down: usize,
    pub(crate) across: usize,
}

/// A matrix to write: rows lie `down` elements apart, the elements of a row side by side.
pub(crate) struct PartMut<'a, T> {
    pub(crate) elements: &'a mut [T],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) down: usize,
}

impl<'a, T> Part<'a, T> {
    /// Rows as columns.
    pub(crate) fn transposed(self) -> Part<'a, T> {
        let Part { elements, rows, columns, down, across } = self;
        Part { elements, rows: columns, columns: rows, down: across, across: down }
    }
}

/// `out = alpha * a @ b + beta * out`. With a `beta` of zero `out` is not read.
///
/// # Panics
/// If sizes do not fit together, a matrix is beyond its elements, or rows of `out` meet.
pub(crate) fn multiply<T: Float>(alpha: T, a: Part<'_, T>, b: Part<'_, T>, beta: T, out: PartMut<'_, T>) {
    let (rows, columns, depth) = (out.rows, out.columns, a.columns);
    assert!(
        a.rows == rows && b.rows == depth && b.columns == columns,
        "multiply: {}x{} @ {}x{} is not {rows}x{columns}",
        a.rows,
        a.columns,
        b.rows,
        b.columns
    );
    if rows == 0 || columns == 0 {
        return;
    }
    let reach = |rows: usize, columns: usize, down: usize, across: usize| {
        if rows == 0 || columns == 0 { 0 } else { (rows - 1) * down + (columns - 1) * across + 1 }
    };
    assert!(
        reach(rows, depth, a.down, a.across) <= a.elements.len()
            && reach(depth, columns, b.down, b.across) <= b.elements.len()
            && reach(rows, columns, out.down, 1) <= out.elements.len()
            && (out.down >= columns || rows == 1),
        "multiply: a matrix is beyond its elements"
    );
    let places = Places {
        a: (a.elements.as_ptr(), a.down, a.across),
        b: (b.elements.as_ptr(), b.down, b.across),
        out: (out.elements.as_mut_ptr(), out.down, 1),
    };
    // SAFETY: every index of the three shapes was just seen to lead to an element of theirs, those
    // of `out` to different ones.
    unsafe { product_at([rows, depth, columns], alpha, places, beta) };
}

/// Where three matrices lie: the first element, and the steps down and across.
#[derive(Clone, Copy)]
pub(super) struct Places<T> {
    pub(super) a: (*const T, usize, usize),
    pub(super) b: (*const T, usize, usize),
    pub(super) out: (*mut T, usize, usize),
}

/// `out = alpha * a @ b + beta * out` for `[m, k] @ [k, n]`.
///
/// # Safety
/// Every index of the shapes leads to an element that may be read, or of `out`, written; those of
/// `out` are different, and nothing else reads or writes them.
pub(super) unsafe fn product_at<T: Float>([m, k, n]: [usize; 3], alpha: T, at: Places<T>, beta: T) {
    let (a, a_down, a_across) = at.a;
    let (b, b_down, b_across) = at.b;
    let (out, down, across) = at.out;
    if small::suits([m, k, n]) {
        // SAFETY: the caller's promise.
        return unsafe { small::product([m, k, n], alpha, at, beta) };
    }
    // The setting is the process's, but changes no result.
    gemm::set_rhs_packing_threshold(if is_deep([m, k, n]) { PACK_SOON } else { PACK_LATE });
    // SAFETY: the caller's promise; without a depth nothing of `a` and `b` is read.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out,
            across as isize,
            down as isize,
            beta != T::ZERO,
            a,
            a_across as isize,
            a_down as isize,
            b,
            b_across as isize,
            b_down as isize,
            beta,
            alpha,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
