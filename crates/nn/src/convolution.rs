//! Convolutions, and their transposed forms.

use crate::check::{self, refused};
use crate::dims::signed;
use crate::forward::called;
use crate::{Forward, Hooks, Module, Parameter, PerDim, init};
use cresset_tensor::ops::{Convolving, Margin, Padding};
use cresset_tensor::{Result, Tensor};

/// What lies around the input of a convolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaddingMode {
    /// Zeros.
    #[default]
    Zeros,
    /// The input mirrored at its edges.
    Reflect,
    /// The elements at the edges.
    Replicate,
    /// The input over and over.
    Circular,
}

/// How far windows reach beyond the input: by so much, or so that the output has its size.
#[derive(Clone, Copy, Debug)]
enum Reach<const D: usize> {
    By([usize; D]),
    Same,
}

/// The windows of a convolution over `D` dimensions.
#[derive(Clone, Debug)]
struct Windows<const D: usize> {
    layer: &'static str,
    transposed: bool,
    /// In and out.
    channels: [usize; 2],
    kernel: [usize; D],
    stride: [usize; D],
    padding: Reach<D>,
    dilation: [usize; D],
    groups: usize,
    mode: PaddingMode,
    output_padding: [usize; D],
}

type Convolve = fn(&Tensor, &Tensor, Option<&Tensor>, &Convolving) -> Result<Tensor>;

impl<const D: usize> Windows<D> {
    fn new(layer: &'static str, transposed: bool, channels: [usize; 2], kernel: [usize; D]) -> Windows<D> {
        Windows {
            layer,
            transposed,
            channels,
            kernel,
            stride: [1; D],
            padding: Reach::By([0; D]),
            dilation: [1; D],
            groups: 1,
            mode: PaddingMode::Zeros,
            output_padding: [0; D],
        }
    }

    fn check(&self) -> Result<()> {
        let [inputs, outputs] = self.channels;
        check::positive(self.layer, &[("in_channels", inputs), ("out_channels", outputs)])?;
        check::all_positive(self.layer, "kernel_size", &self.kernel)?;
        check::all_positive(self.layer, "stride", &self.stride)?;
        check::all_positive(self.layer, "dilation", &self.dilation)?;
        let divides = self.groups > 0 && inputs % self.groups == 0 && outputs % self.groups == 0;
        let expected = format_args!("a divisor of in_channels {inputs} and out_channels {outputs}");
        check::within(self.layer, "groups", self.groups, divides, expected)?;
        if matches!(self.padding, Reach::Same) && self.stride != [1; D] {
            let text = format_args!("stride is {:?}, expected 1 for an output of the same size", self.stride);
            return Err(refused(self.layer, text));
        }
        let too_much = (0..D).find(|&dim| {
            self.output_padding[dim] > 0
                && self.output_padding[dim] >= self.stride[dim].max(self.dilation[dim])
        });
        match too_much {
            None => Ok(()),
            Some(dim) => {
                let text = format_args!(
                    "output_padding is {:?}, expected less than {} in dimension {dim}: the larger of stride and dilation",
                    self.output_padding,
                    self.stride[dim].max(self.dilation[dim])
                );
                Err(refused(self.layer, text))
            }
        }
    }

    /// The shape of the weight; all but its first dimension are what an output is computed from,
    /// which is how torch starts transposed convolutions too.
    fn weight_shape(&self) -> Vec<usize> {
        let [inputs, outputs] = self.channels;
        let [first, second] = if self.transposed { [inputs, outputs] } else { [outputs, inputs] };
        [first, second / self.groups].into_iter().chain(self.kernel).collect()
    }

    fn fan_in(&self) -> usize {
        self.weight_shape()[1..].iter().product()
    }

    fn weight(&self) -> Result<Parameter> {
        Parameter::new(init::fan_in_uniform(self.weight_shape(), self.fan_in())?)
    }

    fn bias(&self) -> Result<Parameter> {
        Parameter::new(init::fan_in_uniform([self.channels[1]], self.fan_in())?)
    }

    /// How much windows reach over each edge, the last dimension first.
    fn edges(&self) -> Vec<isize> {
        let both = |dim: usize| match self.padding {
            Reach::By(padding) => [padding[dim]; 2],
            Reach::Same => {
                let total = self.dilation[dim] * (self.kernel[dim] - 1);
                [total / 2, total - total / 2]
            }
        };
        (0..D).rev().flat_map(both).map(|edge| edge as isize).collect()
    }

    fn run(&self, x: &Tensor, weight: &Parameter, bias: Option<&Parameter>, how: Convolve) -> Result<Tensor> {
        self.run_with(x, weight, bias, how, self.output_padding)
    }

    fn run_with(
        &self,
        x: &Tensor,
        weight: &Parameter,
        bias: Option<&Parameter>,
        how: Convolve,
        output_padding: [usize; D],
    ) -> Result<Tensor> {
        let mut convolving = Convolving {
            stride: signed(&self.stride),
            padding: match &self.padding {
                Reach::By(padding) => Margin::By(signed(padding)),
                Reach::Same => Margin::Same,
            },
            dilation: signed(&self.dilation),
            groups: self.groups as isize,
            output_padding: signed(&output_padding),
        };
        let around = match self.mode {
            PaddingMode::Zeros => None,
            PaddingMode::Reflect => Some(Padding::Reflect),
            PaddingMode::Replicate => Some(Padding::Replicate),
            PaddingMode::Circular => Some(Padding::Circular),
        };
        let check = || {
            check::rank(self.layer, x, &[D + 1, D + 2])?;
            check::size(self.layer, "channels", x, x.dim() - D - 1, self.channels[0])
        };
        let padded = check::explained(around.map(|with| x.pad(&self.edges(), with)).transpose(), check)?;
        if padded.is_some() {
            convolving.padding = Margin::By(signed(&[0; D]));
        }
        let bias = bias.map(Parameter::tensor);
        check::explained(
            how(padded.as_ref().unwrap_or(x), &weight.tensor(), bias.as_ref(), &convolving),
            check,
        )
    }

    /// What is to be added to the end of the output so that it has the given sizes.
    fn padding_for(&self, x: &Tensor, sizes: [usize; D]) -> Result<[usize; D]> {
        check::rank(self.layer, x, &[D + 1, D + 2])?;
        let Reach::By(padding) = self.padding else { return Ok(self.output_padding) };
        let from = &x.shape()[x.dim() - D..];
        let mut more = [0; D];
        for dim in 0..D {
            let reach = self.dilation[dim].saturating_mul(self.kernel[dim] - 1).saturating_add(1);
            let least = (from[dim].saturating_sub(1).saturating_mul(self.stride[dim]).saturating_add(reach))
                .saturating_sub(padding[dim].saturating_mul(2));
            let most = least.saturating_add(self.stride[dim] - 1);
            let expected = format_args!("{least} to {most}");
            let name = format!("output_size in dimension {dim}");
            check::within(self.layer, &name, sizes[dim], (least..=most).contains(&sizes[dim]), expected)?;
            more[dim] = sizes[dim] - least;
        }
        Ok(more)
    }
}

/// The options that all convolutions have.
macro_rules! convolutions {
    ($($(#[$doc:meta])* $name:ident, $dims:literal, $transposed:literal: $method:path;)*) => {$(
        $(#[$doc])*
        #[derive(Module)]
        pub struct $name {
            /// Of shape `[out_channels, in_channels / groups, ..kernel_size]`; for transposed
            /// convolutions, `[in_channels, out_channels / groups, ..kernel_size]`.
            pub weight: Parameter,
            /// Of shape `[out_channels]`.
            pub bias: Option<Parameter>,
            #[module(skip)]
            windows: Windows<$dims>,
            hooks: Hooks,
        }

        impl $name {
            /// Windows of `kernel_size`, with a bias, initialised as torch does.
            ///
            /// # Errors
            /// For sizes of 0.
            pub fn new(
                in_channels: usize,
                out_channels: usize,
                kernel_size: impl PerDim<$dims>,
            ) -> Result<$name> {
                let channels = [in_channels, out_channels];
                let windows = Windows::new(stringify!($name), $transposed, channels, kernel_size.numbers());
                windows.check()?;
                let (weight, bias) = (windows.weight()?, Some(windows.bias()?));
                Ok($name { weight, bias, windows, hooks: Hooks::default() })
            }

            /// How far it is from one window to the next; 1 at first.
            pub fn stride(mut self, stride: impl PerDim<$dims>) -> Result<$name> {
                self.windows.stride = stride.numbers();
                self.checked()
            }

            /// How far windows reach beyond the input, or, transposed, how much less the output is; 0 at first.
            pub fn padding(mut self, padding: impl PerDim<$dims>) -> Result<$name> {
                self.windows.padding = Reach::By(padding.numbers());
                self.checked()
            }

            /// How far it is from one place of a window to the next; 1 at first.
            pub fn dilation(mut self, dilation: impl PerDim<$dims>) -> Result<$name> {
                self.windows.dilation = dilation.numbers();
                self.checked()
            }

            /// Into how many groups channels are split; 1 at first. The weight starts anew.
            pub fn groups(mut self, groups: usize) -> Result<$name> {
                self.windows.groups = groups;
                self = self.checked()?;
                self.weight = self.windows.weight()?;
                self.bias = self.bias.map(|_| self.windows.bias()).transpose()?;
                Ok(self)
            }

            /// With a bias, or without.
            pub fn bias(self, bias: bool) -> Result<$name> {
                let kept = self.bias.map_or_else(|| self.windows.bias(), Ok);
                Ok($name { bias: if bias { Some(kept?) } else { None }, ..self })
            }

            fn checked(self) -> Result<$name> {
                self.windows.check()?;
                Ok(self)
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                self.windows.run(input, &self.weight, self.bias.as_ref(), $method)
            }
        }
    )*};
}

convolutions! {
    /// Lines `[batch, channels, length]` seen through windows.
    ///
    /// ```
    /// use cresset_nn::{Conv1d, Forward, Tensor};
    ///
    /// let conv = Conv1d::new(2, 8, 3)?.stride(2)?.padding(1)?;
    /// assert_eq!(conv.call(&Tensor::ones([4, 2, 10], ())?)?.shape(), [4, 8, 5]);
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    Conv1d, 1, false: Tensor::conv1d;
    /// Images `[batch, channels, height, width]` seen through windows.
    ///
    /// ```
    /// use cresset_nn::{Conv2d, Forward, Tensor};
    ///
    /// let conv = Conv2d::new(3, 16, (3, 5))?.padding((1, 2))?.bias(false)?;
    /// assert_eq!(conv.call(&Tensor::ones([1, 3, 8, 8], ())?)?.shape(), [1, 16, 8, 8]);
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    Conv2d, 2, false: Tensor::conv2d;
    /// Volumes `[batch, channels, depth, height, width]` seen through windows.
    Conv3d, 3, false: Tensor::conv3d;
    /// Lines spread through windows: what the gradient of [`Conv1d`] does to its input.
    ConvTranspose1d, 1, true: Tensor::conv_transpose1d;
    /// Images spread through windows: what the gradient of [`Conv2d`] does to its input.
    ConvTranspose2d, 2, true: Tensor::conv_transpose2d;
    /// Volumes spread through windows: what the gradient of [`Conv3d`] does to its input.
    ConvTranspose3d, 3, true: Tensor::conv_transpose3d;
}

macro_rules! straight {
    ($($name:ident)*) => {$(
        impl $name {
            /// Pads so that the output has the size of the input.
            ///
            /// # Errors
            /// For a stride other than 1.
            pub fn padding_same(mut self) -> Result<$name> {
                self.windows.padding = Reach::Same;
                self.checked()
            }

            /// What lies around the input; zeros at first.
            pub fn padding_mode(mut self, mode: PaddingMode) -> Result<$name> {
                self.windows.mode = mode;
                Ok(self)
            }
        }
    )*};
}

straight! { Conv1d Conv2d Conv3d }

macro_rules! transposed {
    ($($name:ident, $dims:literal: $method:path;)*) => {$(
        impl $name {
            /// How much is added to the end of the output; 0 at first.
            pub fn output_padding(mut self, output_padding: impl PerDim<$dims>) -> Result<$name> {
                self.windows.output_padding = output_padding.numbers();
                self.checked()
            }

            /// As [`call`](Forward::call), for an output of the given size, one of those that give the input's
            /// size back.
            ///
            /// # Errors
            /// For sizes that cannot be, with those that can.
            pub fn call_to(&self, input: &Tensor, output_size: impl PerDim<$dims>) -> Result<Tensor> {
                let sizes = output_size.numbers();
                called::<Tensor, _, _>(self, input, |input: &Tensor| {
                    let more = self.windows.padding_for(input, sizes)?;
                    self.windows.run_with(input, &self.weight, self.bias.as_ref(), $method, more)
                })
            }
        }
    )*};
}

transposed! {
    ConvTranspose1d, 1: Tensor::conv_transpose1d;
    ConvTranspose2d, 2: Tensor::conv_transpose2d;
    ConvTranspose3d, 3: Tensor::conv_transpose3d;
}
