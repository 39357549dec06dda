//! Fully connected layers.

use crate::check::{explained, positive, size};
use crate::{Forward, Hooks, Module, Parameter, init};
use cresset_tensor::{Result, Tensor};

/// `x @ weight.t() + bias`
#[derive(Module)]
pub struct Linear {
    /// Of shape `[out_features, in_features]`.
    pub weight: Parameter,
    /// Of shape `[out_features]`.
    pub bias: Option<Parameter>,
    hooks: Hooks,
}

impl Linear {
    /// A layer from `in_features` to `out_features`, with a bias, initialised as torch does.
    ///
    /// # Errors
    /// If either is 0.
    pub fn new(in_features: usize, out_features: usize) -> Result<Linear> {
        positive("Linear", &[("in_features", in_features), ("out_features", out_features)])?;
        Linear::of_any_size(in_features, out_features)
    }

    /// As [`new`](Linear::new), also for sizes of 0.
    pub(crate) fn of_any_size(in_features: usize, out_features: usize) -> Result<Linear> {
        let weight = Parameter::new(init::fan_in_uniform([out_features, in_features], in_features)?)?;
        Linear { weight, bias: None, hooks: Hooks::default() }.bias(true)
    }

    /// With a bias, or without.
    pub fn bias(self, bias: bool) -> Result<Linear> {
        let (outputs, inputs) = (self.weight.tensor().shape()[0], self.weight.tensor().shape()[1]);
        let fresh = || Parameter::new(init::fan_in_uniform([outputs], inputs)?);
        let bias = bias.then(|| self.bias.map_or_else(fresh, Ok)).transpose()?;
        Ok(Linear { bias, ..self })
    }
}

impl Forward for Linear {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let weight = self.weight.tensor();
        let output = input.linear(&weight, self.bias.as_ref().map(Parameter::tensor).as_ref());
        explained(output, || {
            size("Linear", "features", input, input.dim().saturating_sub(1), weight.shape()[1])
        })
    }
}

/// `x1' weight[k] x2 + bias[k]` for each output `k`.
#[derive(Module)]
pub struct Bilinear {
    /// Of shape `[out_features, in1_features, in2_features]`.
    pub weight: Parameter,
    /// Of shape `[out_features]`.
    pub bias: Option<Parameter>,
    hooks: Hooks,
}

impl Bilinear {
    /// A layer from two inputs to `out_features`, with a bias, initialised as torch does.
    ///
    /// # Errors
    /// If any is 0.
    pub fn new(in1_features: usize, in2_features: usize, out_features: usize) -> Result<Bilinear> {
        let sizes =
            [("in1_features", in1_features), ("in2_features", in2_features), ("out_features", out_features)];
        positive("Bilinear", &sizes)?;
        let shape = [out_features, in1_features, in2_features];
        let weight = Parameter::new(init::fan_in_uniform(shape, in1_features)?)?;
        Bilinear { weight, bias: None, hooks: Hooks::default() }.bias(true)
    }

    /// With a bias, or without.
    pub fn bias(self, bias: bool) -> Result<Bilinear> {
        let (outputs, inputs) = (self.weight.tensor().shape()[0], self.weight.tensor().shape()[1]);
        let fresh = || Parameter::new(init::fan_in_uniform([outputs], inputs)?);
        let bias = bias.then(|| self.bias.map_or_else(fresh, Ok)).transpose()?;
        Ok(Bilinear { bias, ..self })
    }
}

impl Forward<(Tensor, Tensor)> for Bilinear {
    type Output = Tensor;

    fn forward(&self, (input1, input2): (&Tensor, &Tensor)) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Parameter::tensor);
        input1.bilinear(input2, &self.weight.tensor(), bias.as_ref())
    }
}
