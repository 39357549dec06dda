//! Numbers found: where elements are not zero, where they belong in order, whether they are known.

use crate::elementwise::{pack, to_vec, write};
use crate::{DType, View, ViewMut, with_dtype};

/// The coordinates of all elements that are not zero, one after the other in row-major order.
pub fn nonzero(x: View<'_>) -> Vec<i64> {
    let holds: Vec<bool> = match x.dtype() {
        DType::F16 | DType::BF16 => to_vec::<f32>(x).iter().map(|&x| x != 0.0).collect(),
        dtype => with_dtype!(dtype, T => pack::<T>(x).iter().map(|x| *x != T::default()).collect()),
    };
    let mut coordinates = Vec::new();
    for (number, _) in holds.iter().enumerate().filter(|(_, holds)| **holds) {
        let (at, mut rest) = (coordinates.len(), number);
        coordinates.resize(at + x.shape().len(), 0);
        for (coordinate, &size) in coordinates[at..].iter_mut().zip(x.shape()).rev() {
            *coordinate = (rest % size) as i64;
            rest /= size;
        }
    }
    coordinates
}

/// How many elements of an ordered row stay in front of each value: those less than it, or with `right`
/// those not greater.
///
/// Rows are the last dimension of `sorted`; `values` has as many rows, or there is a single row for all.
/// A `sorter`, of the shape of `sorted`, says in which order the elements of a row are to be read; its
/// numbers must be known to be good. `out` is of i64.
pub fn search(sorted: View<'_>, values: View<'_>, right: bool, sorter: Option<View<'_>>, out: ViewMut<'_>) {
    let width = sorted.shape().last().copied().expect("the sorted elements have a dimension");
    let per_row = match sorted.shape().len() {
        1 => values.layout().len(),
        _ => values.shape().last().copied().unwrap_or(1),
    };
    let sorter = sorter.map(|sorter| pack::<i64>(sorter));
    let order = sorter.as_deref();
    write::<i64>(out, |out| match sorted.dtype().is_float() {
        true => {
            let (sorted, values) = (to_vec::<f64>(sorted), to_vec::<f64>(values));
            Rows { sorted: &sorted, width, order }.search(&values, per_row, right, out);
        }
        false => {
            let (sorted, values) = (to_vec::<i64>(sorted), to_vec::<i64>(values));
            Rows { sorted: &sorted, width, order }.search(&values, per_row, right, out);
        }
    });
}

struct Rows<'a, T> {
    sorted: &'a [T],
    width: usize,
    order: Option<&'a [i64]>,
}

impl<T: PartialOrd + Copy> Rows<'_, T> {
    fn search(&self, values: &[T], per_row: usize, right: bool, out: &mut [i64]) {
        for (number, (&value, out)) in values.iter().zip(out).enumerate() {
            let start = number / per_row * self.width;
            *out = self.before(start, value, right) as i64;
        }
    }

    /// How many elements of the row that begins at `start` come before `value`. NaN is after all numbers.
    fn before(&self, start: usize, value: T, right: bool) -> usize {
        let (mut low, mut high) = (0, self.width);
        while low < high {
            let middle = low + (high - low) / 2;
            let at = self.order.map_or(middle, |order| order[start + middle] as usize);
            let element = self.sorted[start + at];
            let reached = if right { element > value } else { element >= value };
            if reached { high = middle } else { low = middle + 1 }
        }
        low
    }
}

/// `out`, of bool, says which elements of `x` are among `known`; both are of one type. NaN never is.
pub fn contains(x: View<'_>, known: View<'_>, invert: bool, out: ViewMut<'_>) {
    write::<bool>(out, |out| match x.dtype().is_float() {
        true => contains_in(&to_vec::<f64>(x), to_vec::<f64>(known), invert, out),
        false => contains_in(&to_vec::<i64>(x), to_vec::<i64>(known), invert, out),
    });
}

fn contains_in<T: PartialOrd + Copy>(x: &[T], mut known: Vec<T>, invert: bool, out: &mut [bool]) {
    #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
    known.retain(|x| x == x);
    known.sort_unstable_by(|a, b| a.partial_cmp(b).expect("NaN was taken out"));
    for (out, x) in out.iter_mut().zip(x) {
        let at = known.partition_point(|known| known < x);
        *out = known.get(at).is_some_and(|known| known == x) != invert;
    }
}
