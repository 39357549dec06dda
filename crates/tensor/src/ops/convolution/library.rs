//! What memory the library takes by which torch convolves: copies of its operands in blocks of channels.

use super::Convolution;
use crate::{DType, Device, Result, Tensor};

/// Channels that the library keeps side by side.
const BLOCK: usize = 8;

/// What it adds to memory that it works in, to begin where it likes.
const ALIGNMENT: usize = 128;

/// The elements of a convolution as the library counts them.
struct Sizes {
    /// Of the input, in blocks.
    input: usize,
    /// Of the output, in blocks.
    output: usize,
    /// Of the weight, in blocks of its outputs.
    weight: usize,
    /// As `weight`, with the inputs in blocks too.
    whole_weight: usize,
    /// Of the output's channels, and of these in blocks.
    channels: [usize; 2],
    /// Of the input's channels.
    inputs: usize,
    /// Whether each channel is convolved by itself.
    depthwise: bool,
    /// Whether the library reads the few channels of the input as they lie.
    flat: bool,
}

/// Bytes of a convolution in groups that do not fill blocks: the library unfolds what windows see and multiplies.
struct Unfolded {
    input: usize,
    output: usize,
    weight: usize,
    /// What the windows of a sample see in a group.
    seen: usize,
}

enum Plan {
    Blocks(Sizes),
    Unfolds(Unfolded),
    /// Nothing is known of it.
    Else,
}

fn blocks(channels: usize) -> usize {
    channels.next_multiple_of(BLOCK)
}

/// The library has a fast way for channels that fill blocks.
fn plan(op: &Convolution, x: &[usize], weight: &[usize], out: &[usize]) -> Plan {
    let area = |shape: &[usize]| shape[2..].iter().product::<usize>();
    let (inputs, outputs, places) = (x[1], out[1], area(weight));
    let each = [inputs / op.groups, outputs / op.groups];
    let depthwise = each == [1, 1];
    if op.transposed {
        return Plan::Else;
    }
    if op.groups > 1 && !depthwise && each.iter().any(|channels| channels % BLOCK != 0) {
        let bytes = |shape: &[usize]| 4 * shape.iter().product::<usize>();
        let seen = 4 * each[0] * places * area(out) + ALIGNMENT;
        return Plan::Unfolds(Unfolded { input: bytes(x), output: bytes(out), weight: bytes(weight), seen });
    }
    let flat = op.groups == 1 && inputs < BLOCK;
    let (weight, whole_weight) = match op.groups {
        1 if flat => (blocks(outputs) * inputs * places, blocks(outputs) * blocks(inputs) * places),
        1 => (blocks(outputs) * blocks(inputs) * places, blocks(outputs) * blocks(inputs) * places),
        groups if depthwise => (blocks(groups) * places, blocks(groups) * places),
        _ => (outputs * each[0] * places, outputs * each[0] * places),
    };
    Plan::Blocks(Sizes {
        input: x[0] * blocks(inputs) * area(x),
        output: out[0] * blocks(outputs) * area(out),
        weight,
        whole_weight,
        channels: [outputs, blocks(outputs)],
        inputs,
        depthwise,
        flat,
    })
}

impl Sizes {
    /// Bytes for a bias that does not fill its blocks.
    fn padded_bias(&self) -> usize {
        let [channels, blocks] = self.channels;
        if channels == blocks { 0 } else { 4 * blocks + ALIGNMENT }
    }
}

/// Memory that the library works in while it convolves.
pub(super) fn forward(
    op: &Convolution,
    x: &Tensor,
    weight: &Tensor,
    out: &Tensor,
    bias: bool,
) -> Result<Tensor> {
    taken(match plan(op, x.shape(), weight.shape(), out.shape()) {
        Plan::Blocks(sizes) => {
            let input = if sizes.flat { 0 } else { sizes.input };
            let bias = if bias { sizes.padded_bias() } else { 0 };
            4 * (input + sizes.weight + sizes.output) + bias
        }
        Plan::Unfolds(bytes) => bytes.output + bytes.seen,
        Plan::Else => 0,
    })
}

/// Memory that the library works in while it computes the gradients that are wanted of input, weight and bias.
pub(super) fn backward(
    op: &Convolution,
    [grad, x, weight]: [&Tensor; 3],
    wanted: [bool; 3],
) -> Result<Tensor> {
    let bias = if wanted[2] { 4 * grad.shape()[1] } else { 0 };
    let [of_input, of_weight] = match plan(op, x.shape(), weight.shape(), grad.shape()) {
        Plan::Blocks(sizes) => {
            // Of three channels, those of a colour, weights get their gradient as they lie.
            let flat = sizes.flat && sizes.inputs == 3;
            let (input, weight) = if flat { (0, sizes.weight) } else { (sizes.input, sizes.whole_weight) };
            let padded = if wanted[2] && !sizes.depthwise { sizes.padded_bias() } else { 0 };
            let of_input = 4 * (sizes.input + sizes.whole_weight + sizes.output);
            [of_input, 4 * (input + weight + sizes.output) + padded]
        }
        // Gradients of the weight are added up in five times its size.
        Plan::Unfolds(bytes) => [bytes.input + bytes.seen, bytes.seen + 5 * bytes.weight + ALIGNMENT],
        Plan::Else => [0, 0],
    };
    let first = if wanted[0] { of_input } else { 0 };
    let second = if wanted[1] || wanted[2] { of_weight + bias } else { 0 };
    taken(first + second)
}

fn taken(bytes: usize) -> Result<Tensor> {
    Tensor::uninit(&[bytes], DType::U8, Device::CPU)
}
