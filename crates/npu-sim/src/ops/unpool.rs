//! Elements put back to where a maximum was found, and their gradients.

use super::cast::{INDICES, expect_dtype};
use super::numbers::{integers, numbers, store};
use super::shape::expect;
use super::windows::each;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::{View, pooling};
use std::ffi::CStr;

pub(crate) fn max_unpool2d(x: Tensor, indices: Tensor, size: Vec<i64>, out: Tensor) -> Planned {
    put_back(c"MaxUnpool2d", x, indices, &size, 2, out)
}

pub(crate) fn max_unpool3d(
    x: Tensor,
    indices: Tensor,
    size: Vec<i64>,
    _stride: Vec<i64>,
    _padding: Vec<i64>,
    out: Tensor,
) -> Planned {
    put_back(c"MaxUnpool3d", x, indices, &size, 3, out)
}

pub(crate) fn max_unpool2d_backward(
    grad: Tensor,
    x: Tensor,
    indices: Tensor,
    size: Vec<i64>,
    out: Tensor,
) -> Planned {
    taken(c"MaxUnpool2dGrad", grad, x, indices, &size, 2, out)
}

pub(crate) fn max_unpool3d_backward(
    grad: Tensor,
    x: Tensor,
    indices: Tensor,
    size: Vec<i64>,
    _stride: Vec<i64>,
    _padding: Vec<i64>,
    out: Tensor,
) -> Planned {
    taken(c"MaxUnpool3dGrad", grad, x, indices, &size, 3, out)
}

/// The gradient of a maximum over windows of any size: by the places that it kept.
pub(crate) fn adaptive_max_pool2d_backward(grad: Tensor, x: Tensor, indices: Tensor, out: Tensor) -> Planned {
    expect_dtype("indices", &indices, INDICES)?;
    expect("indices", &indices, grad.shape())?;
    expect("out", &out, x.shape())?;
    expect_dtype("out", &out, &[grad.dtype()])?;
    let area = area(&out, 2)?;
    Plan::new(c"AdaptiveMaxPool2dGrad", [grad, indices], [out], move |[grad, indices], [out]| {
        super::cast::converted(indices, cresset_kernels::DType::I64, |indices| {
            pooling::maximum_backward(grad, indices, area, out);
        });
        Ok(())
    })
}

/// How many elements there are in one plane.
fn area(x: &Tensor, rank: usize) -> Result<usize> {
    match x.shape().len().checked_sub(rank).filter(|first| (1..=2).contains(first)) {
        Some(first) => Ok(x.shape()[first..].iter().product()),
        None => fail!(code::NN_PARAM_INVALID, "a tensor of shape {:?} has no planes", x.shape()),
    }
}

/// The shape of the large planes, after checks.
fn check(x: &Tensor, indices: &Tensor, size: &[i64], rank: usize) -> Result<Vec<usize>> {
    area(x, rank)?;
    expect("indices", indices, x.shape())?;
    expect_dtype("indices", indices, INDICES)?;
    let first = x.shape().len() - rank;
    Ok([&x.shape()[..first], &each("size", size, rank)?[..]].concat())
}

fn put_back(
    kernel: &'static CStr,
    x: Tensor,
    indices: Tensor,
    size: &[i64],
    rank: usize,
    out: Tensor,
) -> Planned {
    let whole = check(&x, &indices, size, rank)?;
    expect("out", &out, &whole)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    let (small, large) = (area(&x, rank)?, area(&out, rank)?);
    Plan::new(kernel, [x, indices], [out], move |[x, indices], [out]| {
        let mut planes = vec![0.0; out.layout().len()];
        for (value, at) in numbers(x).into_iter().zip(places(indices, small, large)?) {
            planes[at] = value;
        }
        store(&planes, out);
        Ok(())
    })
}

fn taken(
    kernel: &'static CStr,
    grad: Tensor,
    x: Tensor,
    indices: Tensor,
    size: &[i64],
    rank: usize,
    out: Tensor,
) -> Planned {
    let whole = check(&x, &indices, size, rank)?;
    expect("grad", &grad, &whole)?;
    expect("out", &out, x.shape())?;
    expect_dtype("out", &out, &[grad.dtype()])?;
    let (small, large) = (area(&x, rank)?, area(&grad, rank)?);
    Plan::new(kernel, [grad, indices], [out], move |[grad, indices], [out]| {
        let grads = numbers(grad);
        let picked: Vec<f64> = places(indices, small, large)?.into_iter().map(|at| grads[at]).collect();
        store(&picked, out);
        Ok(())
    })
}

/// Where each element lies among all large planes.
fn places(indices: View<'_>, small: usize, large: usize) -> Result<Vec<usize>> {
    let place = |(at, index): (usize, i64)| match usize::try_from(index).ok().filter(|index| *index < large) {
        Some(index) => Ok(at / small.max(1) * large + index),
        None => fail!(code::RT_AICORE_EXCEPTION, "index {index} is out of range 0..{large}"),
    };
    integers(indices).into_iter().enumerate().map(place).collect()
}
