//! Weights as a length times a direction.

use crate::{
    Bilinear, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Embedding, Forward,
    Hooks, Linear, Members, Module, Parameter, Tensors, check,
};
use cresset_tensor::{Result, Tensor};

/// A layer with a weight that can be computed from something else.
pub trait Weighted: Module {
    /// The weight.
    fn weight(&self) -> &Parameter;

    /// The dimension of the weight that outputs are counted along.
    fn output_dim(&self) -> usize;
}

/// A line per dimension that outputs are counted along: the layers.
macro_rules! weighted {
    ($($dim:literal: $($layer:ident)*;)*) => {$($(
        impl Weighted for $layer {
            fn weight(&self) -> &Parameter {
                &self.weight
            }

            fn output_dim(&self) -> usize {
                $dim
            }
        }
    )*)*};
}

weighted! {
    0: Linear Bilinear Conv1d Conv2d Conv3d Embedding;
    1: ConvTranspose1d ConvTranspose2d ConvTranspose3d;
}

/// A layer whose weight is `g * v / |v|`: a length per slice of one dimension, and a direction, which
/// are learned apart. Names of parameters are those of torch's parametrization.
///
/// ```
/// use cresset_nn::{Forward, Linear, Module, Tensor, WeightNorm};
///
/// let layer = WeightNorm::new(Linear::new(4, 2)?, 0)?;
/// let names: Vec<String> = layer.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]);
/// assert_eq!(layer.call(&Tensor::ones([3, 4], ())?)?.shape(), [3, 2]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
pub struct WeightNorm<M> {
    layer: M,
    length: Parameter,
    direction: Parameter,
    /// The dimensions that a length is taken over; none for all.
    dims: Vec<isize>,
    hooks: Hooks,
}

impl<M: Weighted> WeightNorm<M> {
    /// `layer`, with a length for each slice of dimension `dim` of its weight, or with one for all of it if
    /// that is `None`. The weight stays what it is.
    ///
    /// # Errors
    /// If the weight has no such dimension.
    pub fn new(layer: M, dim: impl Into<Option<usize>>) -> Result<WeightNorm<M>> {
        let weight = layer.weight().tensor().detach()?;
        let (rank, dim) = (weight.dim(), dim.into());
        let expected = format_args!("a dimension of the weight, of {rank}");
        check::within("WeightNorm", "dim", dim.unwrap_or(0), dim.is_none_or(|dim| dim < rank), expected)?;
        let others = (0..rank).filter(|&other| dim.is_some_and(|dim| other != dim));
        let dims: Vec<isize> = others.map(|other| other as isize).collect();
        let length = Parameter::new(weight.vector_norm(2.0, &dims, dim.is_some(), None)?)?;
        Ok(WeightNorm {
            length,
            direction: Parameter::new(weight.copy()?)?,
            layer,
            dims,
            hooks: Hooks::default(),
        })
    }

    /// The weight as it is now.
    pub fn weight(&self) -> Result<Tensor> {
        let direction = self.direction.tensor();
        let norm = direction.vector_norm(2.0, &self.dims, !self.dims.is_empty(), None)?;
        direction.mul(&self.length.tensor().div(&norm)?)
    }

    /// The layer alone, with the weight that it has now.
    pub fn remove(self) -> Result<M> {
        self.layer.weight().replace(self.weight()?)?;
        Ok(self.layer)
    }
}

impl<M: Weighted> Module for WeightNorm<M> {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        self.layer.members(members);
        // What is computed is no parameter.
        members.parameters.retain(|(_, parameter)| !parameter.same_as(self.layer.weight()));
        members.parameter("parametrizations.weight.original0", &self.length);
        members.parameter("parametrizations.weight.original1", &self.direction);
    }

    fn hooks(&self) -> Option<&Hooks> {
        Some(&self.hooks)
    }

    fn class(&self) -> &'static str {
        self.layer.class()
    }
}

impl<I: Tensors, M: Weighted + Forward<I>> Forward<I> for WeightNorm<M> {
    type Output = M::Output;

    fn forward(&self, input: I::Ref<'_>) -> Result<M::Output> {
        self.layer.weight().put(self.weight()?);
        self.layer.forward(input)
    }
}
