//! Rows picked by number, and added up by number.
//!
//! Additions happen in the order of the indices, so results are the same every time.

use crate::elementwise::{Single, contiguous, floats, pack, to_vec, write};
use crate::{DType, Element, Layout, Number, OutOfRange, View, ViewMut, with_dtype};
use ndarray::{ArrayViewD, ArrayViewMutD, Axis, Zip};
use std::borrow::Cow;

/// `out[.., i, ..] = x[.., index[i], ..]` along dimension `dim`; `index` is 1-D, of i64 or i32.
pub fn index_select(
    x: View<'_>,
    dim: usize,
    index: View<'_>,
    mut out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    if x.shape().is_empty() {
        let (x_line, out_line) = (line(x.layout()), line(out.layout()));
        return index_select(x.with_layout(&x_line), dim, index, out.with_layout(&out_line));
    }
    let index = numbers(index, x.shape()[dim])?;
    check(out.shape(), x.shape(), dim, index.len());
    with_dtype!(x.dtype(), T => select_slices::<T>(x, dim, &index, out));
    Ok(())
}

/// `out[.., index[i], ..] += source[.., i, ..]` along dimension `dim`.
pub fn index_add(
    mut out: ViewMut<'_>,
    dim: usize,
    index: View<'_>,
    source: View<'_>,
) -> Result<(), OutOfRange> {
    if out.shape().is_empty() {
        let (out_line, line) = (line(out.layout()), line(source.layout()));
        return index_add(out.with_layout(&out_line), dim, index, source.with_layout(&line));
    }
    let index = numbers(index, out.shape()[dim])?;
    check(source.shape(), out.shape(), dim, index.len());
    if matches!(out.dtype(), DType::F16 | DType::BF16) {
        let mut wide = Single::load(out.as_view());
        add_slices::<f32>(&mut wide.view_mut(), dim, &index, Single::load(source).view(), None);
        wide.store(out);
        return Ok(());
    }
    with_dtype!(out.dtype(), [numbers] T => add_slices::<T>(&mut out, dim, &index, source, None),
        else panic!("index_add is for numbers, not bool"));
    Ok(())
}

/// `out[i.., :] = weight[indices[i..], :]`: indices of any shape, weight of two dimensions.
pub fn embedding(weight: View<'_>, indices: View<'_>, out: ViewMut<'_>) -> Result<(), OutOfRange> {
    let index = numbers(indices, weight.shape()[0])?;
    assert_eq!(
        (&out.shape()[..indices.shape().len()], out.shape().last()),
        (indices.shape(), weight.shape().last()),
        "embedding: out has the shape of the indices and one row's size"
    );
    let sizes = split(weight.shape(), 0);
    with_dtype!(weight.dtype(), T => {
        write(out, |out| copy_slices(&pack::<T>(weight), sizes, &index, out));
    });
    Ok(())
}

/// `out[indices[i..], :] = sum of grad[i.., :]`, with nothing for the padding index.
pub fn embedding_backward(
    grad: View<'_>,
    indices: View<'_>,
    padding: Option<usize>,
    mut out: ViewMut<'_>,
) -> Result<(), OutOfRange> {
    let index = numbers(indices, out.shape()[0])?;
    let rows = contiguous(&[index.len(), out.shape()[1]]);
    assert_eq!(grad.layout().len(), rows.len(), "embedding_backward: one row of grad per index");
    floats!(out.dtype(), T => {
        let grad = pack::<T>(grad);
        out.array::<T>().fill(0.0);
        add_slices::<T>(&mut out, 0, &index, View::of(&grad, &rows), padding);
    }, single => {
        let (grad, mut wide) = (to_vec::<f32>(grad), Single::zeros(out.shape()));
        add_slices::<f32>(&mut wide.view_mut(), 0, &index, View::of(&grad, &rows), padding);
        wide.store(out);
    });
    Ok(())
}

/// A number by itself seen as a line of one.
fn line(layout: &Layout) -> Layout {
    layout.view(&[1]).unwrap_or_else(|| panic!("{layout:?} is not a single element"))
}

/// A shape is as another but along `dim`, where it has one slice per index.
fn check(shape: &[usize], other: &[usize], dim: usize, indices: usize) {
    let fits = shape.len() == other.len()
        && (0..shape.len()).all(|at| shape[at] == if at == dim { indices } else { other[at] });
    assert!(fits, "{indices} slices along {dim} of {other:?} are not {shape:?}");
}

/// The indices, each below `size`. Nothing is written before all are known to be.
fn numbers(index: View<'_>, size: usize) -> Result<Cow<'_, [i64]>, OutOfRange> {
    let index = match index.dtype() {
        DType::I64 => pack::<i64>(index),
        DType::I32 => Cow::Owned(to_vec::<i64>(index)),
        other => panic!("indices are i64 or i32, not {other}"),
    };
    match index.iter().find(|&&index| !usize::try_from(index).is_ok_and(|index| index < size)) {
        Some(&index) => Err(OutOfRange { index, size }),
        None => Ok(index),
    }
}

fn select_slices<T: Element>(x: View<'_>, dim: usize, index: &[i64], mut out: ViewMut<'_>) {
    if let (Some(from), Some(to)) = (x.slice::<T>(), out.slice::<T>()) {
        return copy_slices(from, split(x.shape(), dim), index, to);
    }
    let (from, mut to) = (x.array::<T>(), out.array::<T>());
    for (mut to, &index) in to.axis_iter_mut(Axis(dim)).zip(index) {
        to.assign(&from.index_axis(Axis(dim), index as usize));
    }
}

/// Sizes before, at and after a dimension.
fn split(shape: &[usize], dim: usize) -> [usize; 3] {
    [shape[..dim].iter().product(), shape[dim], shape[dim + 1..].iter().product()]
}

fn copy_slices<T: Element>(from: &[T], [outer, size, inner]: [usize; 3], index: &[i64], to: &mut [T]) {
    if to.is_empty() {
        return;
    }
    let mut targets = to.chunks_exact_mut(inner);
    for outer in 0..outer {
        for (&index, target) in index.iter().zip(&mut targets) {
            target.copy_from_slice(&from[(outer * size + index as usize) * inner..][..inner]);
        }
    }
}

fn add_slices<T: Number>(
    out: &mut ViewMut<'_>,
    dim: usize,
    index: &[i64],
    source: View<'_>,
    padding: Option<usize>,
) {
    let (mut to, from) = (out.array::<T>(), source.array::<T>());
    for (from, &index) in from.axis_iter(Axis(dim)).zip(index) {
        if padding != Some(index as usize) {
            add_slice(to.index_axis_mut(Axis(dim), index as usize), from);
        }
    }
}

fn add_slice<T: Number>(mut to: ArrayViewMutD<'_, T>, from: ArrayViewD<'_, T>) {
    match (to.as_slice_mut(), from.as_slice()) {
        (Some(to), Some(from)) => to.iter_mut().zip(from).for_each(|(to, &from)| *to = to.plus(from)),
        _ => Zip::from(to).and(from).for_each(|to, &from| *to = to.plus(from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bf16;
    use crate::testing::{Array, arrangements};

    #[test]
    fn index_select_picks_along_any_dimension_of_any_arrangement() {
        let index = Array::new(&[4], &[2i64, 0, 2, 1]);
        for dim in 0..3 {
            for x in arrangements::<f32>(&[3, 3, 3], 1) {
                let mut shape = [3, 3, 3];
                shape[dim] = 4;
                for mut out in arrangements::<f32>(&shape, 2) {
                    index_select(x.view(), dim, index.view(), out.view_mut()).unwrap();
                    let expected = x.view().array::<f32>().select(Axis(dim), &[2, 0, 2, 1]);
                    assert_eq!(out.view().array::<f32>(), expected);
                }
            }
        }
    }

    #[test]
    fn an_index_out_of_range_is_named_and_nothing_is_written() {
        let x = Array::new(&[2], &[1i32, 2]);
        for bad in [2i32, -1] {
            let index = Array::new(&[2], &[0i32, bad]);
            let mut out = Array::new(&[2], &[7i32, 7]);
            let result = index_select(x.view(), 0, index.view(), out.view_mut());
            assert_eq!(result, Err(OutOfRange { index: bad.into(), size: 2 }));
            assert_eq!(out.elements, [7, 7]);
        }
        let none = Array::<i64>::zeros(&[0]);
        index_select(x.view(), 0, none.view(), Array::<i32>::zeros(&[0]).view_mut()).unwrap();
    }

    #[test]
    fn a_number_by_itself_is_a_line_of_one() {
        let (x, index) = (Array::new(&[], &[5i64]), Array::new(&[1], &[0i64]));
        let mut out = Array::<i64>::zeros(&[]);
        index_select(x.view(), 0, index.view(), out.view_mut()).unwrap();
        index_add(out.view_mut(), 0, index.view(), x.view()).unwrap();
        assert_eq!(out.elements, [10]);
    }

    #[test]
    fn index_add_adds_repeated_indices_up() {
        let index = Array::new(&[3], &[1i64, 1, 0]);
        let source = Array::new(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        let mut out = Array::new(&[2, 2], &[10, 20, 30, 40]);
        index_add(out.view_mut(), 1, index.view(), source.view()).unwrap();
        assert_eq!(out.elements, [13, 23, 36, 49]);
        let source = Array::new(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(bf16::from_f32));
        let mut out = Array::<bf16>::zeros(&[2, 2]).with(|layout| layout.transpose(0, 1));
        index_add(out.view_mut(), 0, index.view(), source.view()).unwrap();
        assert_eq!(out.wide(), [5.0, 6.0, 4.0, 6.0]);
    }

    #[test]
    fn embedding_takes_a_row_per_index_and_its_gradient_gives_it_back() {
        let weight = Array::new(&[3, 2], &[0.0f32, 1.0, 10.0, 11.0, 20.0, 21.0]);
        let indices = Array::new(&[2, 2], &[2i64, 0, 2, 1]);
        let mut out = Array::<f32>::zeros(&[2, 2, 2]);
        embedding(weight.view(), indices.view(), out.view_mut()).unwrap();
        assert_eq!(out.elements, [20.0, 21.0, 0.0, 1.0, 20.0, 21.0, 10.0, 11.0]);
        let mut back = Array::new(&[3, 2], &[9.0f32; 6]);
        embedding_backward(out.view(), indices.view(), Some(1), back.view_mut()).unwrap();
        assert_eq!(back.elements, [0.0, 1.0, 0.0, 0.0, 40.0, 42.0]);
        let turned = Array::new(&[2, 3], &[0.0f32, 10.0, 20.0, 1.0, 11.0, 21.0]).with(|l| l.transpose(0, 1));
        let mut again = Array::<f32>::zeros(&[2, 2, 2]);
        embedding(turned.view(), indices.view(), again.view_mut()).unwrap();
        assert_eq!(again.elements, out.elements);
    }
}
