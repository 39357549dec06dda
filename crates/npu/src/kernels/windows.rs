//! What sliding windows see: convolution, pooling and unfolding.

use super::{beside, converted};
use crate::aclnn;
use cresset_acl::constant::cube::KEEP_DTYPE;
use cresset_tensor::ops::*;
use cresset_tensor::{Cause, DType, Error, Kernel, Key, Op, Result, Tensor};

pub(super) fn register(npu: Key) {
    ConvolutionOverrideable::table()
        .register(npu, |op, ([x, weight], bias), out| convolve(&op.0, x, weight, bias, out));
    ConvolutionBackward::table().register(npu, |op, [grad, x, weight], to| {
        let how = &op.convolution;
        let [to_x, to_weight, to_bias] = to.each_ref().map(Option::as_ref);
        aclnn::convolution_backward(
            grad,
            x,
            weight,
            Some(&[grad.shape()[1]]),
            &how.stride,
            &how.padding,
            &how.dilation,
            how.transposed,
            &how.output_padding,
            how.groups as i32,
            &op.wanted,
            KEEP_DTYPE,
            to_x,
            to_weight,
            to_bias,
        )
    });
    maxima(npu);
    averages(npu);
    Im2col::table().register(npu, |op, [x], out| {
        let [kernel, dilation, padding, stride] = unfolding(&op.0);
        aclnn::im2col(x, &kernel, &dilation, &padding, &stride, out)
    });
    Col2im::table().register(npu, |op, [columns], out| {
        let [kernel, dilation, padding, stride] = unfolding(&op.windows);
        aclnn::im2col_backward(columns, &op.image, &kernel, &dilation, &padding, &stride, out)
    });
}

fn convolve(
    op: &Convolution,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    out: &Tensor,
) -> Result<()> {
    if !out.dtype().is_float() {
        let text =
            format_args!("the npu convolves floats, not {}; convert with to_dtype() first", out.dtype());
        return Err(Error::new(Cause::NoKernel, Convolution::NAME, text));
    }
    if out.numel() == 0 {
        return Ok(());
    }
    let groups = op.groups as i64;
    aclnn::convolution(
        x,
        weight,
        bias,
        &op.stride,
        &op.padding,
        &op.dilation,
        op.transposed,
        &op.output_padding,
        groups,
        out,
        KEEP_DTYPE,
    )
}

/// One line per number of dimensions: the library's operators.
macro_rules! maxima {
    ($npu:ident; $($op:ident: $call:ident, $back:ident: $back_call:ident, over $rank:literal;)*) => {$(
        $op::table().register($npu, |op, [x], [out, indices]| {
            let [kernel, stride, padding, dilation] = pooling(&op.0, $rank);
            found(indices, |indices| {
                aclnn::$call(x, &kernel, &stride, &padding, &dilation, op.0.ceil_mode, out, indices)
            })
        });
        $back::table().register($npu, |op, [grad, x, indices], out| {
            let [kernel, stride, padding, dilation] = pooling(&op.0, $rank);
            let (indices, ceil) = (converted(indices, DType::I32)?, op.0.ceil_mode);
            aclnn::$back_call(grad, x, &indices, &kernel, &stride, &padding, &dilation, ceil, out)
        });
    )*};
}

fn maxima(npu: Key) {
    maxima! { npu;
        MaxPool2d: max_pool2d_with_indices, MaxPool2dBackward: max_pool2d_with_indices_backward, over 2;
        MaxPool3d: max_pool3d_with_argmax, MaxPool3dBackward: max_pool3d_with_argmax_backward, over 3;
    }
    AdaptiveMaxPool2d::table().register(npu, |op, [x], [out, indices]| match out.numel() {
        0 => Ok(()),
        _ => aclnn::adaptive_max_pool2d(x, &op.output, out, indices),
    });
    // Each gradient is added where its maximum was.
    AdaptiveMaxPool2dBackward::table().register(npu, |_, [grad, x, indices], out| {
        aclnn::inplace_zero(out)?;
        if grad.numel() == 0 {
            return Ok(());
        }
        let (planes, area) = (&x.shape()[..x.dim() - 2], x.shape()[x.dim() - 2..].iter().product());
        let windows = grad.shape()[grad.dim() - 2..].iter().product();
        let flat = |x: &Tensor, size: usize| x.reshape([planes, &[size]].concat());
        let target = flat(out, area)?;
        let (index, source) = (flat(indices, windows)?, flat(grad, windows)?);
        aclnn::scatter_add(
            &super::copied(&target, out.dtype())?,
            planes.len() as i64,
            &index,
            &source,
            &target,
        )
    });
}

fn averages(npu: Key) {
    AvgPool2d::table().register(npu, |op, [x], out| {
        let op = &op.0;
        let ([kernel, stride, padding, _], ceil) = (pooling(&op.windows, 2), op.windows.ceil_mode);
        let (divisor, counts) = (op.divisor_override.unwrap_or(0), op.count_include_pad);
        aclnn::avg_pool2d(x, &kernel, &stride, &padding, ceil, counts, divisor, KEEP_DTYPE, out)
    });
    AvgPool2dBackward::table().register(npu, |op, [grad, x], out| {
        let op = &op.0;
        let ([kernel, stride, padding, _], ceil) = (pooling(&op.windows, 2), op.windows.ceil_mode);
        let (divisor, counts) = (op.divisor_override.unwrap_or(0), op.count_include_pad);
        aclnn::avg_pool2d_backward(
            grad, x, &kernel, &stride, &padding, ceil, counts, divisor, KEEP_DTYPE, out,
        )
    });
    AvgPool3d::table().register(npu, |op, [x], out| {
        let op = &op.0;
        let ([kernel, stride, padding, _], ceil) = (pooling(&op.windows, 3), op.windows.ceil_mode);
        let (divisor, counts) = (op.divisor_override.unwrap_or(0), op.count_include_pad);
        aclnn::avg_pool3d(x, &kernel, &stride, &padding, ceil, counts, divisor, out)
    });
    AvgPool3dBackward::table().register(npu, |op, [grad, x], out| {
        let op = &op.0;
        let ([kernel, stride, padding, _], ceil) = (pooling(&op.windows, 3), op.windows.ceil_mode);
        let (divisor, counts) = (op.divisor_override.unwrap_or(0), op.count_include_pad);
        aclnn::avg_pool3d_backward(grad, x, &kernel, &stride, &padding, ceil, counts, divisor, out)
    });
    AdaptiveAvgPool2d::table()
        .register(npu, |op, [x], out| some(out, || aclnn::adaptive_avg_pool2d(x, &op.output, out)));
    AdaptiveAvgPool2dBackward::table()
        .register(npu, |_, [grad, x], out| some(out, || aclnn::adaptive_avg_pool2d_backward(grad, x, out)));
    AdaptiveAvgPool3d::table()
        .register(npu, |op, [x], out| some(out, || aclnn::adaptive_avg_pool3d(x, &op.output, out)));
    AdaptiveAvgPool3dBackward::table()
        .register(npu, |_, [grad, x], out| some(out, || aclnn::adaptive_avg_pool3d_backward(grad, x, out)));
}

/// Nothing is to be done for a result without elements.
fn some(out: &Tensor, call: impl FnOnce() -> Result<()>) -> Result<()> {
    if out.numel() == 0 { Ok(()) } else { call() }
}

/// The library finds places as 32-bit numbers.
fn found(indices: &Tensor, find: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let narrow = beside(indices, indices.shape(), DType::I32)?;
    find(&narrow)?;
    aclnn::inplace_copy(indices, &narrow)
}

/// Kernel, stride, padding and dilation, a number for each dimension.
fn pooling(windows: &Pooling, rank: usize) -> [Vec<usize>; 4] {
    let stride = if windows.stride.is_empty() { &windows.kernel } else { &windows.stride };
    [&windows.kernel, stride, &windows.padding, &windows.dilation].map(|numbers| each(numbers, rank))
}

/// Kernel, dilation, padding and stride, a number for each dimension.
fn unfolding(windows: &Unfolding) -> [Vec<usize>; 4] {
    [&windows.kernel, &windows.dilation, &windows.padding, &windows.stride].map(|numbers| each(numbers, 2))
}

fn each(numbers: &[isize], rank: usize) -> Vec<usize> {
    match numbers {
        [one] => vec![*one as usize; rank],
        all => all.iter().map(|&number| number as usize).collect(),
    }
}
