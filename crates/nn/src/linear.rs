//! The fully connected layer.

use crate::{Members, Module, Parameter, init};
use cresset_tensor::{Cause, Error, Result, Tensor};

/// `x @ weight.t() + bias`
pub struct Linear {
    weight: Parameter,
    bias: Option<Parameter>,
}

impl Linear {
    /// A layer from `inputs` to `outputs` features, with a bias, initialised as torch does.
    pub fn new(inputs: usize, outputs: usize) -> Result<Linear> {
        check(inputs, outputs)?;
        let weight = Parameter::new(init::linear_uniform([outputs, inputs], inputs)?)?;
        let bias = Some(Parameter::new(init::linear_uniform([outputs], inputs)?)?);
        Ok(Linear { weight, bias })
    }

    /// The same layer without a bias.
    pub fn without_bias(inputs: usize, outputs: usize) -> Result<Linear> {
        check(inputs, outputs)?;
        let weight = Parameter::new(init::linear_uniform([outputs, inputs], inputs)?)?;
        Ok(Linear { weight, bias: None })
    }

    /// The weight, of shape `[outputs, inputs]`.
    pub fn weight(&self) -> Tensor {
        self.weight.tensor()
    }

    /// The bias, of shape `[outputs]`.
    pub fn bias(&self) -> Option<Tensor> {
        self.bias.as_ref().map(Parameter::tensor)
    }
}

fn check(inputs: usize, outputs: usize) -> Result<()> {
    if inputs > 0 && outputs > 0 {
        return Ok(());
    }
    let text = format_args!("expects at least one input and one output, not {inputs} and {outputs}");
    Err(Error::new(Cause::Argument, "Linear", text))
}

impl Module for Linear {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.linear(&self.weight(), self.bias().as_ref())
    }

    fn members<'a>(&'a self, members: &mut Members<'a>) {
        members.parameter("weight", &self.weight);
        if let Some(bias) = &self.bias {
            members.parameter("bias", bias);
        }
    }
}
