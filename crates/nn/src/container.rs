//! Layers in lists and by name, called by whoever holds them.

use crate::{Forward, Layer, Members, Module};
use cresset_tensor::Tensor;

/// Layers of any kind, in order. Layers of one kind are better held in a `Vec`, which is a member too.
#[derive(Default)]
pub struct ModuleList(Vec<Box<Layer>>);

impl ModuleList {
    /// No layers yet.
    pub fn new() -> ModuleList {
        ModuleList::default()
    }

    /// Appends a layer, named by its position.
    #[must_use]
    pub fn push(mut self, layer: impl Forward<Output = Tensor>) -> ModuleList {
        self.0.push(Box::new(layer));
        self
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The layer at position `at`.
    pub fn get(&self, at: usize) -> Option<&Layer> {
        self.0.get(at).map(|layer| &**layer)
    }

    /// The layers, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Layer> {
        self.0.iter().map(|layer| &**layer)
    }
}

impl Module for ModuleList {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        for (i, layer) in self.0.iter().enumerate() {
            members.module(&i.to_string(), layer);
        }
    }
}

/// Layers of any kind, by name, in the order they were added.
#[derive(Default)]
pub struct ModuleDict(Vec<(String, Box<Layer>)>);

impl ModuleDict {
    /// No layers yet.
    pub fn new() -> ModuleDict {
        ModuleDict::default()
    }

    /// Adds a layer, or puts it in the place of the one that has the name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, layer: impl Forward<Output = Tensor>) -> ModuleDict {
        let (name, layer): (String, Box<Layer>) = (name.into(), Box::new(layer));
        match self.0.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = layer,
            None => self.0.push((name, layer)),
        }
        self
    }

    /// The layer of that name.
    pub fn get(&self, name: &str) -> Option<&Layer> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, layer)| &**layer)
    }

    /// Names and layers, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Layer)> {
        self.0.iter().map(|(name, layer)| (&**name, &**layer))
    }
}

impl Module for ModuleDict {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        for (name, layer) in &self.0 {
            members.module(name, layer);
        }
    }
}
