//! Kernels: one call of the device's library per operator, or a few.
//!
//! Files hold families of operators, as those of `cresset_tensor::ops` do. What an operator means
//! is what its host kernel does; where the library differs (types that meet, empty lists of
//! dimensions, overlapping operands), the kernel here makes up for it. Which element types work is
//! the library's say.

mod activation;
mod arithmetic;
mod arrange;
mod attention;
mod compare;
mod copy;
mod index;
mod loss;
mod many;
mod matrix;
mod normalization;
mod optimizer;
mod order;
mod reduce;
mod resample;
mod sequence;
mod softmax;
mod special;
mod svd;
mod ternary;
mod unary;
mod windows;

use crate::aclnn;
use cresset_tensor::{DType, Key, Operand, Output, Result, Scalar, Spec, Tensor};

/// Plugs all kernels into the tables of their operators.
pub(crate) fn register(npu: Key) {
    activation::register(npu);
    arithmetic::register(npu);
    arrange::register(npu);
    attention::register(npu);
    compare::register(npu);
    copy::register(npu);
    index::register(npu);
    loss::register(npu);
    matrix::register(npu);
    normalization::register(npu);
    optimizer::register(npu);
    order::register(npu);
    reduce::register(npu);
    resample::register(npu);
    sequence::register(npu);
    softmax::register(npu);
    special::register(npu);
    svd::register(npu);
    ternary::register(npu);
    unary::register(npu);
    windows::register(npu);
}

const ONE: Scalar = Scalar::Int(1);

/// New memory beside `x`, contents undefined.
fn beside(x: &Tensor, shape: &[usize], dtype: DType) -> Result<Tensor> {
    Tensor::allocate(Spec::new(shape, dtype), x.device())
}

/// One value everywhere, beside `x`.
fn filled(x: &Tensor, shape: &[usize], dtype: DType, value: impl Into<Scalar>) -> Result<Tensor> {
    let out = beside(x, shape, dtype)?;
    aclnn::inplace_fill_scalar(&out, value.into())?;
    Ok(out)
}

/// A number by itself as a line of one: the library counts dimensions from one on.
fn lined(x: &Tensor) -> Result<Tensor> {
    if x.dim() == 0 { x.reshape([1]) } else { Ok(x.clone()) }
}

/// An operand as a tensor of `dtype` on the device of `out`; a number has no dimensions.
fn operand(given: Operand<'_>, dtype: DType, out: &Tensor) -> Result<Tensor> {
    match given {
        Operand::Tensor(tensor) => converted(tensor, dtype),
        Operand::Scalar(number) => filled(out, &[], dtype, number),
    }
}

/// The elements of `x` as `dtype`, converted if need be.
fn converted(x: &Tensor, dtype: DType) -> Result<Tensor> {
    if x.dtype() == dtype { Ok(x.clone()) } else { copied(x, dtype) }
}

/// The elements of `x` as `dtype`, in memory that changing `target` does not touch.
///
/// Where both are the same view, every element is read before it is written, so that may stay.
fn apart(x: &Tensor, target: &Tensor) -> Result<Tensor> {
    let overlaps = x.storage().same_as(target.storage()) && x.layout() != target.layout();
    if overlaps { copied(x, target.dtype()) } else { converted(x, target.dtype()) }
}

fn copied(x: &Tensor, dtype: DType) -> Result<Tensor> {
    let out = beside(x, x.shape(), dtype)?;
    aclnn::inplace_copy(&out, x)?;
    Ok(out)
}
