//! Singular values and vectors of matrices, by one-sided Jacobi rotations.
//!
//! Columns are turned against each other until all are at right angles: their lengths are the
//! singular values. That is slower than bidiagonalisation for large matrices, but small singular
//! values come out to the last digit, and it is a page of code rather than a crate.

use crate::elementwise::{contiguous, copy, to_vec};
use crate::{View, ViewMut};

/// Cosines below this count as right angles.
const RIGHT_ANGLE: f64 = 1e-16;
/// Every sweep but the first few squares the error: this many are never needed.
const SWEEPS: usize = 60;

/// `x = u diag(s) vt` for each matrix of a stack `[stack, m, n]`, with `k = min(m, n)` singular values in
/// falling order: `[stack, m, k]`, `[stack, k]` and `[stack, k, n]`. Computed in double precision.
pub fn svd(x: View<'_>, u: ViewMut<'_>, s: ViewMut<'_>, vt: ViewMut<'_>) {
    let &[stack, m, n] = x.shape() else { panic!("svd: {:?} is no stack of matrices", x.shape()) };
    let k = m.min(n);
    let shapes = (u.shape(), s.shape(), vt.shape());
    assert!(shapes == (&[stack, m, k], &[stack, k], &[stack, k, n]), "svd: {shapes:?} for {:?}", x.shape());
    if x.layout().is_empty() {
        return;
    }
    let elements = to_vec::<f64>(x);
    let (mut us, mut ss, mut vts) = (Vec::new(), Vec::new(), Vec::new());
    for matrix in 0..stack {
        let element = |row: usize, column: usize| elements[(matrix * m + row) * n + column];
        // Tall matrices have few columns; wide ones are transposed.
        let columns: Vec<Vec<f64>> = match m >= n {
            true => (0..n).map(|column| (0..m).map(|row| element(row, column)).collect()).collect(),
            false => (0..m).map(|row| (0..n).map(|column| element(row, column)).collect()).collect(),
        };
        let (left, values, right) = decompose(columns);
        let (u, v) = if m >= n { (left, right) } else { (right, left) };
        us.extend((0..m).flat_map(|row| u.iter().map(move |vector| vector[row])));
        ss.extend(values);
        vts.extend(v.into_iter().flatten());
    }
    copy(View::of(&us, &contiguous(u.shape())), u);
    copy(View::of(&ss, &contiguous(s.shape())), s);
    copy(View::of(&vts, &contiguous(vt.shape())), vt);
}

type Vectors = Vec<Vec<f64>>;

/// The left singular vectors, the singular values and the right singular vectors of a matrix by columns.
fn decompose(mut columns: Vectors) -> (Vectors, Vec<f64>, Vectors) {
    let count = columns.len();
    let mut right: Vectors =
        (0..count).map(|i| (0..count).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for _ in 0..SWEEPS {
        let mut turned = false;
        for q in 1..count {
            for p in 0..q {
                let (a, b, both) = (
                    dot(&columns[p], &columns[p]),
                    dot(&columns[q], &columns[q]),
                    dot(&columns[p], &columns[q]),
                );
                if both.abs() > RIGHT_ANGLE * (a * b).sqrt() && both != 0.0 {
                    let slope = (b - a) / (2.0 * both);
                    let tangent = 1f64.copysign(slope) / (slope.abs() + slope.hypot(1.0));
                    let cosine = 1.0 / tangent.hypot(1.0);
                    turn(&mut columns, p, q, cosine, cosine * tangent);
                    turn(&mut right, p, q, cosine, cosine * tangent);
                    turned = true;
                }
            }
        }
        if !turned {
            break;
        }
    }
    let lengths: Vec<f64> = columns.iter().map(|column| dot(column, column).sqrt()).collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&i, &j| lengths[j].total_cmp(&lengths[i]));
    let mut left = Vectors::new();
    for &i in &order {
        let direction = match lengths[i] {
            0.0 => perpendicular(&left, columns[i].len()),
            length => columns[i].iter().map(|x| x / length).collect(),
        };
        left.push(direction);
    }
    (left, order.iter().map(|&i| lengths[i]).collect(), order.iter().map(|&i| right[i].clone()).collect())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn turn(vectors: &mut Vectors, p: usize, q: usize, cosine: f64, sine: f64) {
    let (before, after) = vectors.split_at_mut(q);
    for (a, b) in before[p].iter_mut().zip(&mut after[0]) {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
}

/// A unit vector at right angles to all others, of which there are fewer than dimensions.
fn perpendicular(others: &Vectors, size: usize) -> Vec<f64> {
    let candidates = (0..size).map(|axis| {
        let mut vector: Vec<f64> = (0..size).map(|at| f64::from(u8::from(at == axis))).collect();
        // Twice, as the first time leaves rounding errors.
        for other in others.iter().chain(others) {
            let along = dot(&vector, other);
            vector.iter_mut().zip(other).for_each(|(x, other)| *x -= along * other);
        }
        vector
    });
    let longest = candidates.max_by(|a, b| dot(a, a).total_cmp(&dot(b, b))).unwrap_or_default();
    let length = dot(&longest, &longest).sqrt();
    longest.iter().map(|x| x / length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Array, assert_close};

    fn check(x: &Array<f64>) {
        let &[stack, m, n] = x.layout.shape() else { panic!("no stack") };
        let k = m.min(n);
        let (mut u, mut s, mut vt) = (
            Array::<f64>::zeros(&[stack, m, k]),
            Array::zeros(&[stack, k]),
            Array::<f64>::zeros(&[stack, k, n]),
        );
        svd(x.view(), u.view_mut(), s.view_mut(), vt.view_mut());
        assert!(s.elements.chunks(k).all(|values: &[f64]| values.is_sorted_by(|a, b| a >= b)));
        let (mut back, mut straight) = (Vec::new(), Vec::new());
        for i in 0..stack {
            let (u, s, vt) = (&u.elements[i * m * k..], &s.elements[i * k..], &vt.elements[i * k * n..]);
            let cell =
                |row: usize, column: usize| (0..k).map(|j| u[row * k + j] * s[j] * vt[j * n + column]).sum();
            back.extend((0..m * n).map(|at| -> f64 { cell(at / n, at % n) }));
            straight.extend(
                (0..k * k).map(|at| -> f64 { (0..m).map(|r| u[r * k + at / k] * u[r * k + at % k]).sum() }),
            );
        }
        assert_close(&back, &x.wide(), 1e-12);
        let ones: Vec<f64> =
            (0..stack * k * k).map(|at| f64::from(u8::from(at % (k * k) % (k + 1) == 0))).collect();
        assert_close(&straight, &ones, 1e-12);
    }

    #[test]
    fn the_factors_multiply_to_the_matrix_and_stand_at_right_angles() {
        for shape in [[1, 1, 1], [2, 5, 5], [2, 3, 6], [1, 7, 2]] {
            check(&Array::random(&shape, 3));
        }
        check(&Array::zeros(&[1, 3, 2]));
        check(&Array::new(&[1, 3, 3], &[1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 0.0, 0.0, 0.0]));
    }
}
