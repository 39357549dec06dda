//! Functions of tensors that are no methods of them: those that draw random numbers, and those that
//! are made of several operators.
//!
//! Everything else of torch's `nn.functional` is a method of [`Tensor`]: `x.relu()`,
//! `x.conv2d(&weight, bias, &how)`, `x.layer_norm(..)`, `x.pad(..)`, `x.interpolate(..)`.

use crate::check::{probability, refused};
use cresset_tensor::op::casting;
use cresset_tensor::ops::{Averaging, Pooling};
use cresset_tensor::{Argument, Cause, Error, Operand, Result, Tensor, composite};

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

    fn add(self, x: &Tensor, other: &Tensor) -> Result<Tensor> {
        match self {
            New => x.add(other),
            Input => x.add_(other).map(|()| x.clone()),
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
    // Whatever the element type, the share of what is kept is that of single precision.
    let drawn = Tensor::rand(shape, input.device())?;
    drawn.ge(p)?.to(input.dtype())
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
        return into.mul(input, 0.0);
    }
    into.mul(input, &kept(input, p, shape)?.div(1.0 - p)?)
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
        return into.mul(input, 0.0);
    }
    /// Minus the limit of Selu: its scale times its alpha.
    const LIMIT: f64 = 1.758_099_340_847_376_6;
    let a = ((LIMIT * LIMIT * p + 1.0) * (1.0 - p)).sqrt().recip();
    let kept = kept(input, p, shape)?;
    // Where something is dropped stands -LIMIT, scaled; and what keeps the mean at 0 everywhere.
    let shift = kept.sub(1.0)?.mul(LIMIT * a)?.add(LIMIT * a * p)?;
    into.add(&into.mul(input, &kept.mul(a)?)?, &shift)
}

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

/// `(sum of x^p)^(1/p)` of windows with so many `places`; `average` is what averages them.
pub(crate) fn lp_pool(
    input: &Tensor,
    p: f64,
    places: usize,
    windows: Pooling,
    average: fn(&Tensor, &Averaging) -> Result<Tensor>,
) -> Result<Tensor> {
    let how = Averaging { windows, count_include_pad: true, divisor_override: None };
    let mean = average(&input.pow(p)?, &how)?;
    // As torch has it: the sign is kept, and nothing below 0 is left to take a root of.
    mean.sign()?.mul(&mean.abs()?.relu()?)?.mul(places as f64)?.pow(p.recip())
}

/// The largest elements of windows that share the last three dimensions evenly, `sizes` of them, and
/// where each is in its volume.
pub fn adaptive_max_pool3d(input: &Tensor, sizes: [Option<usize>; 3]) -> Result<[Tensor; 2]> {
    const NAME: &str = "aten::adaptive_max_pool3d";
    crate::check::rank(NAME, input, &[4, 5])?;
    if input.shape()[input.dim() - 4..].contains(&0) {
        let text =
            format_args!("expects no dimension of size 0 but the batch, not shape {:?}", input.shape());
        return Err(Error::new(Cause::Shape, NAME, text));
    }
    let _span = composite(NAME, [input], |_| {});
    if let Some(cast) = casting(NAME, [input], |[input]| adaptive_max_pool3d(input, sizes)) {
        return cast;
    }
    let (outer, own) = input.shape().split_at(input.dim() - 3);
    let [depth, height, width]: [usize; 3] = std::array::from_fn(|dim| own[dim]);
    let [planes, rows, columns]: [usize; 3] = std::array::from_fn(|dim| sizes[dim].unwrap_or(own[dim]));
    let count: usize = outer.iter().product();
    let signed = |size: usize| Some(isize::try_from(size).unwrap_or(isize::MAX));
    // First in each plane, then across planes: the first of several largest is found first in both.
    let flat = input.reshape([count, depth, height, width])?;
    let [best, place] = flat.adaptive_max_pool2d(&[signed(rows), signed(columns)])?;
    let lines = |x: &Tensor| x.reshape([count, depth, rows * columns])?.transpose(1, 2);
    let [best, plane] = lines(&best)?.contiguous()?.adaptive_max_pool1d(planes as isize)?;
    let place = lines(&place)?.gather(2, &plane)?.add(&plane.mul((height * width) as i64)?)?;
    let shape: Vec<usize> = outer.iter().copied().chain([planes, rows, columns]).collect();
    let back = |x: &Tensor| x.transpose(1, 2)?.reshape(shape.as_slice());
    Ok([back(&best)?, back(&place)?])
}

/// Puts elements where `indices` say within planes of the given size, and zeros elsewhere.
///
/// # Errors
/// For indices of another shape, or outside of their plane.
pub fn max_unpool(input: &Tensor, indices: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    const NAME: &str = "max_unpool";
    let fits = input.shape() == indices.shape() && input.dim() > sizes.len();
    if !fits {
        let text = format_args!(
            "expects an index for each element of an input of more than {} dimensions, not shapes {:?} and {:?}",
            sizes.len(),
            input.shape(),
            indices.shape()
        );
        return Err(Error::new(Cause::Shape, NAME, text));
    }
    // As torch has it: lines are planes of one row.
    let listed = if sizes.len() == 3 { "aten::max_unpool3d" } else { "aten::max_unpool2d" };
    if let Some(cast) = casting(listed, [input, indices], |[x, indices]| max_unpool(x, indices, sizes)) {
        return cast;
    }
    let outer = &input.shape()[..input.dim() - sizes.len()];
    let flat: Vec<usize> = outer.iter().copied().chain([sizes.iter().product()]).collect();
    let line: Vec<isize> = outer.iter().map(|&size| size as isize).chain([-1]).collect();
    let shape: Vec<usize> = outer.iter().chain(sizes).copied().collect();
    if input.numel() == 0 {
        return Tensor::zeros(shape, (input.dtype(), input.device()));
    }
    let empty = Tensor::zeros(flat, (input.dtype(), input.device()))?;
    let (places, values) = (indices.reshape(line.as_slice())?, input.reshape(line.as_slice())?);
    empty.scatter(-1, &places, &values)?.reshape(shape.as_slice())
}
