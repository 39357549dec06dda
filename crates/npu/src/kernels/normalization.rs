//! Normalization of rows, channels and groups of them.

use super::{beside, converted, copied, filled};
use crate::aclnn;
use cresset_tensor::ops::{FusedRmsNorm, NativeBatchNorm, NativeGroupNorm, NativeLayerNorm};
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
