//! Functions of tensors that are no methods of them: those that draw random numbers, and those that
//! are made of several operators.
//!
//! Everything else of torch's `nn.functional` is a method of [`Tensor`]: `x.relu()`,
//! `x.conv2d(&weight, bias, &how)`, `x.layer_norm(..)`, `x.pad(..)`, `x.interpolate(..)`.

mod dropout;
mod fractional;
mod geometry;
mod pooling;

pub use dropout::*;
pub use fractional::{Fraction, fractional_max_pool2d, fractional_max_pool3d};
pub use geometry::{affine_grid, pdist};
pub use pooling::*;

use crate::Reduction;
use crate::check::refused;
use cresset_tensor::{Result, Tensor};

/// Samples of a distribution given by logarithms along `dim`, softened by the temperature `tau`;
/// with `hard` they are one of the unit vectors, with the gradient of the soft ones.
///
/// # Errors
/// For a temperature that is not above 0.
pub fn gumbel_softmax(logits: &Tensor, tau: f64, hard: bool, dim: isize) -> Result<Tensor> {
    if tau <= 0.0 {
        return Err(refused("gumbel_softmax", format_args!("tau is {tau}, expected more than 0")));
    }
    let drawn = Tensor::uniform(
        f64::from(f32::MIN_POSITIVE),
        1.0,
        logits.shape(),
        (logits.dtype(), logits.device()),
    )?;
    let gumbels = drawn.log()?.neg()?.log()?.neg()?;
    let soft = logits.add(&gumbels)?.div(tau)?.softmax(dim)?;
    if !hard {
        return Ok(soft);
    }
    let index = soft.argmax(dim, true)?;
    let sharp = soft.zeros_like()?.scatter(dim, &index, 1.0)?;
    sharp.sub(&soft.detach()?)?.add(&soft)
}

/// A leaky rectifier: while `training`, with slopes from `lower` to `upper` drawn for each element, and with
/// their mean otherwise.
///
/// # Errors
/// If `lower` is above `upper`.
pub fn rrelu(input: &Tensor, lower: f64, upper: f64, training: bool) -> Result<Tensor> {
    match slopes(input, lower, upper, training)? {
        Some(slopes) => input.mul(&slopes),
        None => input.leaky_relu((lower + upper) / 2.0),
    }
}

/// [`rrelu`] in place.
///
/// # Errors
/// If `lower` is above `upper`.
pub fn rrelu_(input: &Tensor, lower: f64, upper: f64, training: bool) -> Result<()> {
    match slopes(input, lower, upper, training)? {
        Some(slopes) => input.mul_(&slopes),
        None => input.leaky_relu_((lower + upper) / 2.0),
    }
}

/// What each element is multiplied by, if that is drawn.
fn slopes(input: &Tensor, lower: f64, upper: f64, training: bool) -> Result<Option<Tensor>> {
    let expected = format_args!("at most upper, which is {upper}");
    crate::check::within("rrelu", "lower", lower, lower <= upper, expected)?;
    if !training {
        return Ok(None);
    }
    let drawn = Tensor::uniform(lower, upper, input.shape(), (input.dtype(), input.device()))?;
    let keeps = input.detach()?.ge(0.0)?;
    drawn.masked_fill(&keeps, 1.0).map(Some)
}

/// What an anchor lacks to be closer to a positive than to a negative by `margin`, by a `distance` of one's
/// own; with `swap`, the distance from positive to negative counts if it is the smaller.
pub fn triplet_margin_with_distance_loss(
    [anchor, positive, negative]: [&Tensor; 3],
    distance: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    margin: f64,
    swap: bool,
    reduction: Reduction,
) -> Result<Tensor> {
    let (near, mut far) = (distance(anchor, positive)?, distance(anchor, negative)?);
    if swap {
        far = far.minimum(&distance(positive, negative)?)?;
    }
    let mut lacking = near.add(margin)?;
    lacking = lacking.sub(&far)?;
    lacking = lacking.clamp_min(0)?;
    match reduction {
        Reduction::None => Ok(lacking),
        Reduction::Mean => lacking.mean(),
        Reduction::Sum => lacking.sum(),
    }
}
