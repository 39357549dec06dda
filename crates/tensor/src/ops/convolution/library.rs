//! What memory the library takes by which torch convolves, oneDNN on a processor with AVX2: copies of its
//! operands in blocks of channels, and room to work in.
//!
//! A transposed convolution is the gradient of a plain one, so it is counted as one of the three things that
//! the library does for that: convolve, and find the gradients of input and weight.

use super::Convolution;
use crate::{DType, Device, Result, Tensor};

/// Channels that the library keeps side by side.
const BLOCK: usize = 8;

/// What it adds to memory that it works in, to begin where it likes.
const ALIGNMENT: usize = 128;

fn blocks(channels: usize) -> usize {
    channels.next_multiple_of(BLOCK)
}

/// The plain convolution behind what is asked for, its sizes in elements.
struct Problem<'a> {
    op: &'a Convolution,
    samples: usize,
    inputs: usize,
    outputs: usize,
    /// Elements of a channel of the input, of the output, and of a window.
    input: &'a [usize],
    output: &'a [usize],
    window: &'a [usize],
}

/// How the library goes about something.
#[derive(PartialEq)]
enum Way {
    /// In blocks of channels.
    Blocks,
    /// Windows of one element, which are picked out first where they lie apart.
    Points,
    /// What windows see is unfolded and multiplied.
    Unfolds,
    /// Channels last, for gradients of an input that windows skip places of.
    ChannelsLast,
}

fn area(sizes: &[usize]) -> usize {
    sizes.iter().product()
}

impl<'a> Problem<'a> {
    fn new(op: &'a Convolution, x: &'a Tensor, weight: &'a Tensor, out: &'a [usize]) -> Problem<'a> {
        let (x, weight) = (x.shape(), weight.shape());
        let (input, output) = if op.transposed { (out, x) } else { (x, out) };
        Problem {
            op,
            samples: x[0],
            inputs: input[1],
            outputs: output[1],
            input: &input[2..],
            output: &output[2..],
            window: &weight[2..],
        }
    }

    fn strided(&self) -> bool {
        self.op.stride.iter().any(|&stride| stride > 1)
    }

    fn dilated(&self) -> bool {
        self.op.dilation.iter().any(|&dilation| dilation > 1)
    }

    fn each(&self) -> [usize; 2] {
        [self.inputs / self.op.groups, self.outputs / self.op.groups]
    }

    fn depthwise(&self) -> bool {
        self.op.groups > 1 && self.each() == [1, 1]
    }

    /// Whether groups do not fill blocks.
    fn uneven(&self) -> bool {
        self.op.groups > 1 && !self.depthwise() && self.each().iter().any(|channels| channels % BLOCK != 0)
    }

    /// Whether the first window sees nothing but padding.
    fn starts_outside(&self) -> bool {
        (0..self.window.len())
            .any(|dim| self.op.padding[dim] > self.op.dilation[dim] * (self.window[dim] - 1))
    }

    /// Whether windows are points that meet the whole input.
    fn points(&self) -> bool {
        let whole = |dim: usize| self.input[dim].is_multiple_of(self.op.stride[dim]);
        self.window.len() == 2
            && self.op.groups == 1
            && area(self.window) == 1
            && self.op.padding.iter().all(|&padding| padding == 0)
            && (0..2).all(whole)
    }

    fn forward_way(&self) -> Way {
        match () {
            () if self.uneven() || self.starts_outside() => Way::Unfolds,
            () if self.points() => Way::Points,
            () => Way::Blocks,
        }
    }

    fn input_way(&self) -> Way {
        let skips = self.dilated() && (self.strided() || self.depthwise());
        match () {
            () if self.uneven() || skips => Way::Unfolds,
            () if self.strided() && self.op.groups == 1 => Way::ChannelsLast,
            () => Way::Blocks,
        }
    }

    fn weight_way(&self) -> Way {
        let deep = self.window.len() == 3 && self.op.padding[0] > 0;
        match () {
            () if self.uneven() || self.dilated() || deep || self.starts_outside() => Way::Unfolds,
            () if self.points() => Way::Points,
            () => Way::Blocks,
        }
    }

    /// Whether the library reads the few channels of the input as they lie.
    fn flat(&self) -> bool {
        self.op.groups == 1 && self.inputs < BLOCK
    }

    /// Bytes of the input, the output and the weight as they are.
    fn plain_input(&self) -> usize {
        4 * self.samples * self.inputs * area(self.input)
    }

    fn plain_output(&self) -> usize {
        4 * self.samples * self.outputs * area(self.output)
    }

    fn plain_weight(&self) -> usize {
        4 * self.outputs * self.each()[0] * area(self.window)
    }

    /// Bytes of them in blocks.
    fn input_blocks(&self) -> usize {
        4 * self.samples * blocks(self.inputs) * area(self.input)
    }

    fn output_blocks(&self) -> usize {
        4 * self.samples * blocks(self.outputs) * area(self.output)
    }

    fn weight_blocks(&self) -> usize {
        match self.op.groups {
            1 => 4 * blocks(self.outputs) * blocks(self.inputs) * area(self.window),
            groups if self.depthwise() => 4 * blocks(groups) * area(self.window),
            _ => self.plain_weight(),
        }
    }

    /// Bytes of a weight for an input that is read as it lies.
    fn flat_weight(&self) -> usize {
        4 * blocks(self.outputs) * self.inputs * area(self.window)
    }

    /// Bytes of a bias that does not fill its blocks, added to what is worked in.
    fn padded_bias(&self) -> usize {
        if self.outputs.is_multiple_of(BLOCK) { 0 } else { 4 * blocks(self.outputs) + ALIGNMENT }
    }

    /// Bytes of what the windows of a sample see in a group; of a volume, in one slice.
    fn seen(&self) -> usize {
        let slice = &self.output[self.output.len().saturating_sub(2)..];
        4 * self.each()[0] * area(self.window) * area(slice) + ALIGNMENT
    }

    /// Bytes of the elements that strides leave of an input of points.
    fn picked(&self) -> usize {
        if self.strided() { 4 * blocks(self.inputs) * area(self.output) + ALIGNMENT } else { 0 }
    }

    /// Bytes that the way over channels works in; more where a row has a rest.
    fn channels_last_room(&self) -> usize {
        let last = self.input.len() - 1;
        let even = self.input[last].is_multiple_of(self.op.stride[last]);
        if even { 36_888 } else { 57_368 }
    }

    /// Channels of the input as that way pads them.
    fn wide_inputs(&self) -> usize {
        let last = self.input.len() - 1;
        match self.inputs {
            ..=32 => blocks(self.inputs),
            inputs if self.input[last] == 4 * self.op.stride[last] => inputs.next_multiple_of(3 * BLOCK),
            inputs => inputs.next_multiple_of(2 * BLOCK),
        }
    }
}

/// Bytes of copies of operands, and of room to work in.
struct Bytes {
    copies: usize,
    room: usize,
}

impl Problem<'_> {
    fn forward(&self, bias: bool) -> Bytes {
        let bias = if bias { self.padded_bias() } else { 0 };
        match self.forward_way() {
            Way::Unfolds => Bytes { copies: self.plain_output(), room: self.seen() },
            Way::Points => {
                let copies = self.input_blocks() + self.weight_blocks() + self.output_blocks();
                Bytes { copies, room: self.picked() + bias }
            }
            _ if self.flat() => Bytes { copies: self.flat_weight() + self.output_blocks(), room: bias },
            _ => {
                let copies = self.input_blocks() + self.weight_blocks() + self.output_blocks();
                Bytes { copies, room: bias }
            }
        }
    }

    fn input_gradient(&self) -> Bytes {
        match self.input_way() {
            Way::Unfolds => Bytes { copies: self.plain_input(), room: self.seen() },
            Way::ChannelsLast => {
                let weight = 4 * self.outputs * self.wide_inputs() * area(self.window);
                let copies = self.plain_output() + weight + self.plain_input();
                Bytes { copies, room: self.channels_last_room() }
            }
            _ => {
                let copies = self.input_blocks() + self.weight_blocks() + self.output_blocks();
                Bytes { copies, room: 0 }
            }
        }
    }

    fn weight_gradient(&self, bias: bool) -> Bytes {
        let padded = if bias && !self.depthwise() { self.padded_bias() } else { 0 };
        match self.weight_way() {
            // They are added up in four times their size.
            Way::Unfolds => {
                let sums = 4 * self.plain_weight() + ALIGNMENT;
                Bytes { copies: self.plain_weight(), room: self.seen() + sums }
            }
            way => {
                // Three channels, those of a colour, are read as they lie.
                let flat = way == Way::Blocks && self.flat() && self.inputs == 3;
                let (input, weight) =
                    if flat { (0, self.flat_weight()) } else { (self.input_blocks(), self.weight_blocks()) };
                let picked = if way == Way::Points { self.picked() } else { 0 };
                Bytes { copies: input + weight + self.output_blocks(), room: picked + padded }
            }
        }
    }
}

/// Room that one thing the library does takes inside of another.
fn nested(room: usize) -> usize {
    if room == 0 { 0 } else { room + ALIGNMENT }
}

/// Whether the library writes its output with channels last.
pub(super) fn is_channels_last(op: &Convolution, x: &Tensor, weight: &Tensor, out: &[usize]) -> bool {
    op.transposed && Problem::new(op, x, weight, out).input_way() == Way::ChannelsLast
}

/// Whether the library writes the gradient of the input with channels last.
pub(super) fn is_gradient_channels_last(op: &Convolution, [grad, x, weight]: [&Tensor; 3]) -> bool {
    !op.transposed && Problem::new(op, x, weight, grad.shape()).input_way() == Way::ChannelsLast
}

/// Memory that the library works in while it convolves.
pub(super) fn forward(
    op: &Convolution,
    x: &Tensor,
    weight: &Tensor,
    out: &Tensor,
    bias: bool,
) -> Result<Tensor> {
    let problem = Problem::new(op, x, weight, out.shape());
    if !op.transposed {
        let Bytes { copies, room } = problem.forward(bias);
        return taken(copies + room);
    }
    let Bytes { copies, room } = problem.input_gradient();
    // A bias is added apart, unless channels come last.
    let added = match problem.input_way() {
        Way::ChannelsLast => 0,
        Way::Unfolds if bias => problem.plain_input() + ALIGNMENT,
        _ if bias => problem.input_blocks() + ALIGNMENT,
        _ => 0,
    };
    taken(copies + nested(room) + added)
}

/// Memory that the library works in while it computes the gradients that are wanted of input, weight and bias.
pub(super) fn backward(
    op: &Convolution,
    [grad, x, weight]: [&Tensor; 3],
    wanted: [bool; 3],
) -> Result<Tensor> {
    let problem = Problem::new(op, x, weight, grad.shape());
    let [of_input, of_weight] = if op.transposed {
        let (input, weight) = (problem.forward(false), problem.weight_gradient(false));
        [input.copies + nested(input.room), weight.copies + nested(weight.room)]
    } else {
        let (input, weight) = (problem.input_gradient(), problem.weight_gradient(wanted[2]));
        [input.copies + input.room, weight.copies + weight.room]
    };
    let bias = if wanted[2] { 4 * grad.shape()[1] } else { 0 };
    let first = if wanted[0] { of_input } else { 0 };
    let second = if wanted[1] || wanted[2] { of_weight + bias } else { 0 };
    taken(first + second)
}

fn taken(bytes: usize) -> Result<Tensor> {
    Tensor::uninit(&[bytes], DType::U8, Device::CPU)
}
