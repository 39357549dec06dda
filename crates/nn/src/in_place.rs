//! Layers that write their output over their input: torch's `inplace=True`.

use crate::{Celu, Elu, Forward, Hardsigmoid, Hardswish, Hardtanh, Hooks, LeakyRelu, Members, Mish, Module};
use crate::{Relu, Relu6, Selu, Silu, Threshold};
use cresset_tensor::{Result, Tensor};

/// A layer whose output can take the place of its input.
pub trait Overwrite: Forward<Output = Tensor> {
    /// Writes the output over the input.
    ///
    /// # Errors
    /// If the input cannot be changed: a leaf that requires grad, or a view with elements in several places.
    fn overwrite(&self, input: &Tensor) -> Result<()>;

    /// The same layer, writing over its input. That saves memory where nobody needs the input any more;
    /// gradients that need what was there are an error.
    ///
    /// ```
    /// use cresset_nn::{Forward, Overwrite, Relu, Tensor};
    ///
    /// let x = Tensor::new([-1.0f32, 2.0])?;
    /// let y = Relu.inplace().call(&x)?;
    /// assert_eq!((y.to_vec::<f32>()?, x.to_vec::<f32>()?), (vec![0.0, 2.0], vec![0.0, 2.0]));
    /// # Ok::<(), cresset_nn::Error>(())
    /// ```
    fn inplace(self) -> InPlace<Self>
    where
        Self: Sized,
    {
        InPlace(self)
    }
}

/// A layer that writes its output over its input. Made by [`Overwrite::inplace`].
#[derive(Clone, Copy, Debug, Default)]
pub struct InPlace<L>(L);

impl<L: Overwrite> Module for InPlace<L> {
    fn members<'a>(&'a self, members: &mut Members<'a>) {
        self.0.members(members);
    }

    fn hooks(&self) -> Option<&Hooks> {
        self.0.hooks()
    }

    fn class(&self) -> &'static str {
        self.0.class()
    }
}

impl<L: Overwrite> Forward for InPlace<L> {
    type Output = Tensor;

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.0.overwrite(input)?;
        Ok(input.clone())
    }
}

/// A line per activation: the method, and the options it takes.
macro_rules! overwrite {
    ($($name:ident: $method:ident($($option:ident),*);)*) => {$(
        impl Overwrite for $name {
            fn overwrite(&self, input: &Tensor) -> Result<()> {
                input.$method($(self.$option),*)
            }
        }
    )*};
}

overwrite! {
    Relu: relu_();
    Relu6: relu6_();
    Selu: selu_();
    Silu: silu_();
    Mish: mish_();
    Hardsigmoid: hardsigmoid_();
    Hardswish: hardswish_();
    LeakyRelu: leaky_relu_(negative_slope);
    Elu: elu_(alpha);
    Celu: celu_(alpha);
    Hardtanh: hardtanh_(min_val, max_val);
    Threshold: threshold_(threshold, value);
}
