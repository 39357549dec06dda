//! Elements and channels left out at random.

use crate::check::probability;
use cresset_tensor::{Argument, Operand, Result, Tensor, composite};

/// Elements left out with probability `p`, and the others scaled so that their mean stays.
///
/// ```
/// use cresset_nn::{Tensor, functional as F};
///
/// let x = Tensor::ones([1000], ())?;
/// let thin = F::dropout(&x, 0.25, true)?.to_vec::<f32>()?;
/// assert!(thin.iter().all(|x| *x == 0.0 || (*x - 4.0 / 3.0).abs() < 1e-6));
/// # Ok::<(), cresset_nn::Error>(())
/// ```
///
/// # Errors
/// For a `p` that is no probability.
pub fn dropout(input: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    thinned("aten::dropout", input, p, training, input.shape(), New)
}

/// As [`dropout`], of whole channels: of all that follows the first two dimensions, or the first in
/// an input without a batch.
pub(crate) fn feature_dropout(input: &Tensor, p: f64, training: bool, batched: bool) -> Result<Tensor> {
    thinned("aten::feature_dropout", input, p, training, &channels(input, batched), New)
}

/// As [`dropout`], of whole channels of lines `[batch, channels, length]` or `[channels, length]`.
pub fn dropout1d(input: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    feature_dropout(input, p, training, in_lines(input)?)
}

/// As [`dropout`], of whole channels of images `[batch, channels, height, width]`.
pub fn dropout2d(input: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    feature_dropout(input, p, training, in_images(input)?)
}

/// As [`dropout`], of whole channels of volumes `[batch, channels, depth, height, width]` or of one.
pub fn dropout3d(input: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    feature_dropout(input, p, training, in_volumes(input)?)
}

/// As [`dropout`], but elements are set to what a [`Selu`](crate::Selu) gives for large negative
/// ones, and mean and variance stay.
pub fn alpha_dropout(input: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    alpha_thinned("aten::alpha_dropout", input, p, training, input.shape(), New)
}

/// As [`alpha_dropout`], of whole channels.
pub fn feature_alpha_dropout(input: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    alpha_thinned("aten::feature_alpha_dropout", input, p, training, &channels(input, true), New)
}

/// [`dropout`] in place.
pub fn dropout_(input: &Tensor, p: f64, training: bool) -> Result<()> {
    thinned("aten::dropout_", input, p, training, input.shape(), Input).map(drop)
}

fn feature_dropout_(input: &Tensor, p: f64, training: bool, batched: bool) -> Result<()> {
    thinned("aten::feature_dropout_", input, p, training, &channels(input, batched), Input).map(drop)
}

/// [`dropout1d`] in place.
pub fn dropout1d_(input: &Tensor, p: f64, training: bool) -> Result<()> {
    feature_dropout_(input, p, training, in_lines(input)?)
}

/// [`dropout2d`] in place.
pub fn dropout2d_(input: &Tensor, p: f64, training: bool) -> Result<()> {
    feature_dropout_(input, p, training, in_images(input)?)
}

/// [`dropout3d`] in place.
pub fn dropout3d_(input: &Tensor, p: f64, training: bool) -> Result<()> {
    feature_dropout_(input, p, training, in_volumes(input)?)
}

/// [`alpha_dropout`] in place.
pub fn alpha_dropout_(input: &Tensor, p: f64, training: bool) -> Result<()> {
    alpha_thinned("aten::alpha_dropout_", input, p, training, input.shape(), Input).map(drop)
}

/// [`feature_alpha_dropout`] in place.
pub fn feature_alpha_dropout_(input: &Tensor, p: f64, training: bool) -> Result<()> {
    alpha_thinned("aten::feature_alpha_dropout_", input, p, training, &channels(input, true), Input).map(drop)
}

/// Whether there is a batch of lines.
fn in_lines(input: &Tensor) -> Result<bool> {
    crate::check::rank("dropout1d", input, &[2, 3])?;
    Ok(input.dim() == 3)
}

/// Always: as torch has it, three dimensions are a batch of lines.
fn in_images(input: &Tensor) -> Result<bool> {
    crate::check::rank("dropout2d", input, &[3, 4])?;
    Ok(true)
}

/// Whether there is a batch of volumes.
fn in_volumes(input: &Tensor) -> Result<bool> {
    crate::check::rank("dropout3d", input, &[4, 5])?;
    Ok(input.dim() == 5)
}

/// Where results are written.
#[derive(Clone, Copy)]
enum Target {
    New,
    Input,
}

use Target::{Input, New};

impl Target {
    fn mul<'a>(self, x: &'a Tensor, factor: impl Into<Operand<'a>>) -> Result<Tensor> {
        match self {
            New => x.mul(factor),
            Input => x.mul_(factor).map(|()| x.clone()),
        }
    }
}

/// The shape of one number per channel.
fn channels(input: &Tensor, batched: bool) -> Vec<usize> {
    let kept = if batched { 2 } else { 1 };
    input.shape().iter().enumerate().map(|(dim, &size)| if dim < kept { size } else { 1 }).collect()
}

fn span(
    name: &'static str,
    input: &Tensor,
    p: f64,
    training: bool,
) -> Option<cresset_dispatch::observe::Span> {
    composite(name, [input], |visit| {
        visit(Argument::Float(p));
        visit(Argument::Bool(training));
    })
}

/// Ones where something is kept, and zeros elsewhere.
fn kept(input: &Tensor, p: f64, shape: &[usize]) -> Result<Tensor> {
    let kept = match shape == input.shape() {
        true => input.empty_like()?,
        false => input.new_empty(shape, ())?,
    };
    kept.bernoulli_(1.0 - p)?;
    Ok(kept)
}

fn thinned(
    name: &'static str,
    input: &Tensor,
    p: f64,
    training: bool,
    shape: &[usize],
    into: Target,
) -> Result<Tensor> {
    probability(name, p)?;
    let _span = span(name, input, p, training);
    if !training || p == 0.0 || input.numel() == 0 {
        return Ok(input.clone());
    }
    if p == 1.0 {
        return into.mul(input, &Tensor::zeros([], (input.dtype(), input.device()))?);
    }
    let noise = kept(input, p, shape)?;
    noise.div_(1.0 - p)?;
    into.mul(input, &noise)
}

fn alpha_thinned(
    name: &'static str,
    input: &Tensor,
    p: f64,
    training: bool,
    shape: &[usize],
    into: Target,
) -> Result<Tensor> {
    probability(name, p)?;
    let _span = span(name, input, p, training);
    if !training || p == 0.0 || input.numel() == 0 {
        return Ok(input.clone());
    }
    if p == 1.0 {
        return into.mul(input, &Tensor::zeros([], (input.dtype(), input.device()))?);
    }
    /// Minus the limit of Selu: its scale times its alpha.
    const LIMIT: f64 = 1.758_099_340_847_376_6;
    let a = ((LIMIT * LIMIT * p + 1.0) * (1.0 - p)).sqrt().recip();
    let noise = kept(input, p, shape)?;
    // Where something is dropped stands -LIMIT, scaled; and what keeps the mean at 0 everywhere.
    let shift = noise.add(-1)?;
    shift.mul_(LIMIT * a)?;
    shift.add_(LIMIT * a * p)?;
    noise.mul_(a)?;
    let out = into.mul(input, &noise)?;
    out.add_(&shift)?;
    Ok(out)
}
