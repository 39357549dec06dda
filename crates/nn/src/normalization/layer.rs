//! Normalization of each sample by itself.

use super::{ones, tensor, zeros};
use crate::{Forward, Hooks, Module, Parameter, check};
use cresset_tensor::{Cause, Error, Result, Tensor};

/// The last dimensions that are normalized together: `64`, or `[8, 8]`.
pub trait NormalizedShape {
    /// Their sizes.
    fn sizes(self) -> Vec<usize>;
}

impl NormalizedShape for usize {
    fn sizes(self) -> Vec<usize> {
        vec![self]
    }
}

impl<const N: usize> NormalizedShape for [usize; N] {
    fn sizes(self) -> Vec<usize> {
        self.to_vec()
    }
}

impl NormalizedShape for Vec<usize> {
    fn sizes(self) -> Vec<usize> {
        self
    }
}

impl NormalizedShape for &[usize] {
    fn sizes(self) -> Vec<usize> {
        self.to_vec()
    }
}

fn shape(layer: &'static str, given: impl NormalizedShape) -> Result<Vec<usize>> {
    let sizes = given.sizes();
    if !sizes.is_empty() {
        return Ok(sizes);
    }
    Err(check::refused(layer, "normalized_shape is empty, expected at least one dimension"))
}

fn ends_with(layer: &'static str, input: &Tensor, normalized: &[usize]) -> Result<()> {
    if input.shape().ends_with(normalized) {
        return Ok(());
    }
    let text =
        format_args!("expects an input whose shape ends with {normalized:?}, not one of {:?}", input.shape());
    Err(Error::new(Cause::Shape, layer, text))
}

/// Samples without the mean and spread over their last dimensions.
#[derive(Module)]
pub struct LayerNorm {
    /// What elements are multiplied by.
    pub weight: Option<Parameter>,
    /// What is added to elements.
    pub bias: Option<Parameter>,
    normalized_shape: Vec<usize>,
    eps: f64,
    hooks: Hooks,
}

impl LayerNorm {
    /// A layer for inputs whose shape ends like this.
    ///
    /// # Errors
    /// For no dimension at all.
    pub fn new(normalized_shape: impl NormalizedShape) -> Result<LayerNorm> {
        let normalized_shape = shape("LayerNorm", normalized_shape)?;
        let layer =
            LayerNorm { weight: None, bias: None, normalized_shape, eps: 1e-5, hooks: Hooks::default() };
        layer.elementwise_affine(true)
    }

    /// What is added to the variance; `1e-5` at first.
    ///
    /// # Errors
    /// For what is no number, or below 0.
    pub fn eps(mut self, eps: f64) -> Result<LayerNorm> {
        check::within("LayerNorm", "eps", eps, eps >= 0.0, "at least 0")?;
        self.eps = eps;
        Ok(self)
    }

    /// Whether elements are multiplied by a weight, and a bias is added.
    pub fn elementwise_affine(mut self, affine: bool) -> Result<LayerNorm> {
        self.weight = if affine { ones(&self.normalized_shape)? } else { None };
        self.bias = if affine { zeros(&self.normalized_shape)? } else { None };
        Ok(self)
    }

    /// Whether a bias is added, if there is a weight.
    pub fn bias(mut self, bias: bool) -> Result<LayerNorm> {
        self.bias = if bias && self.weight.is_some() { zeros(&self.normalized_shape)? } else { None };
        Ok(self)
    }
}

impl Forward for LayerNorm {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        ends_with("LayerNorm", input, &self.normalized_shape)?;
        let (weight, bias) = (tensor(&self.weight), tensor(&self.bias));
        input.layer_norm(&self.normalized_shape, weight.as_ref(), bias.as_ref(), self.eps)
    }
}

/// Samples divided by the root of the mean of squares over their last dimensions.
#[derive(Module)]
pub struct RmsNorm {
    /// What elements are multiplied by.
    pub weight: Option<Parameter>,
    normalized_shape: Vec<usize>,
    eps: Option<f64>,
    hooks: Hooks,
}

impl RmsNorm {
    /// A layer for inputs whose shape ends like this.
    ///
    /// # Errors
    /// For no dimension at all.
    pub fn new(normalized_shape: impl NormalizedShape) -> Result<RmsNorm> {
        let normalized_shape = shape("RmsNorm", normalized_shape)?;
        RmsNorm { weight: None, normalized_shape, eps: None, hooks: Hooks::default() }
            .elementwise_affine(true)
    }

    /// What is added to the mean; the smallest difference of the element type at first.
    ///
    /// # Errors
    /// For what is no number, or below 0.
    pub fn eps(mut self, eps: impl Into<Option<f64>>) -> Result<RmsNorm> {
        self.eps = eps.into();
        let value = self.eps.unwrap_or(0.0);
        check::within("RmsNorm", "eps", value, value >= 0.0, "at least 0")?;
        Ok(self)
    }

    /// Whether elements are multiplied by a weight.
    pub fn elementwise_affine(mut self, affine: bool) -> Result<RmsNorm> {
        self.weight = if affine { ones(&self.normalized_shape)? } else { None };
        Ok(self)
    }
}

impl Forward for RmsNorm {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        ends_with("RmsNorm", input, &self.normalized_shape)?;
        input.rms_norm(&self.normalized_shape, tensor(&self.weight).as_ref(), self.eps)
    }
}

/// Samples without the mean and spread of groups of their channels.
#[derive(Module)]
pub struct GroupNorm {
    /// What channels are multiplied by.
    pub weight: Option<Parameter>,
    /// What is added to channels.
    pub bias: Option<Parameter>,
    num_groups: usize,
    num_channels: usize,
    eps: f64,
    hooks: Hooks,
}

impl GroupNorm {
    /// `num_channels` in `num_groups`.
    ///
    /// # Errors
    /// If the groups do not divide the channels.
    pub fn new(num_groups: usize, num_channels: usize) -> Result<GroupNorm> {
        let divides = num_groups > 0 && num_channels.is_multiple_of(num_groups) && num_channels > 0;
        let expected = format_args!("a divisor of num_channels, which is {num_channels}");
        check::within("GroupNorm", "num_groups", num_groups, divides, expected)?;
        let (weight, bias) = (None, None);
        GroupNorm { weight, bias, num_groups, num_channels, eps: 1e-5, hooks: Hooks::default() }.affine(true)
    }

    /// What is added to the variance; `1e-5` at first.
    ///
    /// # Errors
    /// For what is no number, or below 0.
    pub fn eps(mut self, eps: f64) -> Result<GroupNorm> {
        check::within("GroupNorm", "eps", eps, eps >= 0.0, "at least 0")?;
        self.eps = eps;
        Ok(self)
    }

    /// Whether channels are multiplied by a weight, and a bias is added.
    pub fn affine(mut self, affine: bool) -> Result<GroupNorm> {
        self.weight = if affine { ones(&[self.num_channels])? } else { None };
        self.bias = if affine { zeros(&[self.num_channels])? } else { None };
        Ok(self)
    }

    /// Whether a bias is added, if there is a weight.
    pub fn bias(mut self, bias: bool) -> Result<GroupNorm> {
        self.bias = if bias && self.weight.is_some() { zeros(&[self.num_channels])? } else { None };
        Ok(self)
    }
}

impl Forward for GroupNorm {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        check::size("GroupNorm", "channels", input, 1, self.num_channels)?;
        input.group_norm(
            self.num_groups,
            tensor(&self.weight).as_ref(),
            tensor(&self.bias).as_ref(),
            self.eps,
        )
    }
}
