//! Activations as modules, to stand in a [`Sequential`](crate::Sequential).

use crate::Module;
use cresset_tensor::{Result, Tensor};

macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident, $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl Module for $name {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                input.$method()
            }
        }
    )*};
}

activations! {
    /// The larger of each element and 0.
    Relu, relu;
    /// `1 / (1 + e^-x)`
    Sigmoid, sigmoid;
    /// The hyperbolic tangent.
    Tanh, tanh;
}
