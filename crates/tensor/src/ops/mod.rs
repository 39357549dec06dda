//! The operators, one file per family.
//!
//! A file holds everything about its operators but device kernels: the public methods, the
//! declarations, shape rules, host kernels and derivatives. What a file makes public is an
//! operator, or belongs to one.

mod activation;
mod alias;
mod analytic;
mod arithmetic;
mod attention;
mod bounds;
mod choice;
mod compare;
mod convolution;
mod copy;
mod diagonal;
mod distance;
mod division;
mod embedding;
mod embedding_bag;
mod expand;
mod flip;
mod fold;
mod index;
mod join;
mod loss;
mod mask;
mod matrix;
mod nonzero;
mod normalization;
mod optimizer;
mod own_view;
mod pad;
mod pair;
mod part;
mod permute;
mod places;
mod pooling;
mod power;
mod recurrent;
mod reduce;
mod repeat;
mod resample;
mod scan;
mod scatter;
mod scatter_reduce;
mod search;
mod select_rows;
mod shuffle;
mod slice;
mod sliding;
mod softmax;
mod split;
mod squeeze;
mod strided;
mod take;
mod ternary;
mod triangle;
mod unary;
mod view;
mod windows;

pub use activation::*;
pub use alias::*;
pub use analytic::*;
pub use arithmetic::*;
pub use attention::*;
pub use bounds::*;
pub use choice::*;
pub use compare::*;
pub use convolution::*;
pub use copy::*;
pub use diagonal::*;
pub use division::*;
pub use embedding::*;
pub use embedding_bag::*;
pub use expand::*;
pub use flip::*;
pub use fold::*;
pub use index::*;
pub use join::*;
pub use loss::*;
pub use mask::*;
pub use matrix::*;
pub use nonzero::*;
pub use normalization::*;
pub use optimizer::*;
pub use own_view::OwnView;
pub use pad::*;
pub use part::*;
pub use permute::*;
pub use pooling::*;
pub use power::*;
pub use recurrent::*;
pub use reduce::*;
pub use repeat::*;
pub use resample::*;
pub use scan::*;
pub use scatter::*;
pub use scatter_reduce::*;
pub use search::*;
pub use select_rows::*;
pub use shuffle::*;
pub use slice::*;
pub use sliding::PerDim;
pub use softmax::*;
pub use split::*;
pub use squeeze::*;
pub use strided::*;
pub use take::*;
pub use ternary::*;
pub use triangle::*;
pub use unary::*;
pub use view::*;
pub use windows::*;

use crate::{Cause, Error, Result, Scalar, Spec, Tensor};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// `dim` counted from the front; negative ones count from the back.
pub(crate) fn dim_index(op: &'static str, dim: isize, rank: usize) -> Result<usize> {
    // A tensor without dimensions is treated as if it had one.
    let count = rank.max(1) as isize;
    let index = if dim < 0 { dim + count } else { dim };
    if (0..count).contains(&index) {
        return Ok(index as usize);
    }
    let text = format_args!("dimension {dim} is out of range: expected {} to {}", -count, count - 1);
    Err(Error::new(Cause::Index, op, text))
}

/// Refuses dimensions that `x` does not have, or that are named twice.
pub(crate) fn check_dims(op: &'static str, dims: &[usize], x: &Tensor) -> Result<()> {
    let repeated = dims.iter().enumerate().any(|(i, dim)| dims[..i].contains(dim));
    if !repeated && dims.iter().all(|&dim| dim < x.dim().max(1)) {
        return Ok(());
    }
    Err(Error::new(
        Cause::Index,
        op,
        format_args!("shape {:?} has no dimensions {dims:?}, each once", x.shape()),
    ))
}

/// Refuses anything but floats.
pub(crate) fn check_float(op: &'static str, x: &Tensor) -> Result<()> {
    if x.dtype().is_float() {
        return Ok(());
    }
    let text = format_args!("expects floats, not {}; convert with to_dtype() first", x.dtype());
    Err(Error::new(Cause::DType, op, text))
}

/// The shape that both broadcast to.
#[inline]
pub(crate) fn broadcast(op: &'static str, a: &[usize], b: &[usize]) -> Result<Dims> {
    if a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b) {
        return Ok(Dims::from_slice(a));
    }
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut shape = Dims::from_slice(long);
    let added = long.len() - short.len();
    for (size, &other) in shape[added..].iter_mut().zip(short) {
        match (*size, other) {
            (one, other) if one == other || other == 1 => {}
            (1, other) => *size = other,
            _ => {
                return Err(Error::new(
                    Cause::Shape,
                    op,
                    format_args!("shapes {a:?} and {b:?} do not broadcast"),
                ));
            }
        }
    }
    Ok(shape)
}

/// Refuses a gradient of another shape or type than what it is the gradient of.
pub(crate) fn check_gradient(op: &'static str, grad: &Tensor, expected: &Spec) -> Result<()> {
    if Spec::like(grad) == *expected {
        return Ok(());
    }
    let text = format_args!(
        "expects a gradient of {} and shape {:?}, not {} and {:?}",
        expected.dtype,
        &expected.shape[..],
        grad.dtype(),
        grad.shape()
    );
    Err(Error::new(Cause::Shape, op, text))
}

/// The gradient of what has no influence on something like `x`.
pub(crate) fn no_influence(x: &Tensor) -> Result<Tensor> {
    Tensor::zeros(x.shape(), (x.dtype(), x.device()))
}

/// `x * factor`, without a call where the factor is 1.
pub(crate) fn scaled(x: Tensor, factor: Scalar) -> Result<Tensor> {
    if factor.as_f64() == 1.0 { Ok(x) } else { x.mul(factor) }
}

/// A number as observers see it.
pub(crate) fn scalar_argument(scalar: Scalar) -> Argument<'static> {
    match scalar {
        Scalar::Float(value) => Argument::Float(value),
        Scalar::Int(value) => Argument::Int(value),
        Scalar::Bool(value) => Argument::Bool(value),
    }
}

/// An element type as observers see it.
pub(crate) fn dtype_argument(dtype: Option<crate::DType>) -> Argument<'static> {
    dtype.map_or(Argument::None, crate::shown::dtype_code)
}

/// Sizes as observers see them.
pub(crate) fn sizes(sizes: &[usize]) -> smallvec::SmallVec<[i64; 4]> {
    sizes.iter().map(|&size| size as i64).collect()
}
