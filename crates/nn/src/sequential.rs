//! Modules one after the other.

use crate::{Members, Module};
use cresset_tensor::{Result, Tensor};

/// Feeds each module with the output of the one before.
#[derive(Default)]
pub struct Sequential {
    modules: Vec<Box<dyn Module>>,
}

impl Sequential {
    /// No modules yet: gives back what it is given.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// Appends a module. Its name is its position.
    #[must_use]
    pub fn push(mut self, module: impl Module + 'static) -> Sequential {
        self.modules.push(Box::new(module));
        self
    }
}

impl Module for Sequential {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.modules.iter().try_fold(input.clone(), |x, module| module.call(&x))
    }

    fn members<'a>(&'a self, members: &mut Members<'a>) {
        for (i, module) in self.modules.iter().enumerate() {
            members.module(&i.to_string(), &**module);
        }
    }
}
