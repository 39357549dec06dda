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
    let batch = out.shape()[0];
    let repeat = |name, x: &Tensor| broadcast_to(name, x, &[&[batch], &x.shape()[1..]].concat());
    let inputs = [repeat("x", &x)?, repeat("other", &other)?];
    let plan = compute(c"BatchMatMulV2", inputs, dtype, out, dtype, |[a, b], out| {
        matrix::batched_gemm(1.0, a, b, 0.0, out);
    });
    plan.map(Plan::on_cube)
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
    if !(0..=4).contains(&cube) {
        fail!(code::NN_PARAM_INVALID, "there is no precision {cube} of matrix products");
    }
    Ok(promote(factors[0].1.dtype(), factors[1].1.dtype()))
}
