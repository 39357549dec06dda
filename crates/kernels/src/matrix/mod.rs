//! Products of matrices, with operands as they lie: transposed ones are not copied.

#![expect(unsafe_code, reason = "hands pointers to the gemm crate")]

use crate::elementwise::Single;
use crate::threads::{each_range, threads};
use crate::{DType, Float, Layout, Number, Scalar, View, ViewMut, with_dtype};
use part::{Places, product_at};
use tiles::{Tile, Tiles, is_tiny, is_whole};

mod part;
mod small;
mod tiles;

pub(crate) use part::{Part, PartMut, multiply};

/// `out = alpha * a @ b + beta * out` for matrices. With a `beta` of zero `out` is not read.
pub fn gemm(
    alpha: impl Into<Scalar>,
    a: View<'_>,
    b: View<'_>,
    beta: impl Into<Scalar>,
    mut out: ViewMut<'_>,
) {
    let (&[m, k], &[k2, n]) = (a.shape(), b.shape()) else {
        panic!("gemm: {:?} and {:?} are not both matrices", a.shape(), b.shape());
    };
    assert!(
        k == k2 && out.shape() == [m, n],
        "gemm: {:?} @ {:?} is not {:?}",
        a.shape(),
        b.shape(),
        out.shape()
    );
    product(Factors { alpha: alpha.into(), a, b, beta: beta.into(), start: None }, &mut out);
}

/// As [`gemm()`], for each matrix of a batch: `[batch, m, k] @ [batch, k, n]`.
pub fn batched_gemm(
    alpha: impl Into<Scalar>,
    a: View<'_>,
    b: View<'_>,
    beta: impl Into<Scalar>,
    mut out: ViewMut<'_>,
) {
    let (&[batch, m, k], &[batch2, k2, n]) = (a.shape(), b.shape()) else {
        panic!("batched_gemm: {:?} and {:?} are not both batches", a.shape(), b.shape());
    };
    assert!(
        k == k2 && batch == batch2 && out.shape() == [batch, m, n],
        "batched_gemm: {:?} @ {:?} is not {:?}",
        a.shape(),
        b.shape(),
        out.shape()
    );
    product(Factors { alpha: alpha.into(), a, b, beta: beta.into(), start: None }, &mut out);
}

/// As [`gemm()`] and [`batched_gemm`], with `x`, broadcast, in the place of what `out` held:
/// `out = alpha * a @ b + beta * x`.
pub fn added_gemm(
    alpha: impl Into<Scalar>,
    a: View<'_>,
    b: View<'_>,
    beta: impl Into<Scalar>,
    x: View<'_>,
    mut out: ViewMut<'_>,
) {
    let spread = x.layout().broadcast_to(out.shape()).expect("what is added has the shape of the product");
    let x = x.with_layout(&spread);
    let rank = out.shape().len();
    let inner = |x: View<'_>| [x.shape()[rank - 2], x.shape()[rank - 1]];
    let ([m, k], [k2, n]) = (inner(a), inner(b));
    assert!(
        k == k2 && out.shape()[rank - 2..] == [m, n] && (2..=3).contains(&rank),
        "added_gemm: {:?} @ {:?} is not {:?}",
        a.shape(),
        b.shape(),
        out.shape()
    );
    product(Factors { alpha: alpha.into(), a, b, beta: beta.into(), start: Some(x) }, &mut out);
}

struct Factors<'a> {
    alpha: Scalar,
    a: View<'a>,
    b: View<'a>,
    beta: Scalar,
    /// What `beta` multiplies, if it is not the output.
    start: Option<View<'a>>,
}

fn product(factors: Factors<'_>, out: &mut ViewMut<'_>) {
    if out.layout().is_empty() {
        return;
    }
    match out.dtype() {
        DType::F32 => float_product::<f32>(&factors, out),
        DType::F64 => float_product::<f64>(&factors, out),
        DType::F16 | DType::BF16 => {
            let (a, b) = (Single::load(factors.a), Single::load(factors.b));
            let mut wide = if factors.beta.as_f64() == 0.0 {
                Single::zeros(out.shape())
            } else {
                Single::load(factors.start.unwrap_or(out.as_view()))
            };
            let factors = Factors { a: a.view(), b: b.view(), start: None, ..factors };
            float_product::<f32>(&factors, &mut wide.view_mut());
            wide.store(out.reborrow());
        }
        dtype => with_dtype!(dtype, [numbers] T => plain_product::<T>(&factors, out),
            else panic!("gemm is for numbers, not bool")),
    }
}

/// Sizes and strides of one matrix of a batch.
#[derive(Clone, Copy)]
struct Matrix {
    rows: usize,
    columns: usize,
    down: usize,
    across: usize,
    /// From one matrix of the batch to the next.
    next: usize,
}

impl Matrix {
    #[inline]
    fn of(layout: &Layout) -> Matrix {
        let (shape, strides) = (layout.shape(), layout.strides());
        let at = shape.len() - 2;
        Matrix {
            rows: shape[at],
            columns: shape[at + 1],
            down: strides[at],
            across: strides[at + 1],
            next: if at == 1 { strides[0] } else { 0 },
        }
    }
}

fn batch(layout: &Layout) -> usize {
    if layout.rank() == 3 { layout.shape()[0] } else { 1 }
}

fn float_product<T: Float>(factors: &Factors<'_>, out: &mut ViewMut<'_>) {
    let (a, b, c) =
        (Matrix::of(factors.a.layout()), Matrix::of(factors.b.layout()), Matrix::of(out.layout()));
    let shape = [c.rows, a.columns, c.columns];
    if is_tiny(shape) {
        return plain_product::<T>(factors, out);
    }
    let (alpha, beta) = (T::from_scalar(factors.alpha), T::from_scalar(factors.beta));
    let given = factors.start.filter(|_| beta != T::ZERO);
    let given = given.map(|x| (x.span::<T>(), Matrix::of(x.layout())));
    let batch = batch(out.layout());
    let start = Start(factors.a.pointer::<T>(), factors.b.pointer::<T>(), out.pointer::<T>());
    let multiply = |i: usize, ([row, column], [rows, columns]): Tile| {
        let (left, right, out) = start.get();
        // SAFETY: views promise that every index of their shape leads to an element of theirs, that
        // those of `out` are distinct, and that nothing else writes to them; tiles of `out` do
        // not meet.
        unsafe {
            let places = Places {
                a: (left.add(i * a.next + row * a.down), a.down, a.across),
                b: (right.add(i * b.next + column * b.across), b.down, b.across),
                out: (out.add(i * c.next + row * c.down + column * c.across), c.down, c.across),
            };
            if let Some((x, of)) = given {
                // While the tile is in the cache.
                let x = &x[i * of.next + row * of.down + column * of.across..];
                begin(x, of, [rows, columns], places.out);
            }
            product_at([rows, a.columns, columns], alpha, places, beta);
        }
    };
    if batch == 1 && is_whole(shape) {
        return multiply(0, ([0, 0], [c.rows, c.columns]));
    }
    let tiles = Tiles::of(shape, a.across == 1 || c.down == 1, threads());
    // Small products are handed out several at a time.
    each_range(batch * tiles.count(), tiles.together(), batch * tiles.cost(), |range| {
        range.for_each(|i| multiply(i / tiles.count(), tiles.at(i % tiles.count())));
    });
}

/// Copies a tile of what is to be added.
///
/// # Safety
/// Every index of the tile leads to an element that may be written.
unsafe fn begin<T: Float>(x: &[T], of: Matrix, [rows, columns]: [usize; 2], out: (*mut T, usize, usize)) {
    let (start, down, across) = out;
    for row in 0..rows {
        let x = &x[row * of.down..];
        for column in 0..columns {
            // SAFETY: the caller's promise.
            unsafe { start.add(row * down + column * across).write(x[column * of.across]) };
        }
    }
}

/// Where three operands start.
struct Start<T>(*const T, *const T, *mut T);

// SAFETY: threads read what nobody writes, and write tiles that do not meet.
unsafe impl<T: Send + Sync> Sync for Start<T> {}

impl<T> Start<T> {
    fn get(&self) -> (*const T, *const T, *mut T) {
        (self.0, self.1, self.2)
    }
}

fn plain_product<T: Number>(factors: &Factors<'_>, out: &mut ViewMut<'_>) {
    let (a, b, c) =
        (Matrix::of(factors.a.layout()), Matrix::of(factors.b.layout()), Matrix::of(out.layout()));
    let (alpha, beta) = (T::from_scalar(factors.alpha), T::from_scalar(factors.beta));
    let batch = batch(out.layout());
    let (a_all, b_all, c_all) = (factors.a.span::<T>(), factors.b.span::<T>(), out.span::<T>());
    let given = factors.start.map(|x| (x.span::<T>(), Matrix::of(x.layout())));
    for i in 0..batch {
        for row in 0..c.rows {
            for column in 0..c.columns {
                let mut sum = T::ZERO;
                for k in 0..a.columns {
                    let left = a_all[i * a.next + row * a.down + k * a.across];
                    sum = sum.plus(left.times(b_all[i * b.next + k * b.down + column * b.across]));
                }
                let out = &mut c_all[i * c.next + row * c.down + column * c.across];
                let before = match given {
                    _ if beta == T::ZERO => T::ZERO,
                    Some((x, of)) => beta.times(x[i * of.next + row * of.down + column * of.across]),
                    None => beta.times(*out),
                };
                *out = before.plus(alpha.times(sum));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bf16;
    use crate::testing::{Array, assert_close};

    fn reference(a: &Array<impl crate::Element>, b: &Array<impl crate::Element>) -> Vec<f64> {
        let (&[m, k], &[_, n]) = (a.layout.shape(), b.layout.shape()) else { panic!("not matrices") };
        let (a, b) = (a.wide(), b.wide());
        let cell = |i: usize| (0..k).map(|p| a[i / n * k + p] * b[p * n + i % n]).sum();
        (0..m * n).map(cell).collect()
    }

    /// A matrix by itself and as the transpose of another.
    fn both<T: crate::Element>(rows: usize, columns: usize, seed: u64) -> [Array<T>; 2] {
        let other = Array::random(&[columns, rows], seed);
        [Array::random(&[rows, columns], seed), other.with(|layout| layout.transpose(0, 1))]
    }

    fn check<T: Number>(tolerance: f64) {
        for (m, k, n) in
            [(1, 1, 1), (2, 2, 2), (3, 4, 5), (1, 64, 17), (33, 9, 1), (40, 30, 50), (0, 3, 2), (3, 0, 2)]
        {
            for (a, b) in both::<T>(m, k, 1).iter().flat_map(|a| both::<T>(k, n, 2).map(|b| (a.clone(), b))) {
                for mut out in both::<T>(m, n, 3) {
                    let before = out.wide();
                    let product = reference(&a, &b);
                    gemm(2.0, a.view(), b.view(), 3.0, out.view_mut());
                    let expected: Vec<f64> =
                        product.iter().zip(before).map(|(p, o)| 2.0 * p + 3.0 * o).collect();
                    assert_close(&out.wide(), &expected, tolerance);
                }
            }
        }
    }

    #[test]
    fn products_agree_with_double_precision_whatever_is_transposed() {
        check::<f32>(1e-5);
        check::<f64>(1e-12);
        check::<i64>(0.0);
        check::<bf16>(1e-2);
        check::<crate::f16>(2e-3);
    }

    #[test]
    fn without_beta_the_output_is_not_read() {
        for size in [2, 20] {
            let a = Array::<f32>::random(&[size, size], 1);
            let mut out = Array::new(&[size, size], &vec![f32::NAN; size * size]);
            gemm(1.0, a.view(), a.view(), 0.0, out.view_mut());
            assert_close(&out.wide(), &reference(&a, &a), 1e-6);
            let empty = Array::<f32>::zeros(&[size, 0]);
            out.elements.fill(f32::NAN);
            gemm(1.0, empty.view(), Array::<f32>::zeros(&[0, size]).view(), 0.0, out.view_mut());
            assert!(out.elements.iter().all(|&x| x == 0.0));
        }
    }

    #[test]
    fn each_matrix_of_a_batch_meets_its_own() {
        for size in [2, 12] {
            let a = Array::<f32>::random(&[3, size, size], 1);
            let b =
                Array::<f32>::random(&[1, size, size], 2).with(|l| l.broadcast_to(&[3, size, size]).unwrap());
            let mut out = Array::<f32>::zeros(&[3, size, size]);
            batched_gemm(1.0, a.view(), b.view(), 0.0, out.view_mut());
            let expected: Vec<f64> = a
                .list()
                .chunks(size * size)
                .flat_map(|a| {
                    reference(&Array::new(&[size, size], a), &Array::new(&[size, size], &b.elements))
                })
                .collect();
            assert_close(&out.wide(), &expected, 1e-6);
        }
    }

    #[test]
    fn every_number_of_threads_gives_the_same_bits_and_the_same_as_double_precision() {
        for (m, k, n) in
            [(200, 64, 401), (1, 900, 3000), (3000, 900, 1), (16, 16, 8), (9, 16, 14), (500, 70, 100)]
        {
            for (a, b) in both::<f32>(m, k, 1).into_iter().zip(both::<f32>(k, n, 2)) {
                let run = |threads: usize| {
                    let mut out = Array::new(&[m, n], &vec![f32::NAN; m * n]);
                    crate::threads::with_threads(threads, || {
                        gemm(1.0, a.view(), b.view(), 0.0, out.view_mut())
                    });
                    out
                };
                let one = run(1);
                assert!(one.elements == run(2).elements && one.elements == run(3).elements);
                let scale = 20.0 * k as f64;
                let scaled = |x: Vec<f64>| x.into_iter().map(|x| x / scale).collect::<Vec<_>>();
                assert_close(&scaled(one.wide()), &scaled(reference(&a, &b)), 1e-6);
            }
        }
    }

    #[test]
    fn a_product_has_the_same_bits_however_it_is_cut() {
        let shapes = [
            (128, 128, 128),
            (64, 784, 512),
            (193, 1100, 450),
            (2, 9000, 256),
            (3, 5000, 700),
            (511, 1025, 513),
        ];
        for (m, k, n) in shapes {
            for (a, b) in
                both::<f32>(m, k, 1).iter().flat_map(|a| both::<f32>(k, n, 2).map(|b| (a.clone(), b)))
            {
                let run = |threads: usize| {
                    let mut out = Array::new(&[m, n], &vec![f32::NAN; m * n]);
                    crate::threads::with_threads(threads, || {
                        gemm(1.0, a.view(), b.view(), 0.0, out.view_mut())
                    });
                    out.elements
                };
                let whole = run(1);
                for threads in [2, 3, 8] {
                    assert!(run(threads) == whole, "{m}x{k}x{n} cut for {threads} threads");
                }
            }
        }
    }

    #[test]
    fn what_is_added_is_broadcast_and_the_output_not_read() {
        for (m, k, n) in [(2, 3, 2), (40, 30, 50), (300, 20, 410)] {
            let (a, b) = (Array::<f32>::random(&[m, k], 1), Array::<f32>::random(&[k, n], 2));
            let product = reference(&a, &b);
            for shape in [vec![n], vec![m, 1], vec![m, n], vec![]] {
                let x = Array::<f32>::random(&shape, 3);
                let spread = x.clone().with(|layout| layout.broadcast_to(&[m, n]).unwrap());
                let expected: Vec<f64> =
                    product.iter().zip(spread.wide()).map(|(p, x)| p + 2.0 * x).collect();
                let mut out = Array::new(&[m, n], &vec![f32::NAN; m * n]);
                added_gemm(1.0, a.view(), b.view(), 2.0, x.view(), out.view_mut());
                assert_close(&out.wide(), &expected, 1e-5);
                added_gemm(1.0, a.view(), b.view(), 0.0, x.view(), out.view_mut());
                assert_close(&out.wide(), &product, 1e-5);
            }
        }
        let (a, x) = (Array::<bf16>::random(&[20, 20], 1), Array::<bf16>::random(&[20], 2));
        let mut out = Array::<bf16>::zeros(&[20, 20]);
        added_gemm(1.0, a.view(), a.view(), 1.0, x.view(), out.view_mut());
        let bias = x.wide();
        let expected: Vec<f64> =
            reference(&a, &a).iter().enumerate().map(|(i, product)| product + bias[i % 20]).collect();
        assert_close(&out.wide(), &expected, 1e-2);
    }

    #[test]
    fn nan_and_infinity_meet_zeros_as_they_do_in_a_sum_of_products() {
        for size in [2, 8, 16, 40] {
            let mut a = Array::<f32>::zeros(&[size, size]);
            let mut b = Array::<f32>::zeros(&[size, size]);
            a.elements[0] = f32::INFINITY;
            b.elements[size + 1] = f32::NAN;
            let mut out = Array::<f32>::zeros(&[size, size]);
            gemm(1.0, a.view(), b.view(), 0.0, out.view_mut());
            for (i, x) in out.elements.iter().enumerate() {
                assert_eq!(x.is_nan(), i / size == 0 || i % size == 1, "element {i} of {size}x{size} is {x}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "gemm: [2, 3] @ [2, 3] is not [2, 3]")]
    fn matrices_that_do_not_fit_are_refused() {
        let a = Array::<f32>::zeros(&[2, 3]);
        gemm(1.0, a.view(), a.view(), 0.0, a.clone().view_mut());
    }
}
