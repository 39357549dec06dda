//! Elements picked and changed by number.
//!
//! First numbers become [`Places`] in memory, and are known to be good; then elements are moved, so nothing
//! is written if a number is out of range. Changes happen in the order of the numbers: results are the
//! same every time.

mod bag;
mod pick;
mod places;
mod put;
mod search;
mod table;

pub use bag::{Bagging, Bags, bag, bag_backward, bag_weights_backward};
pub use pick::pick;
pub use places::{Places, block};
pub use put::{Combine, put};
pub use search::{contains, nonzero, search};
pub use table::{divide_rows_by_count, embedding, embedding_backward, renormalize};

use crate::{OutOfRange, View, ViewMut};

/// `out[.., i, ..] = x[.., index[i], ..]` along dimension `dim`; `index` is 1-D, of i64 or i32.
pub fn index_select(x: View<'_>, dim: usize, index: View<'_>, out: ViewMut<'_>) -> Result<(), OutOfRange> {
    pick(x, &Places::of_slices(x.layout(), dim, index, false)?, out);
    Ok(())
}

/// `out[.., index[i], ..] += source[.., i, ..]` along dimension `dim`.
pub fn index_add(out: ViewMut<'_>, dim: usize, index: View<'_>, source: View<'_>) -> Result<(), OutOfRange> {
    let places = Places::of_slices(out.layout(), dim, index, false)?;
    put(out, &places, source, Combine::Add, true);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bf16;
    use crate::testing::{Array, arrangements};
    use ndarray::Axis;

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
