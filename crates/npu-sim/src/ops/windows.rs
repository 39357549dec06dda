//! What sliding windows see, laid out.

use super::cast::{FLOATS, expect_dtype};
use super::shape::expect;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::Window;
use cresset_kernels::convolution::{col2im, im2col as unfold};

/// How windows slide, a number for each dimension: kernel, stride, padding, dilation.
pub(super) type Numbers = [Vec<usize>; 4];

/// Numbers that are not negative, as many as there are dimensions.
pub(super) fn each(name: &str, given: &[i64], rank: usize) -> Result<Vec<usize>> {
    let numbers: Vec<usize> = given.iter().filter_map(|&number| usize::try_from(number).ok()).collect();
    match (numbers.len() == given.len(), numbers.len()) {
        (true, 1) => Ok(vec![numbers[0]; rank]),
        (true, count) if count == rank => Ok(numbers),
        _ => fail!(code::NN_PARAM_INVALID, "{name} is {given:?}, expected {rank} numbers from 0 on"),
    }
}

/// Up to three numbers as exactly three, after as many of `first` as are missing.
pub(super) fn three(numbers: &[usize], first: usize) -> [usize; 3] {
    let mut three = [first; 3];
    three[3 - numbers.len()..].copy_from_slice(numbers);
    three
}

pub(super) fn window(
    input: &[usize],
    [kernel, stride, padding, dilation]: &Numbers,
    output: &[usize],
) -> Window {
    Window {
        input: three(input, 1),
        kernel: three(kernel, 1),
        stride: three(stride, 1),
        padding: three(padding, 0),
        dilation: three(dilation, 1),
        output: three(output, 1),
    }
}

/// How many windows fit.
pub(super) fn slid(input: &[usize], [kernel, stride, padding, dilation]: &Numbers) -> Result<Vec<usize>> {
    let fit = |dim: usize| {
        let reach = dilation[dim] * kernel[dim].checked_sub(1)? + 1;
        (input[dim] + 2 * padding[dim]).checked_sub(reach)?.checked_div(stride[dim]).map(|count| count + 1)
    };
    match (0..input.len()).map(fit).collect() {
        Some(sizes) => Ok(sizes),
        None => fail!(code::NN_PARAM_INVALID, "windows of {kernel:?} do not fit on {input:?}"),
    }
}

pub(crate) fn im2col(
    x: Tensor,
    kernel: Vec<i64>,
    dilation: Vec<i64>,
    padding: Vec<i64>,
    stride: Vec<i64>,
    out: Tensor,
) -> Planned {
    expect_dtype("x", &x, FLOATS)?;
    expect_dtype("out", &out, &[x.dtype()])?;
    let Some(first) = x.shape().len().checked_sub(3).filter(|&batch| batch <= 1) else {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} is no image", x.shape());
    };
    let (image, numbers) = (&x.shape()[first + 1..], unfolding(&kernel, &dilation, &padding, &stride)?);
    let window = window(image, &numbers, &slid(image, &numbers)?);
    let last = [x.shape()[first] * window.places(), window.count()];
    expect("out", &out, &[&x.shape()[..first], &last].concat())?;
    Plan::new(c"Im2col", [x], [out], move |[x], [out]| {
        unfold(x, &window, out);
        Ok(())
    })
}

pub(crate) fn im2col_backward(
    grad: Tensor,
    image: Vec<i64>,
    kernel: Vec<i64>,
    dilation: Vec<i64>,
    padding: Vec<i64>,
    stride: Vec<i64>,
    out: Tensor,
) -> Planned {
    expect_dtype("grad", &grad, FLOATS)?;
    expect_dtype("out", &out, &[grad.dtype()])?;
    let image = each("image", &image, 2)?;
    let numbers = unfolding(&kernel, &dilation, &padding, &stride)?;
    let window = window(&image, &numbers, &slid(&image, &numbers)?);
    let Some(first) = out.shape().len().checked_sub(3).filter(|&at| out.shape()[at + 1..] == image) else {
        fail!(code::NN_PARAM_INVALID, "out of shape {:?} is no image of {image:?}", out.shape());
    };
    let last = [out.shape()[first] * window.places(), window.count()];
    expect("grad", &grad, &[&out.shape()[..first], &last].concat())?;
    let plan = Plan::new(c"Col2im", [grad], [out], move |[grad], [out]| {
        col2im(grad, &window, out);
        Ok(())
    });
    plan.map(Plan::with_workspace)
}

fn unfolding(kernel: &[i64], dilation: &[i64], padding: &[i64], stride: &[i64]) -> Result<Numbers> {
    Ok([
        each("kernel", kernel, 2)?,
        each("stride", stride, 2)?,
        each("padding", padding, 2)?,
        each("dilation", dilation, 2)?,
    ])
}
