//! Averages and maxima of what windows see, and their gradients.

use super::cast::{FLOATS, Temporary, converted, expect_dtype, stored};
use super::matrix::Precision;
use super::shape::expect;
use super::windows::{Numbers, each, three};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::DType;
use cresset_kernels::pooling::{self, Span, Windows};
use std::ffi::CStr;

/// The sizes that windows slide over: the last ones, after channels and perhaps samples.
pub(super) fn area(x: &Tensor, rank: usize) -> Result<&[usize]> {
    match x.shape().len().checked_sub(rank).filter(|first| (1..=2).contains(first)) {
        Some(first) => Ok(&x.shape()[first..]),
        None => fail!(code::NN_PARAM_INVALID, "x of shape {:?} has not {rank} sizes to pool", x.shape()),
    }
}

/// What each window sees. Rounded up, windows may reach beyond the end, but none may begin there.
pub(super) fn slide(
    input: &[usize],
    [kernel, stride, padding, dilation]: &Numbers,
    ceil: bool,
    count_padding: bool,
) -> Result<Windows> {
    let mut spans = Vec::new();
    for dim in 0..input.len() {
        let (size, step, pad) = (input[dim], dilation[dim], padding[dim]);
        let reach = step * kernel[dim].saturating_sub(1) + 1;
        let Some(room) = (size + 2 * pad).checked_sub(reach).filter(|_| kernel[dim] * stride[dim] * step > 0)
        else {
            fail!(code::NN_PARAM_INVALID, "windows of {kernel:?} do not fit on {input:?}");
        };
        let mut count = if ceil { room.div_ceil(stride[dim]) } else { room / stride[dim] } + 1;
        if ceil && (count - 1) * stride[dim] >= size + pad {
            count -= 1;
        }
        let span = |i: usize| {
            let first = i * stride[dim];
            let end = (first + reach).saturating_sub(pad).min(size);
            let start = first + pad.saturating_sub(first).div_ceil(step) * step - pad;
            let counted = (first + reach).min(size + 2 * pad) - first;
            Span {
                start,
                end,
                step,
                count: if count_padding { counted } else { end.saturating_sub(start).max(1) },
            }
        };
        spans.push((0..count).map(span).collect());
    }
    Ok(plane(input, spans))
}

/// Windows that share the input evenly.
fn share(input: &[usize], output: &[usize]) -> Windows {
    let spans = |dim: usize| {
        let (size, count) = (input[dim], output[dim]);
        let span = |i: usize| {
            let (start, end) = (i * size / count, ((i + 1) * size).div_ceil(count));
            Span { start, end, step: 1, count: end - start }
        };
        (0..count).map(span).collect()
    };
    plane(input, (0..input.len()).map(spans).collect())
}

fn plane(input: &[usize], mut spans: Vec<Vec<Span>>) -> Windows {
    while spans.len() < 3 {
        spans.insert(0, vec![Span { start: 0, end: 1, step: 1, count: 1 }]);
    }
    let spans = spans.try_into().expect("windows slide over three dimensions at most");
    Windows { input: three(input, 1), spans }
}

/// The shape that pooling gives.
pub(super) fn pooled(x: &Tensor, windows: &Windows, rank: usize) -> Vec<usize> {
    let sizes = windows.spans[3 - rank..].iter().map(Vec::len);
    x.shape()[..x.shape().len() - rank].iter().copied().chain(sizes).collect()
}

pub(super) fn numbers(
    rank: usize,
    kernel: &[i64],
    stride: &[i64],
    padding: &[i64],
    dilation: &[i64],
) -> Result<Numbers> {
    Ok([
        each("kernel", kernel, rank)?,
        each("stride", if stride.is_empty() { kernel } else { stride }, rank)?,
        each("padding", padding, rank)?,
        each("dilation", dilation, rank)?,
    ])
}

/// One line per number of dimensions.
macro_rules! maxima {
    ($($name:ident = $kernel:literal, $back:ident = $back_kernel:literal, over $rank:literal;)*) => {$(
        #[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
        pub(crate) fn $name(
            x: Tensor,
            kernel: Vec<i64>,
            stride: Vec<i64>,
            padding: Vec<i64>,
            dilation: Vec<i64>,
            ceil: bool,
            out: Tensor,
            indices: Tensor,
        ) -> Planned {
            let numbers = numbers($rank, &kernel, &stride, &padding, &dilation)?;
            let windows = slide(area(&x, $rank)?, &numbers, ceil, false)?;
            maximum($kernel, x, windows, $rank, out, indices, DType::I32)
        }

        #[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
        pub(crate) fn $back(
            grad: Tensor,
            x: Tensor,
            indices: Tensor,
            kernel: Vec<i64>,
            stride: Vec<i64>,
            padding: Vec<i64>,
            dilation: Vec<i64>,
            ceil: bool,
            out: Tensor,
        ) -> Planned {
            let numbers = numbers($rank, &kernel, &stride, &padding, &dilation)?;
            let windows = slide(area(&x, $rank)?, &numbers, ceil, false)?;
            expect("grad", &grad, &pooled(&x, &windows, $rank))?;
            expect("indices", &indices, grad.shape())?;
            expect("out", &out, x.shape())?;
            expect_dtype("indices", &indices, &[DType::I32])?;
            expect_dtype("out", &out, &[grad.dtype()])?;
            let area = area(&x, $rank)?.iter().product();
            let plan = Plan::new($back_kernel, [grad, indices], [out], move |[grad, indices], [out]| {
                converted(indices, DType::I64, |indices| pooling::maximum_backward(grad, indices, area, out));
                Ok(())
            });
            plan.map(Plan::with_workspace)
        }
    )*};
}

maxima! {
    max_pool2d_with_indices = c"MaxPool3DWithArgmaxV2",
        max_pool2d_with_indices_backward = c"MaxPool3DGradWithArgmax", over 2;
    max_pool3d_with_argmax = c"MaxPool3DWithArgmaxV2",
        max_pool3d_with_argmax_backward = c"MaxPool3DGradWithArgmax", over 3;
}

/// The first dimension may be missing: an image by itself.
#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn max_pool(
    x: Tensor,
    kernel: Vec<i64>,
    stride: Vec<i64>,
    auto: i64,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil: i64,
    out: Tensor,
) -> Planned {
    let pairs: Vec<&[i64]> = padding.chunks(2).collect();
    if auto != 0 || pairs.iter().any(|pair| pair.len() != 2 || pair[0] != pair[1]) {
        fail!(code::NN_PARAM_INVALID, "padding {padding:?} by rule {auto} is not simulated");
    }
    let padding: Vec<i64> = pairs.iter().map(|pair| pair[0]).collect();
    let numbers = numbers(2, &kernel, &stride, &padding, &dilation)?;
    let windows = slide(area(&x, 2)?, &numbers, ceil != 0, false)?;
    expect("out", &out, &pooled(&x, &windows, 2))?;
    expect_dtype("out", &out, &[x.dtype()])?;
    let plan = Plan::new(c"MaxPoolV3", [x], [out], move |[x], [out]| {
        let indices = Temporary::new(DType::I64, out.shape());
        indices.write(|indices| pooling::maximum(x, &windows, out, indices));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

pub(crate) fn adaptive_max_pool2d(x: Tensor, size: Vec<i64>, out: Tensor, indices: Tensor) -> Planned {
    let windows = share(area(&x, 2)?, &each("size", &size, 2)?);
    maximum(c"AdaptiveMaxPool2d", x, windows, 2, out, indices, DType::I64)
}

fn maximum(
    kernel: &'static CStr,
    x: Tensor,
    windows: Windows,
    rank: usize,
    out: Tensor,
    indices: Tensor,
    places: DType,
) -> Planned {
    expect("out", &out, &pooled(&x, &windows, rank))?;
    expect("indices", &indices, out.shape())?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect_dtype("indices", &indices, &[places])?;
    let plan = Plan::new(kernel, [x], [out, indices], move |[x], [out, indices]| {
        stored(indices, DType::I64, |indices| pooling::maximum(x, &windows, out, indices));
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// What averages are divided by, if not by how many elements there are.
fn divisor_of(given: i64) -> Option<f64> {
    (given != 0).then_some(given as f64)
}

/// One line per number of dimensions: the operator and its gradient; some are told a precision.
macro_rules! averages {
    ($($name:ident = $kernel:literal, $back:ident = $back_kernel:literal, over $rank:literal $(, $cube:ident)?;)*) => {$(
        #[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
        pub(crate) fn $name(
            x: Tensor,
            kernel: Vec<i64>,
            stride: Vec<i64>,
            padding: Vec<i64>,
            ceil: bool,
            count_padding: bool,
            divisor: i64,
            $($cube: i8,)?
            out: Tensor,
        ) -> Planned {
            $(Precision::new($cube, x.dtype())?;)?
            let numbers = numbers($rank, &kernel, &stride, &padding, &[1])?;
            let windows = slide(area(&x, $rank)?, &numbers, ceil, count_padding)?;
            averaged($kernel, x, windows, $rank, divisor_of(divisor), out)
        }

        #[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
        pub(crate) fn $back(
            grad: Tensor,
            x: Tensor,
            kernel: Vec<i64>,
            stride: Vec<i64>,
            padding: Vec<i64>,
            ceil: bool,
            count_padding: bool,
            divisor: i64,
            $($cube: i8,)?
            out: Tensor,
        ) -> Planned {
            $(Precision::new($cube, x.dtype())?;)?
            let numbers = numbers($rank, &kernel, &stride, &padding, &[1])?;
            let windows = slide(area(&x, $rank)?, &numbers, ceil, count_padding)?;
            spread($back_kernel, grad, x, windows, $rank, divisor_of(divisor), out)
        }
    )*};
}

averages! {
    avg_pool2d = c"AvgPoolV2", avg_pool2d_backward = c"AvgPoolV2Grad", over 2, cube;
    avg_pool3d = c"AvgPool3D", avg_pool3d_backward = c"AvgPool3DGrad", over 3;
}

pub(crate) fn global_average_pool(x: Tensor, out: Tensor) -> Planned {
    let Some(rank) = x.shape().len().checked_sub(2).filter(|rank| (1..=3).contains(rank)) else {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} has no area to average", x.shape());
    };
    let windows = share(area(&x, rank)?, &vec![1; rank]);
    averaged(c"GlobalAveragePool", x, windows, rank, None, out)
}

fn averaged(
    kernel: &'static CStr,
    x: Tensor,
    windows: Windows,
    rank: usize,
    divide_by: Option<f64>,
    out: Tensor,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    expect("out", &out, &pooled(&x, &windows, rank))?;
    Plan::new(kernel, [x], [out], move |[x], [out]| {
        pooling::average(x, &windows, divide_by, out);
        Ok(())
    })
}

fn spread(
    kernel: &'static CStr,
    grad: Tensor,
    x: Tensor,
    windows: Windows,
    rank: usize,
    divide_by: Option<f64>,
    out: Tensor,
) -> Planned {
    expect_dtype("grad", &grad, FLOATS)?;
    expect_dtype("out", &out, &[grad.dtype()])?;
    expect("grad", &grad, &pooled(&x, &windows, rank))?;
    expect("out", &out, x.shape())?;
    let plan = Plan::new(kernel, [grad], [out], move |[grad], [out]| {
        pooling::average_backward(grad, &windows, divide_by, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

/// One line per number of dimensions.
macro_rules! adaptive {
    ($($name:ident = $kernel:literal, $back:ident = $back_kernel:literal, over $rank:literal;)*) => {$(
        pub(crate) fn $name(x: Tensor, size: Vec<i64>, out: Tensor) -> Planned {
            let windows = share(area(&x, $rank)?, &each("size", &size, $rank)?);
            averaged($kernel, x, windows, $rank, None, out)
        }

        pub(crate) fn $back(grad: Tensor, x: Tensor, out: Tensor) -> Planned {
            let windows = share(area(&x, $rank)?, area(&grad, $rank)?);
            spread($back_kernel, grad, x, windows, $rank, None, out)
        }
    )*};
}

adaptive! {
    adaptive_avg_pool2d = c"AdaptiveAvgPool2d", adaptive_avg_pool2d_backward = c"AdaptiveAvgPool2dGrad", over 2;
    adaptive_avg_pool3d = c"AdaptiveAvgPool3d", adaptive_avg_pool3d_backward = c"AdaptiveAvgPool3dGrad", over 3;
}
