//! How many elements lie in each of a row of ranges.

use crate::elementwise::{contiguous, copy, floats, to_vec};
use crate::{DType, Float, View, ViewMut};

/// Counts the elements from `low` to `high`, both included, in as many equal ranges as `out` has
/// elements. Floats only.
pub fn histogram(x: View<'_>, low: f64, high: f64, out: ViewMut<'_>) {
    let counts = floats!(x.dtype(), T => count::<T>(x, low, high, out.layout().len()), single => {
        count::<f32>(x, low, high, out.layout().len())
    });
    copy(View::of(&counts, &contiguous(out.shape())), out);
}

fn count<T: Float>(x: View<'_>, low: f64, high: f64, ranges: usize) -> Vec<i64> {
    let (low, high, width) = (T::narrow(low), T::narrow(high), T::narrow(ranges as f64));
    let mut counts = vec![0; ranges];
    for x in to_vec::<T>(x) {
        if x >= low && x <= high {
            let place = ((x - low) * width / (high - low)).wide() as usize;
            counts[place.min(ranges - 1)] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    #[test]
    fn the_last_range_includes_its_end_and_nan_is_in_none() {
        let x = Array::new(&[6], &[0.0f32, 1.0, 2.0, 4.0, 5.0, f32::NAN]);
        let mut out = Array::<f32>::zeros(&[2]);
        histogram(x.view(), 0.0, 4.0, out.view_mut());
        assert_eq!(out.elements, [2.0, 2.0]);
    }
}
