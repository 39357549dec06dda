//! Elements by their rank: sorting, choosing, counting.
//!
//! Every function gives indices along a dimension; [`pick`] fetches the elements they name.
//! Elements of all types are ranked by integer keys of the same order (see `Lines`), so that
//! each algorithm is compiled once. NaN ranks above everything.

mod keys;
mod select;
mod sorting;

pub use select::{cummax, cummin, kth, median, mode, nan_median};
pub use sorting::{Sort, Topk, Unique, argsort, topk, unique, unique_neighbours};

pub(crate) use keys::Lines;

use crate::elementwise::{pack, write};
use crate::{DType, Element, View, ViewMut};

/// The elements of `x` along `dim` that `indices`, of i64, name.
pub fn pick(x: View<'_>, dim: usize, indices: View<'_>, out: ViewMut<'_>) {
    let (x, out) = (x.bits(), out.bits());
    match x.dtype() {
        DType::U8 => pick_as::<u8>(x, dim, indices, out),
        DType::I16 => pick_as::<i16>(x, dim, indices, out),
        DType::I32 => pick_as::<i32>(x, dim, indices, out),
        _ => pick_as::<i64>(x, dim, indices, out),
    }
}

fn pick_as<T: Element>(x: View<'_>, dim: usize, indices: View<'_>, out: ViewMut<'_>) {
    assert_eq!(indices.shape(), out.shape(), "pick: as many elements as indices");
    let size = x.shape().get(dim).copied().unwrap_or(1);
    let taken = out.shape().get(dim).copied().unwrap_or(1);
    let inner: usize = x.shape().iter().skip(dim + 1).product();
    let (x, indices) = (pack::<T>(x), pack::<i64>(indices));
    write(out, |out: &mut [T]| {
        for (at, (out, &index)) in out.iter_mut().zip(indices.iter()).enumerate() {
            let (outer, column) = (at / (taken * inner), at % inner);
            *out = x[(outer * size + index as usize) * inner + column];
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    fn sorted(x: &Array<f32>, descending: bool) -> (Vec<f32>, Vec<i64>) {
        let mut indices = Array::<i64>::zeros(x.layout.shape());
        let mut values = Array::<f32>::zeros(x.layout.shape());
        argsort(Sort { descending, stable: true }, x.view(), 0, indices.view_mut());
        pick(x.view(), 0, indices.view(), values.view_mut());
        (values.elements, indices.elements)
    }

    #[test]
    fn sorting_keeps_equals_in_order_and_puts_nan_above() {
        let x = Array::new(&[6], &[2.0, f32::NAN, -0.0, 2.0, 0.0, f32::NEG_INFINITY]);
        let (values, indices) = sorted(&x, false);
        assert_eq!(indices, [5, 2, 4, 0, 3, 1]);
        assert!(values[5].is_nan());
        assert_eq!(sorted(&x, true).1, [1, 0, 3, 2, 4, 5]);
    }

    #[test]
    fn the_largest_are_those_that_sorting_finds() {
        for size in [1, 2, 3, 10, 40, 300, 5000] {
            let x = Array::<f32>::random(&[size], 7);
            let (values, _) = sorted(&x, true);
            for count in [1, size / 3, size] {
                let mut indices = Array::<i64>::zeros(&[count]);
                topk(Topk { largest: true, sorted: true }, x.view(), 0, indices.view_mut());
                // Which of equal elements come first is left open.
                let picked: Vec<f32> = indices.elements.iter().map(|&i| x.elements[i as usize]).collect();
                assert_eq!(picked, values[..count]);
            }
        }
    }
}
