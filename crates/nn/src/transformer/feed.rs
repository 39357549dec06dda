//! The small network that is run on each step by itself.

use super::Activation;
use crate::{Dropout, Forward, Linear};
use cresset_tensor::{Result, Tensor};

/// `linear2(dropout(activation(linear1(x))))`
pub(super) fn feed_forward(
    x: &Tensor,
    (linear1, linear2): (&Linear, &Linear),
    activation: &Activation,
    dropout: &Dropout,
) -> Result<Tensor> {
    linear2.call(&dropout.call(&activation(&linear1.call(x)?)?)?)
}
