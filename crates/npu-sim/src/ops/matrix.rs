//! Products of matrices.

use super::cast::{FLOATS, compute, expect_dtype, promote};
use super::shape::{broadcast_to, expect, expect_rank};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{DType, Scalar, elementwise, matrix};

pub(crate) fn mm(x: Tensor, other: Tensor, out: Tensor, cube: i8) -> Planned {
    let dtype = check([("x", &x), ("other", &other)], 2, &out, cube)?;
    let plan =
        compute(c"MatMulV2", [x, other], dtype, out, dtype, |[a, b], out| matrix::gemm(1.0, a, b, 0.0, out));
    plan.map(Plan::on_cube)
}

pub(crate) fn addmm(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    beta: Scalar,
    alpha: Scalar,
    out: Tensor,
    cube: i8,
) -> Planned {
    let dtype = promote(x.dtype(), check([("a", &a), ("b", &b)], 2, &out, cube)?);
    expect_dtype("x", &x, FLOATS)?;
    let x = broadcast_to("x", &x, out.shape())?;
    let (alpha, beta) = (alpha.as_f64(), beta.as_f64());
    let plan = compute(c"MatMulV2", [x, a, b], dtype, out, dtype, move |[x, a, b], mut out| {
        if beta != 0.0 {
            elementwise::copy(x, out.reborrow());
        }
        matrix::gemm(alpha, a, b, beta, out);
    });
    plan.map(Plan::on_cube)
}

pub(crate) fn batch_matmul(x: Tensor, other: Tensor, out: Tensor, cube: i8) -> Planned {
    let dtype = check([("x", &x), ("other", &other)], 3, &out, cube)?;
    let inputs = stacks(x, other, out.shape()[0])?;
    let plan = compute(c"BatchMatMulV2", inputs, dtype, out, dtype, |[a, b], out| {
        matrix::batched_gemm(1.0, a, b, 0.0, out);
    });
    plan.map(Plan::on_cube)
}

/// Two stacks of so many matrices each, which may be one repeated.
fn stacks(a: Tensor, b: Tensor, batch: usize) -> Result<[Tensor; 2]> {
    let repeat = |name, x: &Tensor| broadcast_to(name, x, &[&[batch], &x.shape()[1..]].concat());
    Ok([repeat("a", &a)?, repeat("b", &b)?])
}

pub(crate) fn baddbmm(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    beta: Scalar,
    alpha: Scalar,
    out: Tensor,
    cube: i8,
) -> Planned {
    let dtype = promote(x.dtype(), check([("a", &a), ("b", &b)], 3, &out, cube)?);
    expect_dtype("x", &x, FLOATS)?;
    let x = broadcast_to("x", &x, out.shape())?;
    let [a, b] = stacks(a, b, out.shape()[0])?;
    let (alpha, beta) = (alpha.as_f64(), beta.as_f64());
    let plan = compute(c"BatchMatMulV2", [x, a, b], dtype, out, dtype, move |[x, a, b], mut out| {
        if beta != 0.0 {
            elementwise::copy(x, out.reborrow());
        }
        matrix::batched_gemm(alpha, a, b, beta, out);
    });
    plan.map(Plan::on_cube)
}

pub(crate) fn addbmm(
    x: Tensor,
    a: Tensor,
    b: Tensor,
    beta: Scalar,
    alpha: Scalar,
    out: Tensor,
    cube: i8,
) -> Planned {
    for (name, factor) in [("a", &a), ("b", &b)] {
        expect_rank(name, factor, 3)?;
        expect_dtype(name, factor, FLOATS)?;
    }
    let (&[batch, rows, depth], &[_, _, columns]) = (a.shape(), b.shape()) else { unreachable!("of rank 3") };
    expect("b", &b, &[batch, depth, columns])?;
    expect("out", &out, &[rows, columns])?;
    expect_precision(cube)?;
    expect_dtype("x", &x, FLOATS)?;
    let dtype = promote(x.dtype(), promote(a.dtype(), b.dtype()));
    let x = broadcast_to("x", &x, out.shape())?;
    let (alpha, beta) = (alpha.as_f64(), beta.as_f64());
    let plan = compute(c"BatchMatMulV2", [x, a, b], dtype, out, dtype, move |[x, a, b], mut out| {
        match beta == 0.0 {
            true => elementwise::fill(Scalar::Int(0), out.reborrow()),
            false => elementwise::copy(x, out.reborrow()),
        }
        let mut factor = beta;
        for i in 0..batch {
            let (left, right) = (a.layout().select(0, i), b.layout().select(0, i));
            matrix::gemm(alpha, a.with_layout(&left), b.with_layout(&right), factor, out.reborrow());
            factor = 1.0;
        }
    });
    plan.map(Plan::on_cube)
}

pub(crate) fn mv(x: Tensor, vector: Tensor, out: Tensor, cube: i8) -> Planned {
    expect_rank("vector", &vector, 1)?;
    expect_rank("out", &out, 1)?;
    mm(x, column(&vector), column(&out), cube)
}

pub(crate) fn addmv(
    x: Tensor,
    a: Tensor,
    vector: Tensor,
    alpha: Scalar,
    beta: Scalar,
    out: Tensor,
    cube: i8,
) -> Planned {
    expect_rank("vector", &vector, 1)?;
    expect_rank("out", &out, 1)?;
    let x = column(&broadcast_to("x", &x, out.shape())?);
    addmm(x, a, column(&vector), beta, alpha, column(&out), cube)
}

pub(crate) fn dot(x: Tensor, other: Tensor, out: Tensor) -> Planned {
    expect_rank("x", &x, 1)?;
    expect_rank("other", &other, 1)?;
    expect_rank("out", &out, 0)?;
    let row = x.with_layout(x.layout().unsqueeze(0));
    let out = out.with_layout(out.layout().unsqueeze(0).unsqueeze(0));
    mm(row, column(&other), out, cresset_acl::constant::cube::KEEP_DTYPE)
}

/// A vector as a matrix of one column.
fn column(x: &Tensor) -> Tensor {
    x.with_layout(x.layout().unsqueeze(1))
}

/// Checks ranks, sizes and types of a product; gives the type it is computed in.
fn check(factors: [(&str, &Tensor); 2], rank: usize, out: &Tensor, cube: i8) -> Result<DType> {
    for (name, x) in factors {
        expect_rank(name, x, rank)?;
        expect_dtype(name, x, FLOATS)?;
    }
    expect_dtype("out", out, FLOATS)?;
    let (a, b) = (factors[0].1.shape(), factors[1].1.shape());
    if a[rank - 1] != b[rank - 2] {
        fail!(code::NN_PARAM_INVALID, "{a:?} and {b:?} cannot be multiplied");
    }
    let mut shape = [&a[..rank - 1], &b[rank - 1..]].concat();
    if rank == 3 {
        shape[0] = shape[0].max(b[0]);
    }
    expect("out", out, &shape)?;
    expect_precision(cube)?;
    Ok(promote(factors[0].1.dtype(), factors[1].1.dtype()))
}

pub(super) fn expect_precision(cube: i8) -> Result {
    if !(0..=4).contains(&cube) {
        fail!(code::NN_PARAM_INVALID, "there is no precision {cube} of matrix products");
    }
    Ok(())
}
