//! Convolutions over one to three dimensions, and transposed ones.

mod backward;
mod library;
mod second;
mod shown;

pub use backward::*;

use super::sizes;
use super::sliding::{PerDim, per_dim, three, windows};
use crate::autocast;
use crate::autograd::Saves;
use crate::composite::composite_counting;
use crate::op::kernel_table;
use crate::{
    Backward, Cause, DType, Device, Error, Forward, Grads, Kernel, Op, Result, Spec, Tensor, composite,
};
use cresset_dispatch::observe::{self, Argument};
use cresset_kernels::convolution::{self, Channels};
use cresset_kernels::{Dims, Window};

/// How a window moves over the dimensions after the channels; numbers for each of them.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// From one window to the next.
    pub stride: Dims,
    /// How far the first window begins before the input.
    pub padding: Dims,
    /// From one place of a window to the next.
    pub dilation: Dims,
    /// Whether elements are spread over windows instead of gathered from them.
    pub transposed: bool,
    /// What a transposed convolution adds at the end of its output.
    pub output_padding: Dims,
    /// Into how many groups channels are split, each convolved by itself.
    pub groups: usize,
    /// Whether one number stands for each padding, as observers are told.
    pub short: bool,
}

/// Input and weight, and a bias.
type Operands<'a> = ([&'a Tensor; 2], Option<&'a Tensor>);

impl Convolution {
    fn rank(&self) -> usize {
        self.stride.len()
    }

    fn refused(&self, op: &'static str, what: &str, x: &Tensor, weight: &Tensor) -> Error {
        let text = format_args!(
            "{what}: input {:?}, weight {:?}, {} groups",
            x.shape(),
            weight.shape(),
            self.groups
        );
        Error::new(Cause::Shape, op, text)
    }

    /// How the channels are joined, if input and weight fit together.
    fn channels(&self, op: &'static str, x: &Tensor, weight: &Tensor) -> Result<Channels> {
        let refused = |what| Err(self.refused(op, what, x, weight));
        let dims = self.rank() + 2;
        if x.dim() != dims || weight.dim() != dims {
            return refused("expects batch, channels and one size per dimension of input and weight");
        }
        let (channels, &[first, second]) = (x.shape()[1], &[weight.shape()[0], weight.shape()[1]]);
        if self.groups == 0 || first < self.groups || !first.is_multiple_of(self.groups) {
            return refused("the weight's first size is not a multiple of the groups");
        }
        let expected = if self.transposed { first } else { second.saturating_mul(self.groups) };
        if channels != expected {
            return refused("the weight is for another number of channels");
        }
        let (inputs, outputs) =
            if self.transposed { (first / self.groups, second) } else { (second, first / self.groups) };
        Ok(Channels { groups: self.groups, inputs, outputs })
    }

    /// The output's sizes after the channels.
    fn output(&self, op: &'static str, x: &Tensor, weight: &Tensor) -> Result<Dims> {
        let mut output = Dims::new();
        for dim in 0..self.rank() {
            let (input, kernel) = (x.shape()[dim + 2], weight.shape()[dim + 2]);
            let numbers = [kernel, self.stride[dim], self.padding[dim], self.dilation[dim]];
            let size = if kernel == 0 {
                None
            } else if self.transposed {
                spread(input, numbers, self.output_padding[dim])
            } else {
                windows(input, numbers, false)
            };
            match size {
                Some(size) if size > 0 || input == 0 => output.push(size),
                _ => {
                    return Err(self.refused(op, "the weight's window does not fit on the input", x, weight));
                }
            }
        }
        Ok(output)
    }

    /// The windows that gather, from the larger tensor's sizes to the smaller one's.
    fn window(&self, large: &[usize], kernel: &[usize], small: &[usize]) -> Window {
        Window {
            input: three(&large[2..], 1),
            kernel: three(&kernel[2..], 1),
            stride: three(&self.stride, 1),
            padding: three(&self.padding, 0),
            dilation: three(&self.dilation, 1),
            output: three(&small[2..], 1),
        }
    }

    fn infer(&self, op: &'static str, ([x, weight], bias): Operands<'_>) -> Result<Spec> {
        let channels = self.channels(op, x, weight)?;
        let same = |other: &Tensor| other.dtype() == x.dtype();
        if x.dtype() == DType::Bool || !same(weight) || bias.is_some_and(|bias| !same(bias)) {
            let bias = bias.map_or("none", |bias| bias.dtype().name());
            let text = format_args!(
                "expects input, weight and bias of one number type, not {}, {} and {bias}",
                x.dtype(),
                weight.dtype()
            );
            return Err(Error::new(Cause::DType, op, text));
        }
        let count = channels.groups * channels.outputs;
        if let Some(bias) = bias.filter(|bias| bias.shape() != [count]) {
            let text = format_args!("expects a bias of shape [{count}], not {:?}", bias.shape());
            return Err(Error::new(Cause::Shape, op, text));
        }
        let last = self.output(op, x, weight)?;
        Ok(Spec::new([x.shape()[0], count].iter().chain(&last).copied().collect::<Dims>(), x.dtype()))
    }

    fn arguments(&self, ([x, weight], bias): Operands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Tensor(x.argument()));
        visit(Argument::Tensor(weight.argument()));
        visit(bias.map_or(Argument::None, |bias| Argument::Tensor(bias.argument())));
        self.visit_numbers(visit);
    }

    /// What the public function is told; torch shows nothing of a padding that is a word.
    fn visit_told(&self, word: bool, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Ints(&sizes(&self.stride)));
        let padding = sizes(&self.padding);
        visit(if word { Argument::None } else { Argument::Ints(&padding) });
        if self.transposed {
            visit(Argument::Ints(&sizes(&self.output_padding)));
            visit(Argument::Int(self.groups as i64));
            visit(Argument::Ints(&sizes(&self.dilation)));
        } else {
            visit(Argument::Ints(&sizes(&self.dilation)));
            visit(Argument::Int(self.groups as i64));
        }
    }

    fn visit_numbers(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        let told = |numbers: &Dims| sizes(if self.short { &numbers[..1] } else { numbers });
        visit(Argument::Ints(&sizes(&self.stride)));
        visit(Argument::Ints(&told(&self.padding)));
        visit(Argument::Ints(&sizes(&self.dilation)));
        visit(Argument::Bool(self.transposed));
        visit(Argument::Ints(&told(&self.output_padding)));
        visit(Argument::Int(self.groups as i64));
    }
}

/// The sizes that a transposed convolution reaches.
fn spread(input: usize, [kernel, stride, padding, dilation]: [usize; 4], more: usize) -> Option<usize> {
    let [input, kernel, stride, padding, dilation, more] =
        [input, kernel, stride, padding, dilation, more].map(|number| number as i128);
    usize::try_from((input - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1).ok()
}

impl Op for Convolution {
    const NAME: &'static str = "aten::convolution";
    const BACKWARD: &'static str = "ConvolutionBackward0";
    const SAVES: Saves = Saves::Inputs;
    type Inputs<'a> = Operands<'a>;
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        let wanted = [0, 1, 2].map(|i| ctx.needs(i));
        let bias = ctx.optional(2).map_or(0, Tensor::numel);
        let op = ConvolutionBackward { convolution: self.clone(), wanted, bias };
        Ok(op.call([ctx.grad(), ctx.saved(0), ctx.saved(1)])?.into_iter().collect())
    }

    fn arguments(&self, inputs: Operands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
        Convolution::arguments(self, inputs, visit);
    }
}

fn flops(op: &Convolution, ([x, weight], bias): Operands<'_>) -> u64 {
    let Ok(out) = Convolution::infer(op, Convolution::NAME, ([x, weight], bias)) else { return 0 };
    let small = if op.transposed { x.shape() } else { &out.shape[..] };
    // Sizes that cannot be are refused after they were counted.
    let windows = small[..1].iter().chain(&small[2..]);
    windows.fold(2 * weight.numel() as u64, |all, &size| all.saturating_mul(size as u64))
}

impl Forward for Convolution {
    fn forward(&self, inputs: Operands<'_>) -> Result<Tensor> {
        Convolution::infer(self, Self::NAME, inputs)?;
        let _span = composite("aten::_convolution", inputs, |visit| {
            self.visit_numbers(visit);
            [false, false, true, true].into_iter().for_each(|switch| visit(Argument::Bool(switch)));
        });
        let ([x, weight], _) = inputs;
        if observe::is_watched() && x.device().is_cpu() && x.numel() > 0 && weight.numel() > 0 {
            return shown::forward(self, inputs);
        }
        match x.device() {
            Device::CPU | Device::META => MkldnnConvolution(self.clone()).call(inputs),
            _ => ConvolutionOverrideable(self.clone()).call(inputs),
        }
    }
}

/// One line per kind of device: the operator that convolves there.
macro_rules! convolvers {
    ($($(#[$doc:meta])* $op:ident = $name:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $op(pub Convolution);

        impl Op for $op {
            const NAME: &'static str = $name;
            type Inputs<'a> = Operands<'a>;
            type Output = Tensor;

            fn arguments(&self, inputs: Operands<'_>, visit: &mut dyn FnMut(Argument<'_>)) {
                self.0.arguments(inputs, visit);
            }
        }

        impl Kernel for $op {
            kernel_table!($op);

            fn infer(&self, inputs: Operands<'_>) -> Result<Spec> {
                Convolution::infer(&self.0, Self::NAME, inputs)
            }

            fn cpu(&self, inputs: Operands<'_>, out: &Tensor) -> Result<()> {
                self.0.convolve(Self::NAME, inputs, out)
            }
        }
    )*};
}

convolvers! {
    /// Convolves on the host.
    MkldnnConvolution = "aten::mkldnn_convolution";
    /// Convolves on a device that is plugged in.
    ConvolutionOverrideable = "aten::convolution_overrideable";
}

impl Convolution {
    fn convolve(&self, op: &'static str, ([x, weight], bias): Operands<'_>, out: &Tensor) -> Result<()> {
        let channels = self.channels(op, x, weight)?;
        let (reading, weights, biases) = (x.read(), weight.read(), bias.map(Tensor::read));
        let bias = bias.zip(biases.as_ref()).map(|(bias, reading)| bias.elements(reading));
        let mut writing = out.write();
        let target = out.elements_mut(&mut writing);
        let (input, weight_view) = (x.elements(&reading), weight.elements(&weights));
        if self.transposed {
            let window = self.window(out.shape(), weight.shape(), x.shape());
            convolution::convolve_transposed(input, weight_view, bias, channels, &window, target);
        } else {
            let window = self.window(x.shape(), weight.shape(), out.shape());
            convolution::convolve(input, weight_view, bias, channels, &window, target);
        }
        Ok(())
    }
}

/// How far windows reach beyond the input.
#[derive(Clone, Debug)]
pub enum Margin {
    /// By so much, per dimension or for all.
    By(PerDim),
    /// So that the output has the size of the input.
    Same,
    /// Not at all, in a word.
    Valid,
}

/// The options of a convolution; one number stands for all dimensions.
#[derive(Clone, Debug)]
pub struct Convolving {
    /// From one window to the next.
    pub stride: PerDim,
    /// How far the first window begins before the input.
    pub padding: Margin,
    /// From one place of a window to the next.
    pub dilation: PerDim,
    /// Into how many groups channels are split.
    pub groups: isize,
    /// What a transposed convolution adds at the end of its output.
    pub output_padding: PerDim,
}

impl Default for Convolving {
    /// Windows at every place, none in a padding, one group.
    fn default() -> Convolving {
        let [one, zero] = [1, 0].map(|number| PerDim::from_elem(number, 1));
        Convolving {
            stride: one.clone(),
            padding: Margin::By(zero.clone()),
            dilation: one,
            groups: 1,
            output_padding: zero,
        }
    }
}

impl Convolving {
    /// The operator over `rank` dimensions, all numbers checked.
    fn over(&self, op: &'static str, rank: usize, transposed: bool, weight: &Tensor) -> Result<Convolution> {
        let numbers = |name, given: &[isize], least| per_dim(op, name, given, rank, least);
        let (stride, dilation) =
            (numbers("stride", &self.stride, 1)?, numbers("dilation", &self.dilation, 1)?);
        let output_padding = numbers("output padding", &self.output_padding, 0)?;
        let padding = match &self.padding {
            Margin::By(given) => numbers("padding", given, 0)?,
            Margin::Valid => Dims::from_elem(0, rank),
            Margin::Same if stride.iter().all(|&stride| stride == 1) => same_padding(&dilation, weight, rank),
            Margin::Same => {
                let text = format_args!("expects a stride of 1 for the same size, not {:?}", &stride[..]);
                return Err(Error::new(Cause::Argument, op, text));
            }
        };
        let Some(groups) = usize::try_from(self.groups).ok().filter(|&groups| groups > 0) else {
            let text = format_args!("expects at least one group, not {}", self.groups);
            return Err(Error::new(Cause::Argument, op, text));
        };
        if (0..rank)
            .any(|dim| output_padding[dim] > 0 && output_padding[dim] >= stride[dim].max(dilation[dim]))
        {
            let text = format_args!(
                "expects an output padding below stride or dilation, not {:?} for {:?} and {:?}",
                &output_padding[..],
                &stride[..],
                &dilation[..]
            );
            return Err(Error::new(Cause::Argument, op, text));
        }
        let short = matches!(self.padding, Margin::Valid);
        Ok(Convolution { stride, padding, dilation, transposed, output_padding, groups, short })
    }
}

/// Half of what windows reach, rounded down: the rest is padded at the end.
fn same_padding(dilation: &[usize], weight: &Tensor, rank: usize) -> Dims {
    (0..rank).map(|dim| reach(dilation, weight, dim) / 2).collect()
}

/// How far a window reaches from its first place along `dim`.
fn reach(dilation: &[usize], weight: &Tensor, dim: usize) -> usize {
    let places = weight.shape().get(dim + 2).copied().unwrap_or(1);
    dilation[dim].saturating_mul(places.saturating_sub(1))
}

impl Tensor {
    fn convolve(
        &self,
        name: &'static str,
        weight: &Tensor,
        bias: Option<&Tensor>,
        (rank, transposed): (usize, bool),
        how: &Convolving,
    ) -> Result<Tensor> {
        let op = how.over(name, rank, transposed, weight)?;
        let word = !matches!(how.padding, Margin::By(_));
        let told = |visit: &mut dyn FnMut(Argument<'_>)| op.visit_told(word, visit);
        // Torch counts those of images, where it sees all numbers.
        let counts = name == "aten::conv2d" && self.dim() == 4 && !word;
        let count = || if counts { flops(&op, ([self, weight], bias)) } else { 0 };
        let inputs = ([self, weight], bias);
        let _span = composite_counting(name, inputs, told, count);
        let again =
            |([x, weight], bias): Operands<'_>| x.convolve(name, weight, bias, (rank, transposed), how);
        if let Some(cast) = autocast::casting(name, inputs, again) {
            return cast;
        }
        let batched = self.dim() != rank + 1;
        let mut x = if batched { self.clone() } else { self.unsqueeze(0)? };
        op.channels(name, &x, weight)?;
        let mode = word.then(|| composite("aten::_convolution_mode", ([&x, weight], bias), told));
        if matches!(how.padding, Margin::Same) {
            x = x.padded_at_end(&op, weight)?;
        }
        let out = op.call(([&x, weight], bias))?;
        drop(mode);
        if batched { Ok(out) } else { out.squeeze_dim(0) }
    }

    /// Zeros after the end where windows reach an odd number of places further.
    fn padded_at_end(self, op: &Convolution, weight: &Tensor) -> Result<Tensor> {
        let odd = |dim: usize| (reach(&op.dilation, weight, dim) % 2) as isize;
        let padding: Vec<isize> = (0..op.rank()).rev().flat_map(|dim| [0, odd(dim)]).collect();
        if padding.iter().all(|&more| more == 0) { Ok(self) } else { self.constant_pad_nd(&padding, 0) }
    }
}

/// The public functions, by the number of dimensions that windows slide over.
macro_rules! convolutions {
    ($($(#[$doc:meta])* $method:ident: $name:literal, $rank:literal, $transposed:literal;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            pub fn $method(&self, weight: &Tensor, bias: Option<&Tensor>, how: &Convolving) -> Result<Tensor> {
                self.convolve($name, weight, bias, ($rank, $transposed), how)
            }
        )*}
    };
}

convolutions! {
    /// `[batch, channels, length]` convolved with a weight of `[outputs, channels / groups, places]`.
    conv1d: "aten::conv1d", 1, false;
    /// As [`conv1d`](Tensor::conv1d), over two dimensions.
    conv2d: "aten::conv2d", 2, false;
    /// As [`conv1d`](Tensor::conv1d), over three dimensions.
    conv3d: "aten::conv3d", 3, false;
    /// `[batch, channels, length]` spread with a weight of `[channels, outputs / groups, places]`:
    /// the gradient of a convolution for its input.
    conv_transpose1d: "aten::conv_transpose1d", 1, true;
    /// As [`conv_transpose1d`](Tensor::conv_transpose1d), over two dimensions.
    conv_transpose2d: "aten::conv_transpose2d", 2, true;
    /// As [`conv_transpose1d`](Tensor::conv_transpose1d), over three dimensions.
    conv_transpose3d: "aten::conv_transpose3d", 3, true;
}
