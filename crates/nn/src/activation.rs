//! Activations as modules, to stand in a [`Sequential`](crate::Sequential).

use crate::{Forward, Module};
use cresset_tensor::{Result, Tensor};

macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident, $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, Module)]
        pub struct $name;

        impl Forward for $name {
            type Output = Tensor;

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
