//! Modules one after the other.

use crate::{Forward, Hooks, Layer, Members, Module};
use cresset_tensor::{Result, Tensor};

/// Feeds each layer with the output of the one before. The name of a layer is its position.
///
/// ```
/// use cresset_nn::{Forward, Linear, Relu, Sequential, Tensor};
///
/// let model = Sequential::new().push(Linear::new(4, 8)?).push(Relu).push(Linear::new(8, 2)?);
/// assert_eq!(model.call(&Tensor::ones([3, 4], ())?)?.shape(), [3, 2]);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
#[derive(Default)]
pub struct Sequential {
    layers: Vec<(String, Box<Layer>)>,
    hooks: Hooks,
}

impl Sequential {
    /// No layers yet: gives back what it is given.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a layer, named by its position.
    #[must_use]
    pub fn push(self, layer: impl Forward<Output = Tensor>) -> Sequential {
        let name = self.layers.len().to_string();
        self.push_named(name, layer)
    }

    /// Appends a layer with a name of its own.
    #[must_use]
    pub fn push_named(mut self, name: impl Into<String>, layer: impl Forward<Output = Tensor>) -> Sequential {
        self.layers.push((name.into(), Box::new(layer)));
        self
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The layer at position `at`.
    pub fn get(&self, at: usize) -> Option<&Layer> {
        self.layers.get(at).map(|(_, layer)| &**layer)
    }

    /// The layers, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter().map(|(_, layer)| &**layer)
    }
}

impl Module for Sequential {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        for (name, layer) in &self.layers {
            members.module(name, layer);
        }
    }

    fn hooks(&self) -> Option<&Hooks> {
        Some(&self.hooks)
    }
}

impl Forward for Sequential {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.iter().try_fold(input.clone(), |x, layer| layer.call(&x))
    }
}
