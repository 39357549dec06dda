//! Sums along a row, many elements side by side, to be inlined into [`wide`](crate::wide) loops.
//!
//! Each of the lanes adds up few elements of a block before blocks are added in double precision:
//! errors do not grow with the length of the row.

use crate::Float;

/// Running sums side by side: enough to hide the latency of an addition.
pub(crate) const LANES: usize = 32;
/// Elements of a block.
pub(crate) const BLOCK: usize = 32 * LANES;

/// The sums of `f`, which has `N` values, over pairs of elements.
#[inline(always)]
pub(crate) fn sums<T: Float, const N: usize>(a: &[T], b: &[T], f: impl Fn(T, T) -> [T; N]) -> [f64; N] {
    let mut totals = [0.0; N];
    for (a, b) in a.chunks(BLOCK).zip(b.chunks(BLOCK)) {
        let (block, [rest_of_a, rest_of_b]) = (&mut [[T::ZERO; LANES]; N], rests(a, b));
        for (a, b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                let values = f(a[lane], b[lane]);
                (0..N).for_each(|n| block[n][lane] = block[n][lane] + values[n]);
            }
        }
        for (lane, (&a, &b)) in rest_of_a.iter().zip(rest_of_b).enumerate() {
            let values = f(a, b);
            (0..N).for_each(|n| block[n][lane] = block[n][lane] + values[n]);
        }
        (0..N).for_each(|n| totals[n] += total(&block[n]));
    }
    totals
}

/// What is left behind whole lanes.
#[inline(always)]
fn rests<'a, T>(a: &'a [T], b: &'a [T]) -> [&'a [T]; 2] {
    [a.as_chunks::<LANES>().1, b.as_chunks::<LANES>().1]
}

/// The sum of all lanes, by halves.
#[inline(always)]
pub(crate) fn total<T: Float>(lanes: &[T; LANES]) -> f64 {
    let mut lanes = *lanes;
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = lanes[lane] + lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0].wide()
}

/// The largest element; of those that are NaN, some count for nothing.
#[inline(always)]
pub(crate) fn maximum<T: Float>(x: &[T]) -> T {
    let larger = |a: T, b: T| if a > b { a } else { b };
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut lanes = [T::neg_infinity(); LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    rest.iter().zip(&mut lanes).for_each(|(&x, lane)| *lane = larger(*lane, x));
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = larger(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_any_length_are_those_of_double_precision() {
        for len in [0, 1, 31, 32, 33, 1023, 1024, 1025, 5000] {
            let x: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).sin()).collect();
            let [sum, squares] = sums(&x, &x, |a, b| [a, a * b]);
            let wide = |f: fn(f64) -> f64| x.iter().map(|&x| f(x.into())).sum::<f64>();
            assert!((sum - wide(|x| x)).abs() < 1e-4 && (squares - wide(|x| x * x)).abs() < 1e-3, "{len}");
            let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(maximum(&x), largest);
        }
    }
}
