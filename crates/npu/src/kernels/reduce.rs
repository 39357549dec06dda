//! Reductions: sums, products, extremes and where they are, truths, moments and norms.

use super::{converted, lined};
use crate::aclnn;
use cresset_tensor::ops::*;
use cresset_tensor::{DType, Kernel, Key, Result, Scalar, Tensor};

/// One line per operator that reduces some dimensions. To the library no dimensions means all, to an
/// operator it means none.
macro_rules! over_dims {
    ($npu:ident; $($op:ident: $call:ident $(, $dtype:ident)?;)*) => {$(
        $op::table().register($npu, |op, [x], out| match &op.dims[..] {
            [] => aclnn::inplace_copy(out, x),
            dims => aclnn::$call(x, dims, op.keep, $(out.$dtype(),)? out),
        });
    )*};
}

/// One line per extreme: of all, along a dimension, and where it is.
macro_rules! extremes {
    ($npu:ident; $($all:ident: $of_all:ident, $along:ident: $along_dim:ident, $place:ident: $place_of:ident;)*) => {$(
        $all::table().register($npu, |_, [x], out| aclnn::$of_all(x, out));
        $along::table().register($npu, |op, [x], [values, indices]| {
            along(aclnn::$along_dim, x, *op.dim, op.keep, [values, indices])
        });
        $place::table().register($npu, |op, [x], out| match op.dim {
            _ if x.dim() == 0 => aclnn::inplace_zero(out),
            Some(dim) => aclnn::$place_of(x, *dim as i64, op.keep, out),
            None => aclnn::$place_of(&x.reshape([x.numel()])?, 0, false, &out.reshape(())?),
        });
    )*};
}

/// One line per operator that chooses along a dimension.
macro_rules! choices {
    ($npu:ident; $($op:ident: $call:ident;)*) => {$(
        $op::table().register($npu, |op, [x], [values, indices]| {
            along(aclnn::$call, x, op.dim, op.keep, [values, indices])
        });
    )*};
}

/// One line per kind of moments: the library's operator, and whether a root is taken.
macro_rules! moments {
    ($npu:ident; $($op:ident: $call:ident, root $root:literal;)*) => {$(
        $op::table().register($npu, |op, [x], out| {
            let (correction, scale) = corrected(op.correction, x, &op.dims);
            aclnn::$call(&lined(x)?, &op.dims, correction, op.keep, out)?;
            scaled(out, scale, $root)
        });
    )*};
}

pub(super) fn register(npu: Key) {
    over_dims! { npu;
        Sum: reduce_sum, dtype;
        Mean: mean, dtype;
        Amax: amax;
        Amin: amin;
    }
    extremes! { npu;
        Max: max, MaxDim: max_dim, Argmax: arg_max;
        Min: min, MinDim: min_dim, Argmin: arg_min;
    }
    choices! { npu;
        MedianDim: median_dim;
        NanmedianDim: nan_median_dim;
    }
    moments! { npu;
        Var: var_correction, root false;
        Std: deviation, root true;
    }
    Median::table().register(npu, |_, [x], out| middle(aclnn::median, x, out));
    Nanmedian::table().register(npu, |_, [x], out| middle(aclnn::nan_median, x, out));
    Kthvalue::table().register(npu, |op, [x], [values, indices]| {
        let kth = |x: &Tensor, dim, keep, values: &Tensor, indices: &Tensor| {
            aclnn::kthvalue(x, op.k as i64, dim, keep, values, indices)
        };
        along(kth, x, op.dim, op.keep, [values, indices])
    });
    VarMean::table().register(npu, |op, [x], [variance, mean]| {
        var_mean(x, &op.dims, op.correction, op.keep, [variance, mean], false)
    });
    StdMean::table().register(npu, |op, [x], [deviation, mean]| {
        var_mean(x, &op.dims, op.correction, op.keep, [deviation, mean], true)
    });
    Prod::table().register(npu, |op, [x], out| match op.dim {
        // The product of truths is whether all are true.
        _ if out.dtype() == DType::Bool => {
            let dims: Vec<usize> = op.dim.map_or((0..x.dim()).collect(), |dim| vec![*dim]);
            truths(aclnn::all, &converted(x, DType::Bool)?, &dims, op.keep, out)
        }
        Some(dim) if x.dim() > 0 => aclnn::prod_dim(x, *dim as i64, op.keep, out.dtype(), out),
        _ => aclnn::prod(x, out.dtype(), out),
    });
    All::table().register(npu, |op, [x], out| truths(aclnn::all, x, &over(&op.dims, x), op.keep, out));
    Any::table().register(npu, |op, [x], out| truths(aclnn::any, x, &over(&op.dims, x), op.keep, out));
    VectorNorm::table().register(npu, |op, [x], out| {
        aclnn::linalg_vector_norm(x, Scalar::Float(op.order), &op.dims, op.keep, out.dtype(), out)
    });
    Histc::table().register(npu, |op, [x], out| {
        aclnn::histc(x, op.bins as i64, Scalar::Float(op.low), Scalar::Float(op.high), out)
    });
}

/// Values and indices along a dimension. A number by itself is what is chosen, and at index 0.
fn along(
    choose: impl FnOnce(&Tensor, i64, bool, &Tensor, &Tensor) -> Result<()>,
    x: &Tensor,
    dim: usize,
    keep: bool,
    [values, indices]: [&Tensor; 2],
) -> Result<()> {
    if x.dim() == 0 {
        aclnn::inplace_copy(values, x)?;
        return aclnn::inplace_zero(indices);
    }
    choose(x, dim as i64, keep, values, indices)
}

/// The middle one of all elements; of none there is none.
fn middle(call: fn(&Tensor, &Tensor) -> Result<()>, x: &Tensor, out: &Tensor) -> Result<()> {
    if x.numel() == 0 {
        return aclnn::inplace_fill_scalar(out, Scalar::Float(f64::NAN));
    }
    call(x, &lined(out)?)
}

type Truths = fn(&Tensor, &[usize], bool, &Tensor) -> Result<()>;

fn truths(call: Truths, x: &Tensor, dims: &[usize], keep: bool, out: &Tensor) -> Result<()> {
    match dims {
        [] => aclnn::ne_scalar(x, Scalar::Int(0), out),
        dims => call(x, dims, keep, out),
    }
}

fn over(dims: &Over, x: &Tensor) -> Vec<usize> {
    match dims {
        Over::All => (0..x.dim()).collect(),
        Over::One(_) if x.dim() == 0 => Vec::new(),
        Over::One(dim) => vec![**dim],
        Over::Several(dims) => dims.to_vec(),
    }
}

/// The whole correction that the library takes, and what is to be made up for.
fn corrected(correction: Option<f64>, x: &Tensor, dims: &[usize]) -> (i64, f64) {
    let correction = correction.unwrap_or(1.0);
    if correction.fract() == 0.0 {
        return (correction as i64, 1.0);
    }
    let count = dims.iter().filter_map(|&dim| x.shape().get(dim)).product::<usize>() as f64;
    (0, count / (count - correction).max(0.0))
}

fn scaled(out: &Tensor, scale: f64, root: bool) -> Result<()> {
    if scale == 1.0 {
        return Ok(());
    }
    aclnn::inplace_muls(out, Scalar::Float(if root { scale.sqrt() } else { scale }))
}

fn var_mean(
    x: &Tensor,
    dims: &[usize],
    correction: Option<f64>,
    keep: bool,
    [spread, mean]: [&Tensor; 2],
    root: bool,
) -> Result<()> {
    let (correction, scale) = corrected(correction, x, dims);
    aclnn::var_mean(&lined(x)?, dims, correction, keep, spread, mean)?;
    scaled(spread, scale, false)?;
    if root { aclnn::sqrt(&super::copied(spread, spread.dtype())?, spread) } else { Ok(()) }
}
