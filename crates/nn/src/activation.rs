//! Activations as modules, to stand in a [`Sequential`](crate::Sequential).
//!
//! Options are fields, with torch's defaults: `LeakyRelu { negative_slope: 0.2 }`, or
//! `LeakyRelu::default()`.

use crate::check::{refused, within};
use crate::{Forward, Hooks, Module, Overwrite, Parameter, Training, functional};
use cresset_tensor::ops::Approximate;
use cresset_tensor::{Result, Tensor};

/// A line per activation without options: the method that computes it, with its arguments if it has any.
macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident: $method:ident $(($($argument:expr),+))?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Module)]
        pub struct $name;

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$method($($($argument),+)?)
            }
        }
    )*};
}

/// The same for those with options, and their defaults.
macro_rules! tunable {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $option:ident: $ty:ty = $default:expr),+ }: $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Module)]
        pub struct $name {
            $($(#[$about])* #[module(skip)] pub $option: $ty),+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($option: $default),+ }
            }
        }

        impl Forward for $name {
            type Output = Tensor;

            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$method($(self.$option),+)
            }
        }
    )*};
}

fixed! {
    /// The larger of each element and 0.
    Relu: relu;
    /// Elements kept within 0 and 6.
    Relu6: hardtanh(0.0, 6.0);
    /// `1 / (1 + e^-x)`
    Sigmoid: sigmoid;
    /// The hyperbolic tangent.
    Tanh: tanh;
    /// `log(1 / (1 + e^-x))`
    LogSigmoid: logsigmoid;
    /// The exponential unit with the numbers that keep mean and variance.
    Selu: selu;
    /// `x / (1 + e^-x)`
    Silu: silu;
    /// `x * tanh(log(1 + e^x))`
    Mish: mish;
    /// `(x + 3) / 6`, kept within 0 and 1.
    Hardsigmoid: hardsigmoid;
    /// `x` times its hard sigmoid.
    Hardswish: hardswish;
    /// `x / (1 + |x|)`
    Softsign: softsign;
    /// `x - tanh(x)`
    Tanhshrink: tanhshrink;
}

tunable! {
    /// `x`, or `negative_slope * x` where that is negative.
    LeakyRelu {
        /// What negative elements are multiplied by.
        negative_slope: f64 = 0.01
    }: leaky_relu;
    /// `x`, or `alpha * (e^x - 1)` where `x` is negative.
    Elu {
        /// How far below 0 the output gets.
        alpha: f64 = 1.0
    }: elu;
    /// `x`, or `alpha * (e^(x / alpha) - 1)` where `x` is negative.
    Celu {
        /// How far below 0 the output gets.
        alpha: f64 = 1.0
    }: celu;
    /// `log(1 + e^(beta x)) / beta`, or `x` itself where `beta x` exceeds the `threshold`.
    Softplus {
        /// How sharp the bend is.
        beta: f64 = 1.0,
        /// From where on the output is the input.
        threshold: f64 = 20.0
    }: softplus;
    /// Elements kept within `min_val` and `max_val`.
    Hardtanh {
        /// The smallest output.
        min_val: f64 = -1.0,
        /// The largest output.
        max_val: f64 = 1.0
    }: hardtanh;
    /// Elements beyond `lambd` of 0, and 0 for the others.
    Hardshrink {
        /// How far from 0 elements count.
        lambd: f64 = 0.5
    }: hardshrink;
    /// Elements moved towards 0 by `lambd`.
    Softshrink {
        /// How far they are moved.
        lambd: f64 = 0.5
    }: softshrink;
    /// `x` times the share of a normal distribution below it.
    Gelu {
        /// Exactly, or by way of a hyperbolic tangent.
        approximate: Approximate = Approximate::None
    }: gelu;
    /// The first half along `dim` times the sigmoid of the second.
    Glu {
        /// The dimension that is halved.
        dim: isize = -1
    }: glu;
}

/// `x` where that is above the `threshold`, and `value` elsewhere.
#[derive(Clone, Copy, Debug, Module)]
pub struct Threshold {
    pub(crate) threshold: f64,
    pub(crate) value: f64,
}

impl Threshold {
    /// `x` where that is above the `threshold`, and `value` elsewhere.
    pub fn new(threshold: f64, value: f64) -> Threshold {
        Threshold { threshold, value }
    }
}

impl Forward for Threshold {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.threshold(self.threshold, self.value)
    }
}

/// `x`, or `weight * x` where that is negative: a leaky rectifier that learns its slope.
#[derive(Module)]
pub struct Prelu {
    /// A slope for all channels, or one for each.
    pub weight: Parameter,
    hooks: Hooks,
}

impl Prelu {
    /// One slope for all channels, 0.25 at first.
    pub fn new() -> Result<Prelu> {
        Ok(Prelu { weight: Parameter::new(Tensor::full([1], 0.25, ())?)?, hooks: Hooks::default() })
    }

    /// A slope for each of so many channels, or 1 for all.
    ///
    /// # Errors
    /// For 0.
    pub fn num_parameters(self, num_parameters: usize) -> Result<Prelu> {
        within("Prelu", "num_parameters", num_parameters, num_parameters > 0, "at least 1")?;
        let start = self.weight.tensor().detach()?.slice(0, 0..1, 1)?;
        self.weight.replace(start.expand([num_parameters])?.copy()?)?;
        Ok(self)
    }

    /// The slope at first.
    pub fn init(self, init: f64) -> Result<Prelu> {
        let shape = self.weight.tensor().shape().to_vec();
        self.weight.replace(Tensor::full(shape, init, ())?)?;
        Ok(self)
    }
}

impl Forward for Prelu {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.prelu(&self.weight.tensor())
    }
}

/// A leaky rectifier whose slope is drawn anew for each element while it trains, and the mean of the
/// bounds otherwise.
#[derive(Module)]
pub struct Rrelu {
    lower: f64,
    upper: f64,
    training: Training,
}

impl Rrelu {
    /// Slopes from `lower` to `upper`.
    ///
    /// # Errors
    /// If `lower` is above `upper`.
    pub fn new(lower: f64, upper: f64) -> Result<Rrelu> {
        if lower <= upper {
            return Ok(Rrelu { lower, upper, training: Training::default() });
        }
        Err(refused("Rrelu", format_args!("lower is {lower}, expected at most upper, which is {upper}")))
    }
}

impl Default for Rrelu {
    /// Slopes from an eighth to a third.
    fn default() -> Rrelu {
        Rrelu { lower: 0.125, upper: 1.0 / 3.0, training: Training::default() }
    }
}

impl Forward for Rrelu {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        functional::rrelu(input, self.lower, self.upper, self.training.is_on())
    }
}

impl Overwrite for Rrelu {
    fn overwrite(&self, input: &Tensor) -> Result<()> {
        functional::rrelu_(input, self.lower, self.upper, self.training.is_on())
    }
}
