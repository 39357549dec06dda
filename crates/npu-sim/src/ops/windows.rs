//! What sliding windows see: convolution and unfolding.

use super::cast::{FLOATS, compute, expect_dtype};
use super::shape::expect;
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::convolution::{self as kernels, Channels};
use cresset_kernels::{Window, convolution::col2im};

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

fn window(input: &[usize], [kernel, stride, padding, dilation]: &Numbers, output: &[usize]) -> Window {
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
fn slid(input: &[usize], [kernel, stride, padding, dilation]: &Numbers) -> Result<Vec<usize>> {
    let fit = |dim: usize| {
        let reach = dilation[dim] * kernel[dim].checked_sub(1)? + 1;
        (input[dim] + 2 * padding[dim]).checked_sub(reach)?.checked_div(stride[dim]).map(|count| count + 1)
    };
    match (0..input.len()).map(fit).collect() {
        Some(sizes) => Ok(sizes),
        None => fail!(code::NN_PARAM_INVALID, "windows of {kernel:?} do not fit on {input:?}"),
    }
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn convolution(
    x: Tensor,
    weight: Tensor,
    bias: Option<Tensor>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    transposed: bool,
    output_padding: Vec<i64>,
    groups: i64,
    out: Tensor,
    cube: i8,
) -> Planned {
    super::matrix::expect_precision(cube)?;
    for (name, tensor) in [("x", &x), ("weight", &weight), ("out", &out)] {
        expect_dtype(name, tensor, FLOATS)?;
    }
    let Some(rank) = x.shape().len().checked_sub(2).filter(|rank| (1..=3).contains(rank)) else {
        fail!(code::NN_PARAM_INVALID, "x of shape {:?} has not 1 to 3 dimensions to slide over", x.shape());
    };
    if weight.shape().len() != x.shape().len() {
        fail!(code::NN_PARAM_INVALID, "weight {:?} for x of {:?}", weight.shape(), x.shape());
    }
    let numbers: Numbers = [
        weight.shape()[2..].to_vec(),
        each("stride", &stride, rank)?,
        each("padding", &padding, rank)?,
        each("dilation", &dilation, rank)?,
    ];
    let channels = channels(&x, &weight, transposed, groups)?;
    let more = each("output_padding", &output_padding, rank)?;
    let sizes = match transposed {
        true => unslid(&x.shape()[2..], &numbers, &more)?,
        false => slid(&x.shape()[2..], &numbers)?,
    };
    let count = channels.groups * channels.outputs;
    expect("out", &out, &[&[x.shape()[0], count], &sizes[..]].concat())?;
    if let Some(bias) = &bias {
        expect("bias", bias, &[count])?;
    }
    let (large, small) = if transposed { (&out, &x) } else { (&x, &out) };
    let window = window(&large.shape()[2..], &numbers, &small.shape()[2..]);
    let (dtype, biased) = (x.dtype(), bias.is_some());
    let bias = bias.unwrap_or_else(|| weight.clone());
    let run = if transposed { kernels::convolve_transposed } else { kernels::convolve };
    let kernel = if transposed { c"Conv2DTranspose" } else { c"Conv2D" };
    let plan = compute(kernel, [x, weight, bias], dtype, out, dtype, move |[x, weight, bias], out| {
        run(x, weight, biased.then_some(bias), channels, &window, out);
    });
    plan.map(Plan::on_cube)
}

fn channels(x: &Tensor, weight: &Tensor, transposed: bool, groups: i64) -> Result<Channels> {
    let (groups, given) = (groups.max(0) as usize, x.shape()[1]);
    let (first, second) = (weight.shape()[0], weight.shape()[1]);
    let expected = if transposed { first } else { second * groups };
    if groups == 0 || first % groups != 0 || given != expected {
        fail!(
            code::NN_PARAM_INVALID,
            "weight {:?} in {groups} groups for x of {:?}",
            weight.shape(),
            x.shape()
        );
    }
    let (inputs, outputs) = if transposed { (first / groups, second) } else { (second, first / groups) };
    Ok(Channels { groups, inputs, outputs })
}

/// The sizes that so many windows reach over, and some more.
fn unslid(
    count: &[usize],
    [kernel, stride, padding, dilation]: &Numbers,
    more: &[usize],
) -> Result<Vec<usize>> {
    let reach = |dim: usize| {
        let wide =
            count[dim].checked_sub(1)? * stride[dim] + dilation[dim] * (kernel[dim] - 1) + more[dim] + 1;
        wide.checked_sub(2 * padding[dim])
    };
    match (0..count.len()).map(reach).collect() {
        Some(sizes) => Ok(sizes),
        None => fail!(code::NN_PARAM_INVALID, "{count:?} windows of {kernel:?} reach over nothing"),
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
        kernels::im2col(x, &window, out);
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
