//! Rows picked by number, and changed by number.

use super::cast::{FLOATS, INDICES, Temporary, expect_dtype};
use super::shape::{dim, expect, expect_rank};
use crate::error::{Failure, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::functions::Mul;
use cresset_kernels::index::{self, Combine, Places};
use cresset_kernels::{OutOfRange, Scalar, View, elementwise};

/// The padding index that stands for none: -1 as an unsigned number.
const NO_PADDING: u64 = u64::MAX;

pub(crate) fn embedding(weight: Tensor, indices: Tensor, out: Tensor) -> Planned {
    expect_rank("weight", &weight, 2)?;
    expect_dtype("indices", &indices, INDICES)?;
    expect_dtype("out", &out, &[weight.dtype()])?;
    expect("out", &out, &[indices.shape(), &weight.shape()[1..]].concat())?;
    Plan::new(c"GatherV2", [weight, indices], [out], |[weight, indices], [out]| {
        index::embedding(weight, indices, out).map_err(out_of_range)
    })
}

pub(crate) fn embedding_dense_backward(
    grad: Tensor,
    indices: Tensor,
    rows: u64,
    padding: u64,
    scale_by_frequency: bool,
    out: Tensor,
) -> Planned {
    expect_dtype("indices", &indices, INDICES)?;
    expect_dtype("grad", &grad, FLOATS)?;
    expect_dtype("out", &out, &[grad.dtype()])?;
    let Some(&width) = grad.shape().last() else {
        fail!(code::NN_PARAM_INVALID, "grad has no dimensions, expected at least one");
    };
    expect("grad", &grad, &[indices.shape(), &[width]].concat())?;
    expect("out", &out, &[rows as usize, width])?;
    let padding = (padding != NO_PADDING).then_some(padding as usize);
    let plan = Plan::new(c"EmbeddingDenseGrad", [grad, indices], [out], move |[grad, indices], [mut out]| {
        index::embedding_backward(grad, indices, padding, out.reborrow()).map_err(out_of_range)?;
        if scale_by_frequency {
            index::divide_rows_by_count(indices, out);
        }
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn index_select(x: Tensor, given: i64, index: Tensor, out: Tensor) -> Planned {
    let dim = dim(given, x.shape().len())?;
    expect_rank("index", &index, 1)?;
    expect_dtype("index", &index, INDICES)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, &replaced(&x, dim, &index)?)?;
    Plan::new(c"GatherV2", [x, index], [out], move |[x, index], [out]| {
        index::index_select(x, dim, index, out).map_err(out_of_range)
    })
}

pub(crate) fn index_add(
    x: Tensor,
    given: i64,
    index: Tensor,
    source: Tensor,
    alpha: Scalar,
    out: Tensor,
) -> Planned {
    let dim = dim(given, x.shape().len())?;
    expect_rank("index", &index, 1)?;
    expect_dtype("index", &index, INDICES)?;
    expect("out", &out, x.shape())?;
    expect("source", &source, &replaced(&x, dim, &index)?)?;
    for (name, tensor) in [("source", &source), ("out", &out)] {
        expect_dtype(name, tensor, &[x.dtype()])?;
    }
    let plan = Plan::new(c"IndexAdd", [x, index, source], [out], move |[x, index, source], [mut out]| {
        elementwise::copy(x, out.reborrow());
        let places = Places::of_slices(out.layout(), dim, index, false).map_err(out_of_range)?;
        times(source, alpha).read(|source| index::put(out, &places, source, Combine::Add, true));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn index_copy(x: Tensor, given: i64, index: Tensor, source: Tensor, out: Tensor) -> Planned {
    let dim = dim(given, x.shape().len())?;
    expect_rank("index", &index, 1)?;
    expect_dtype("index", &index, INDICES)?;
    expect("out", &out, x.shape())?;
    expect("source", &source, &replaced(&x, dim, &index)?)?;
    for (name, tensor) in [("source", &source), ("out", &out)] {
        expect_dtype(name, tensor, &[x.dtype()])?;
    }
    Plan::new(c"InplaceIndexCopy", [x, index, source], [out], move |[x, index, source], [mut out]| {
        elementwise::copy(x, out.reborrow());
        let places = Places::of_slices(out.layout(), dim, index, false).map_err(out_of_range)?;
        index::put(out, &places, source, Combine::Replace, true);
        Ok(())
    })
}

pub(crate) fn embedding_renorm(x: Tensor, indices: Tensor, max_norm: f64, norm: f64) -> Planned {
    expect_rank("x", &x, 2)?;
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("indices", &indices, INDICES)?;
    let plan = Plan::new(c"Renorm", [indices], [x], move |[indices], [x]| {
        index::renormalize(x, indices, max_norm, norm).map_err(out_of_range)
    });
    plan.map(Plan::with_workspace)
}

fn times(x: View<'_>, alpha: Scalar) -> Temporary {
    let product = Temporary::of(x, x.dtype());
    let factor = Temporary::filled(alpha, x.dtype(), x.shape());
    factor.read(|factor| product.write(|to| elementwise::binary_in_place(Mul, to, factor)));
    product
}

/// The shape of `x` with as many slices along `dim` as there are indices.
fn replaced(x: &Tensor, dim: usize, index: &Tensor) -> crate::error::Result<Vec<usize>> {
    let mut shape = x.shape().to_vec();
    match shape.get_mut(dim) {
        Some(size) => *size = index.shape()[0],
        None => fail!(code::NN_PARAM_INVALID, "x has no dimensions, expected at least one"),
    }
    Ok(shape)
}

/// The failure of a kernel that met an index beyond its table.
pub(super) fn out_of_range(OutOfRange { index, size }: OutOfRange) -> Failure {
    Failure::new(code::RT_AICORE_EXCEPTION, format!("index {index} is out of range 0..{size}"))
}
