//! Convolutions and their gradients.

use super::cast::{FLOATS, Temporary, compute, expect_dtype, stored};
use super::matrix::Precision;
use super::optional::{placed, present};
use super::shape::{expect, expect_rank};
use super::windows::{Numbers, each, slid, window};
use crate::error::{Result, fail};
use crate::objects::Tensor;
use crate::plan::{Plan, Planned};
use cresset_acl::code;
use cresset_kernels::convolution::{self as kernels, Channels};
use cresset_kernels::{View, Window};

/// What a convolution was checked to be.
struct Sliding {
    channels: Channels,
    window: Window,
    transposed: bool,
    precision: Precision,
    /// What `out` must have.
    shape: Vec<usize>,
}

impl Sliding {
    #[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
    fn new(
        x: &Tensor,
        weight: &Tensor,
        stride: &[i64],
        padding: &[i64],
        dilation: &[i64],
        transposed: bool,
        output_padding: &[i64],
        groups: i64,
        cube: i8,
    ) -> Result<Sliding> {
        for (name, tensor) in [("x", x), ("weight", weight)] {
            expect_dtype(name, tensor, FLOATS)?;
        }
        let Some(rank) = x.shape().len().checked_sub(2).filter(|rank| (1..=3).contains(rank)) else {
            fail!(
                code::NN_PARAM_INVALID,
                "x of shape {:?} has not 1 to 3 dimensions to slide over",
                x.shape()
            );
        };
        if weight.shape().len() != x.shape().len() {
            fail!(code::NN_PARAM_INVALID, "weight {:?} for x of {:?}", weight.shape(), x.shape());
        }
        let numbers: Numbers = [
            weight.shape()[2..].to_vec(),
            each("stride", stride, rank)?,
            each("padding", &halved(padding, rank), rank)?,
            each("dilation", dilation, rank)?,
        ];
        let channels = channels(x, weight, transposed, groups)?;
        let area = &x.shape()[2..];
        let sizes = match transposed {
            true => unslid(area, &numbers, &each("output_padding", output_padding, rank)?)?,
            false => slid(area, &numbers)?,
        };
        let shape = [&[x.shape()[0], channels.groups * channels.outputs], &sizes[..]].concat();
        let (large, small) = if transposed { (&sizes[..], area) } else { (area, &sizes[..]) };
        let window = window(large, &numbers, small);
        Ok(Sliding { channels, window, transposed, precision: Precision::new(cube, x.dtype())?, shape })
    }

    /// Multiplications and additions.
    fn flops(&self, x: &Tensor) -> u64 {
        let small = if self.transposed { x.shape() } else { &self.shape };
        let per_place = self.channels.inputs * self.channels.outputs * self.channels.groups;
        2 * (small[0] * self.window.count() * self.window.places() * per_place) as u64
    }
}

/// Padding may be told for both ends of each dimension; here both must be the same.
fn halved(padding: &[i64], rank: usize) -> Vec<i64> {
    let pairs = padding.chunks_exact(2);
    if padding.len() == 2 * rank && pairs.clone().all(|pair| pair[0] == pair[1]) {
        return pairs.map(|pair| pair[0]).collect();
    }
    padding.to_vec()
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
    let how =
        Sliding::new(&x, &weight, &stride, &padding, &dilation, transposed, &output_padding, groups, cube)?;
    expect("out", &out, &how.shape)?;
    expect_dtype("out", &out, FLOATS)?;
    if let Some(bias) = &bias {
        expect("bias", bias, &how.shape[1..2])?;
    }
    let (dtype, biased, flops) = (x.dtype(), bias.is_some(), how.flops(&x));
    let bias = bias.unwrap_or_else(|| weight.clone());
    let run = if transposed { kernels::convolve_transposed } else { kernels::convolve };
    let kernel = if transposed { c"Conv2DTranspose" } else { c"Conv2D" };
    let plan = compute(kernel, [x, weight, bias], dtype, out, dtype, move |[x, weight, bias], out| {
        how.precision.apply([x, weight], |[x, weight]| {
            run(x, weight, biased.then_some(bias), how.channels, &how.window, out);
        });
    });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

#[expect(clippy::too_many_arguments, reason = "as many as the operator has")]
pub(crate) fn convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    _bias: Option<Vec<i64>>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    transposed: bool,
    output_padding: Vec<i64>,
    groups: i32,
    mask: Vec<bool>,
    cube: i8,
    to_x: Option<Tensor>,
    to_weight: Option<Tensor>,
    to_bias: Option<Tensor>,
) -> Planned {
    let groups = groups.into();
    let how =
        Sliding::new(&x, &weight, &stride, &padding, &dilation, transposed, &output_padding, groups, cube)?;
    expect("grad", &grad, &how.shape)?;
    let wanted = |at: usize, name: &str, tensor: Option<Tensor>, shape: &[usize]| {
        let tensor = tensor.filter(|_| mask.get(at) == Some(&true));
        if let Some(tensor) = &tensor {
            expect(name, tensor, shape)?;
            expect_dtype(name, tensor, FLOATS)?;
        }
        Ok(tensor)
    };
    let (writes, given) = present([
        wanted(0, "to_x", to_x, x.shape())?,
        wanted(1, "to_weight", to_weight, weight.shape())?,
        wanted(2, "to_bias", to_bias, &how.shape[1..2])?,
    ]);
    let flops = how.flops(&x) * (given[0] as u64 + given[1] as u64);
    let dtype = x.dtype();
    let plan = Plan::lists(c"Conv2DBackprop", vec![grad, x, weight], writes, move |reads, writes| {
        let copies = [reads[0], reads[1], reads[2]].map(|x| Temporary::of(x, dtype));
        let locks = copies.each_ref().map(Temporary::lock);
        let [grad, x, weight]: [View<'_>; 3] = std::array::from_fn(|at| copies[at].view(&locks[at]));
        let [to_x, to_weight, to_bias] = placed(given, writes);
        how.precision.apply([grad, x, weight], |[grad, x, weight]| {
            let Channels { groups, inputs, outputs } = how.channels;
            let back = Channels { groups, inputs: outputs, outputs: inputs };
            if let Some(out) = to_x {
                let run = if how.transposed { kernels::convolve } else { kernels::convolve_transposed };
                stored(out, dtype, |out| run(grad, weight, None, back, &how.window, out));
            }
            if let Some(out) = to_weight {
                stored(out, dtype, |out| match how.transposed {
                    true => kernels::convolve_weights(x, grad, back, &how.window, out),
                    false => kernels::convolve_weights(grad, x, how.channels, &how.window, out),
                });
            }
        });
        if let Some(out) = to_bias {
            stored(out, dtype, |out| kernels::sum_channels(grad, out));
        }
        Ok(())
    });
    plan.map(|plan| plan.on_cube().with_flops(flops))
}

pub(crate) fn conv_tbc(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    padding: i64,
    out: Tensor,
    cube: i8,
) -> Planned {
    for (name, tensor) in [("x", &x), ("weight", &weight), ("out", &out)] {
        expect_rank(name, tensor, 3)?;
    }
    // Time, batch, channels as batch, channels, time; the weight's places last.
    let turned = |x: &Tensor, order: [usize; 3]| x.with_layout(x.layout().permute(&order));
    let (x, out) = (turned(&x, [1, 2, 0]), turned(&out, [1, 2, 0]));
    let weight = turned(&weight, [2, 1, 0]);
    convolution(x, weight, Some(bias), vec![1], vec![padding], vec![1], false, vec![0], 1, out, cube)
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
