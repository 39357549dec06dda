//! Fully connected layers.

use crate::check::positive;
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
        input.linear(&self.weight.tensor(), self.bias.as_ref().map(Parameter::tensor).as_ref())
    }
}
