//! Normalization of rows, channels and groups of them.

use super::{beside, converted, copied, filled};
use crate::aclnn;
use cresset_tensor::ops::{
    FusedRmsNorm, NativeBatchNorm, NativeGroupNorm, NativeLayerNorm, Normalization, Normalized,
};
use cresset_tensor::{DType, Kernel, Key, Result, Scalar, Tensor};

pub(super) fn register(npu: Key) {
    NativeLayerNorm::table().register(npu, |op, [x, weight, bias], [out, mean, rstd]| {
        let x = given(x);
        let normalized = &x.shape()[x.dim() - op.dims..];
        aclnn::layer_norm(x, normalized, weight, bias, op.epsilon, out, Some(mean), Some(rstd))
    });
    // The library wants a weight, so there are ones.
    FusedRmsNorm::table().register(npu, |op, [x, weight], [out, rstd]| {
        let x = given(x);
        let weight = match weight {
            Some(weight) => converted(weight, x.dtype())?,
            None => filled(x, &x.shape()[x.dim() - op.dims..], x.dtype(), 1)?,
        };
        if x.numel() == 0 { Ok(()) } else { aclnn::rms_norm(x, &weight, op.epsilon, out, rstd) }
    });
    NativeBatchNorm::table().register(npu, batch_norm);
    NativeGroupNorm::table().register(npu, group_norm);
    NativeLayerNorm::gradient_table().register(npu, |op, from, to| {
        let Normalized { grad, x, weight, mean, scale } = from;
        let normalized = &x.shape()[x.dim() - op.dims..];
        let [to_x, to_weight, to_bias] = to.each_ref().map(Option::as_ref);
        aclnn::layer_norm_backward(
            grad,
            x,
            normalized,
            given(mean),
            given(scale),
            weight,
            None,
            &wanted(to),
            to_x,
            to_weight,
            to_bias,
        )
    });
    FusedRmsNorm::gradient_table().register(npu, rms_norm_gradient);
    NativeBatchNorm::gradient_table().register(npu, |op, from, to| {
        let Normalized { grad, x, weight, mean, scale } = from;
        let (channels, dtype) = (&x.shape()[1..2], given(mean).dtype());
        let ones = weight.is_none().then(|| filled(x, channels, dtype, 1)).transpose()?;
        let [running_mean, running_variance] = op.running.each_ref().map(Option::as_ref);
        let [to_x, to_weight, to_bias] = to.each_ref().map(Option::as_ref);
        aclnn::batch_norm_backward(
            grad,
            x,
            weight.or(ones.as_ref()),
            running_mean,
            running_variance,
            mean,
            scale,
            op.training,
            op.epsilon,
            &wanted(to),
            to_x,
            to_weight,
            to_bias,
        )
    });
    NativeGroupNorm::gradient_table().register(npu, group_norm_gradient);
}

/// Which gradients are wanted: those that there is room for.
fn wanted(to: &[Option<Tensor>; 3]) -> [bool; 3] {
    to.each_ref().map(Option::is_some)
}

/// The library gives both gradients, that of the weight in single precision, and wants a weight.
fn rms_norm_gradient(op: &FusedRmsNorm, from: Normalized<'_>, to: &[Option<Tensor>; 3]) -> Result<()> {
    let Normalized { grad, x, weight, scale, .. } = from;
    let normalized = &x.shape()[x.dim() - op.dims..];
    let weight = match weight {
        Some(weight) => converted(weight, x.dtype())?,
        None => filled(x, normalized, x.dtype(), 1)?,
    };
    let [to_x, to_weight, _] = to;
    let of_x = to_x.clone().map_or_else(|| beside(x, x.shape(), x.dtype()), Ok)?;
    let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let of_weight = beside(x, normalized, wide)?;
    aclnn::rms_norm_grad(grad, x, given(scale), &weight, &of_x, &of_weight)?;
    to_weight.as_ref().map_or(Ok(()), |to_weight| aclnn::inplace_copy(to_weight, &of_weight))
}

/// As the other way round, in the precision of mean and spread.
fn group_norm_gradient(op: &NativeGroupNorm, from: Normalized<'_>, to: &[Option<Tensor>; 3]) -> Result<()> {
    let Normalized { grad, x, weight, mean, scale } = from;
    let (mean, scale) = (given(mean), given(scale));
    let dtype = mean.dtype();
    let [n, c] = [x.shape()[0], x.shape()[1]];
    let area = x.shape()[2..].iter().product::<usize>();
    let weight = weight.map(|weight| converted(weight, dtype)).transpose()?;
    // Memory of the type that the library gives.
    let mut wide = [None, None, None];
    for (wide, to) in wide.iter_mut().zip(to) {
        *wide = match to {
            Some(to) if to.dtype() == dtype => Some(to.clone()),
            Some(to) => Some(beside(to, to.shape(), dtype)?),
            None => None,
        };
    }
    let statistics = [n, op.groups];
    let [to_x, to_weight, to_bias] = wide.each_ref().map(Option::as_ref);
    aclnn::group_norm_backward(
        &converted(grad, dtype)?,
        &converted(x, dtype)?,
        &mean.reshape(statistics)?,
        &scale.reshape(statistics)?,
        weight.as_ref(),
        n as i64,
        c as i64,
        area as i64,
        op.groups as i64,
        &wanted(to),
        to_x,
        to_weight,
        to_bias,
    )?;
    for (wide, to) in wide.iter().zip(to) {
        if let (Some(wide), Some(to)) = (wide, to)
            && to.dtype() != dtype
        {
            aclnn::inplace_copy(to, wide)?;
        }
    }
    Ok(())
}

fn given(x: Option<&Tensor>) -> &Tensor {
    x.expect("the first input is always given")
}

/// The library wants all parameters, so there are ones and zeros where none are given.
fn batch_norm(
    op: &NativeBatchNorm,
    [x, weight, bias, mean, variance]: [Option<&Tensor>; 5],
    [out, saved_mean, saved_rstd]: &[Tensor; 3],
) -> Result<()> {
    let x = given(x);
    let (channels, dtype) = (&x.shape()[1..2], saved_mean.dtype());
    let or = |given: Option<&Tensor>, value: i64| match given {
        Some(given) => Ok(given.clone()),
        None => filled(x, channels, dtype, value),
    };
    let (weight, bias, mean, variance) = (or(weight, 1)?, or(bias, 0)?, or(mean, 0)?, or(variance, 1)?);
    aclnn::batch_norm(
        x,
        Some(&weight),
        Some(&bias),
        Some(&mean),
        Some(&variance),
        op.training,
        op.momentum,
        op.epsilon,
        out,
        Some(saved_mean),
        Some(saved_rstd),
    )?;
    if op.training {
        return Ok(());
    }
    // What was used instead of the batch's own; the library leaves that to who asks.
    aclnn::inplace_copy(saved_mean, &mean)?;
    let wide = copied(&variance, dtype)?;
    aclnn::inplace_adds(&wide, Scalar::Float(op.epsilon), super::ONE)?;
    aclnn::rsqrt(&wide, saved_rstd)
}

/// The library finds mean and spread in the type of the elements, which half precision is not enough for.
fn group_norm(
    op: &NativeGroupNorm,
    [x, weight, bias]: [Option<&Tensor>; 3],
    [out, mean, rstd]: &[Tensor; 3],
) -> Result<()> {
    let (x, dtype) = (given(x), mean.dtype());
    let [n, c] = [x.shape()[0], x.shape()[1]];
    let area = x.shape()[2..].iter().product::<usize>();
    let parameter = |given: Option<&Tensor>| given.map(|given| converted(given, dtype)).transpose();
    let (weight, bias) = (parameter(weight)?, parameter(bias)?);
    let wide = if out.dtype() == dtype { out.clone() } else { beside(out, out.shape(), dtype)? };
    let statistics = [n, op.groups];
    aclnn::group_norm(
        &converted(x, dtype)?,
        weight.as_ref(),
        bias.as_ref(),
        n as i64,
        c as i64,
        area as i64,
        op.groups as i64,
        op.epsilon,
        &wide,
        &mean.reshape(statistics)?,
        &rstd.reshape(statistics)?,
    )?;
    if matches!(out.dtype(), DType::F16 | DType::BF16) { aclnn::inplace_copy(out, &wide) } else { Ok(()) }
}
