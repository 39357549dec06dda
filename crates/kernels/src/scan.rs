//! Running sums and products along a dimension, and the recurrence that their derivatives follow.

use crate::elementwise::{contiguous, copy, to_vec};
use crate::{View, ViewMut};

/// The sum of each element and all before it along `dim`.
pub fn cumsum(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    scan(x, dim, out, |sum, x| sum + x, i64::wrapping_add);
}

/// The product of each element and all before it along `dim`.
pub fn cumprod(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    scan(x, dim, out, |product, x| product * x, i64::wrapping_mul);
}

/// The logarithm of the sum of exponentials of each element and all before it along `dim`.
pub fn logcumsumexp(x: View<'_>, dim: usize, out: ViewMut<'_>) {
    let both = |a: f64, b: f64| {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        // Infinities of one sign differ by NaN.
        if low == high && low.is_infinite() { low } else { high + (low - high).exp().ln_1p() }
    };
    scan(x, dim, out, both, |_, _| unreachable!("logarithms are floats"));
}

/// `out[k] = terms[k] + factors[k] * out[k + 1]` along `dim`, from its end, for floats. The last
/// factor counts for nothing.
pub fn recurrence(terms: View<'_>, factors: View<'_>, dim: usize, out: ViewMut<'_>) {
    assert!(terms.shape() == out.shape() && factors.shape() == out.shape(), "recurrence: shapes differ");
    let (mut sums, factors, layout) = (to_vec::<f64>(terms), to_vec::<f64>(factors), contiguous(out.shape()));
    let size = out.shape().get(dim).copied().unwrap_or(1);
    let inner: usize = out.shape().iter().skip(dim + 1).product();
    if sums.is_empty() {
        return;
    }
    for (sums, factors) in sums.chunks_exact_mut(size * inner).zip(factors.chunks_exact(size * inner)) {
        for at in (0..sums.len() - inner).rev() {
            sums[at] += factors[at] * sums[at + inner];
        }
    }
    copy(View::of(&sums, &layout), out);
}

/// Runs along `dim` in the widest type of the kind, and rounds once per element.
fn scan(
    x: View<'_>,
    dim: usize,
    out: ViewMut<'_>,
    float: impl Fn(f64, f64) -> f64,
    integer: impl Fn(i64, i64) -> i64,
) {
    assert_eq!(x.shape(), out.shape(), "scan: shapes differ");
    let layout = contiguous(x.shape());
    let size = x.shape().get(dim).copied().unwrap_or(1);
    let inner = x.shape().iter().skip(dim + 1).product();
    if out.dtype().is_float() {
        let mut elements = to_vec::<f64>(x);
        run(&mut elements, size, inner, float);
        copy(View::of(&elements, &layout), out);
    } else {
        let mut elements = to_vec::<i64>(x);
        run(&mut elements, size, inner, integer);
        copy(View::of(&elements, &layout), out);
    }
}

fn run<T: Copy>(elements: &mut [T], size: usize, inner: usize, f: impl Fn(T, T) -> T) {
    if elements.is_empty() {
        return;
    }
    for rows in elements.chunks_exact_mut(size * inner) {
        for at in inner..rows.len() {
            rows[at] = f(rows[at - inner], rows[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Array;

    #[test]
    fn sums_run_along_their_dimension_only() {
        let x = Array::new(&[2, 2, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let mut out = Array::<f32>::zeros(&[2, 2, 2]);
        cumsum(x.view(), 1, out.view_mut());
        assert_eq!(out.elements, [1.0, 2.0, 4.0, 6.0, 5.0, 6.0, 12.0, 14.0]);
        cumprod(x.view(), 2, out.view_mut());
        assert_eq!(out.elements, [1.0, 2.0, 3.0, 12.0, 5.0, 30.0, 7.0, 56.0]);
    }

    #[test]
    fn a_recurrence_runs_from_the_end() {
        let (terms, factors) = (Array::new(&[3], &[1.0f32, 10.0, 100.0]), Array::new(&[3], &[2.0, 3.0, 9.0]));
        let mut out = Array::<f32>::zeros(&[3]);
        recurrence(terms.view(), factors.view(), 0, out.view_mut());
        assert_eq!(out.elements, [621.0, 310.0, 100.0]);
    }
}
