//! Running sums and products along a dimension.

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
