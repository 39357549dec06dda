//! Systems of linear equations with a triangular matrix.

use super::cast::{FLOATS, expect_dtype};
use super::numbers::{numbers, store};
use super::shape::expect;
use crate::error::fail;
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;

pub(crate) fn triangular_solve(
    x: Tensor,
    a: Tensor,
    upper: bool,
    transpose: bool,
    unit: bool,
    out: Tensor,
    copy: Tensor,
) -> Planned {
    let (&[ref batch @ .., n, columns], &[ref more @ .., rows, width]) = (x.shape(), a.shape()) else {
        fail!(code::NN_PARAM_INVALID, "x {:?} and a {:?} are no matrices", x.shape(), a.shape());
    };
    if batch != more || rows != n || width != n {
        fail!(code::NN_PARAM_INVALID, "x {:?} for a {:?}", x.shape(), a.shape());
    }
    expect("out", &out, x.shape())?;
    expect("copy", &copy, a.shape())?;
    for (name, tensor) in [("x", &x), ("a", &a), ("out", &out), ("copy", &copy)] {
        expect_dtype(name, tensor, FLOATS)?;
    }
    Plan::new(c"MatrixTriangularSolve", [x, a], [out, copy], move |[x, a], [out, copy]| {
        let (mut solved, matrices) = (numbers(x), numbers(a));
        for (solution, matrix) in solved.chunks_mut((n * columns).max(1)).zip(matrices.chunks((n * n).max(1)))
        {
            let at = |row: usize, column: usize| match transpose {
                true => matrix[column * n + row],
                false => matrix[row * n + column],
            };
            // From the corner where a row has one unknown.
            let from_top = upper == transpose;
            for step in 0..n {
                let row = if from_top { step } else { n - 1 - step };
                let known = if from_top { 0..row } else { row + 1..n };
                for column in 0..columns {
                    let sum: f64 =
                        known.clone().map(|other| at(row, other) * solution[other * columns + column]).sum();
                    let rest = solution[row * columns + column] - sum;
                    solution[row * columns + column] = if unit { rest } else { rest / at(row, row) };
                }
            }
        }
        store(&solved, out);
        store(&matrices, copy);
        Ok(())
    })
}
