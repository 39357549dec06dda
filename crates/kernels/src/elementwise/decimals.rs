//! Rounding to decimals.

use super::map::map1;
use crate::{Float, View, ViewMut, with_dtype};

/// `x` rounded to so many decimals, or to a power of ten if there are fewer than none. For floats.
///
/// Each step is rounded to the element type, half precision too: with torch, the factor and the
/// product may become infinite.
pub fn round_decimals(decimals: i64, x: View<'_>, out: ViewMut<'_>) {
    let power = 10f64.powf(decimals.unsigned_abs() as f64);
    with_dtype!(x.dtype(), [floats] T => {
        let power = T::narrow(power);
        if decimals < 0 {
            map1(x, out, #[inline(always)] move |x: T| (x / power).round_even() * power);
        } else {
            map1(x, out, #[inline(always)] move |x: T| (x * power).round_even() / power);
        }
    }, else panic!("rounding to decimals is for floats"));
}
