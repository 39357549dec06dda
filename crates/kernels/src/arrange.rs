//! Elements moved to other places: turned around, cut to triangles, mirrored over edges.

use crate::elementwise::{Single, contiguous, floats, pack, write};
use crate::{DType, Element, Float, View, ViewMut};
use ndarray::Axis;

/// Moving needs only the size of elements, so it is compiled for four sizes rather than for all
/// types.
macro_rules! by_size {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::U8 => {
                type $T = u8;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            _ => {
                type $T = i64;
                $body
            }
        }
    };
}

/// `out = x` with dimensions `dims` in the opposite order.
pub fn flip(x: View<'_>, dims: &[usize], out: ViewMut<'_>) {
    assert_eq!(x.shape(), out.shape(), "flip: shapes differ");
    let (x, mut out) = (x.bits(), out.bits());
    by_size!(x.dtype(), T => {
        let mut turned = x.array::<T>();
        dims.iter().for_each(|&dim| turned.invert_axis(Axis(dim)));
        out.array::<T>().assign(&turned);
    });
}

/// `out = x` on and below a diagonal of the last two dimensions, zero above; the diagonal lies
/// `offset` above the main one.
pub fn lower(x: View<'_>, offset: isize, out: ViewMut<'_>) {
    triangle(x, out, |row, columns| 0..place(row, offset.saturating_add(1), columns));
}

/// `out = x` on and above a diagonal of the last two dimensions, zero below.
pub fn upper(x: View<'_>, offset: isize, out: ViewMut<'_>) {
    triangle(x, out, |row, columns| place(row, offset, columns)..columns);
}

/// Column `row + offset`, or the nearest there is.
fn place(row: usize, offset: isize, columns: usize) -> usize {
    usize::try_from(offset.saturating_add_unsigned(row)).unwrap_or(0).min(columns)
}

/// Moves the columns that `kept` names for each row; the others become zero.
fn triangle(x: View<'_>, out: ViewMut<'_>, kept: impl Fn(usize, usize) -> std::ops::Range<usize>) {
    assert_eq!(x.shape(), out.shape(), "triangle: shapes differ");
    let &[.., rows, columns] = x.shape() else { panic!("a triangle has two dimensions") };
    if x.layout().is_empty() {
        return;
    }
    let (x, out) = (x.bits(), out.bits());
    by_size!(x.dtype(), T => write::<T>(out, |out| {
        let lines = pack::<T>(x);
        for (at, (to, from)) in out.chunks_exact_mut(columns).zip(lines.chunks_exact(columns)).enumerate() {
            let kept = kept(at % rows, columns);
            to.fill(T::default());
            to[kept.clone()].copy_from_slice(&from[kept]);
        }
    }));
}

/// For each index of a padded dimension, where its element comes from.
pub type Sources = Vec<usize>;

/// `out[.., i, j] = x[.., sources[0][i], sources[1][j]]` for the last dimensions of `x`.
pub fn gather_edges(x: View<'_>, sources: &[Sources], out: ViewMut<'_>) {
    let (x, out) = (x.bits(), out.bits());
    by_size!(x.dtype(), T => {
        let (from, to) = (Lines::new(x.shape(), sources), out.shape().to_vec());
        let elements = pack::<T>(x);
        assert_eq!(from.count() * from.columns.len(), to.iter().product::<usize>(), "gather_edges: shapes differ");
        write::<T>(out, |out| {
            let lines = out.chunks_exact_mut(from.columns.len().max(1));
            for (to, start) in lines.zip(from.starts()) {
                for (to, &column) in to.iter_mut().zip(from.columns) {
                    *to = elements[start + column];
                }
            }
        });
    });
}

/// The other way: `out[.., sources[0][i], sources[1][j]] += grad[.., i, j]`, from zero, for floats.
pub fn add_edges(grad: View<'_>, sources: &[Sources], mut out: ViewMut<'_>) {
    floats!(out.dtype(), T => {
        let sum = sum_edges::<T>(&pack::<T>(grad), sources, out.shape());
        write::<T>(out.reborrow(), |out| out.copy_from_slice(&sum));
    }, single => {
        let wide = Single::load(grad);
        let sum = sum_edges::<f32>(&pack::<f32>(wide.view()), sources, out.shape());
        crate::elementwise::copy(View::of(&sum, &contiguous(out.shape())), out);
    });
}

fn sum_edges<T: Element + Float>(grad: &[T], sources: &[Sources], shape: &[usize]) -> Vec<T> {
    let to = Lines::new(shape, sources);
    let mut sum = vec![T::default(); shape.iter().product()];
    for (from, start) in grad.chunks_exact(to.columns.len().max(1)).zip(to.starts()) {
        for (from, &column) in from.iter().zip(to.columns) {
            sum[start + column] = sum[start + column] + *from;
        }
    }
    sum
}

/// Where the lines of a padded array lie in the one that is not, both row-major.
struct Lines<'a> {
    outer: usize,
    /// The size of an unpadded block of all padded dimensions.
    block: usize,
    rows: Vec<(&'a [usize], usize)>,
    columns: &'a [usize],
}

impl<'a> Lines<'a> {
    fn new(shape: &[usize], sources: &'a [Sources]) -> Lines<'a> {
        let (outer, inner) = shape.split_at(shape.len() - sources.len());
        let (columns, rows) = sources.split_last().expect("at least one dimension is padded");
        let stride = |at: usize| inner[at + 1..].iter().product();
        let rows = rows.iter().enumerate().map(|(at, sources)| (&sources[..], stride(at))).collect();
        Lines { outer: outer.iter().product(), block: inner.iter().product(), rows, columns }
    }

    fn count(&self) -> usize {
        self.outer * self.rows.iter().map(|(sources, _)| sources.len()).product::<usize>()
    }

    /// The first element of each line of the padded array, in order.
    fn starts(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count()).map(|line| {
            let (mut rest, mut start) = (line, 0);
            for (sources, stride) in self.rows.iter().rev() {
                start += sources[rest % sources.len()] * stride;
                rest /= sources.len();
            }
            start + rest * self.block
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    #[test]
    fn edges_are_gathered_and_added_back() {
        let x = Array::new(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let sources = [vec![1, 0, 1], vec![0, 0, 1, 2]];
        let mut out = Array::<f32>::zeros(&[3, 4]);
        gather_edges(x.view(), &sources, out.view_mut());
        assert_eq!(out.list(), [3.0, 3.0, 4.0, 5.0, 0.0, 0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0]);
        let mut back = Array::<f32>::zeros(&[2, 3]);
        add_edges(out.view(), &sources, back.view_mut());
        assert_eq!(back.list(), [0.0, 1.0, 2.0, 12.0, 8.0, 10.0]);
    }
}
