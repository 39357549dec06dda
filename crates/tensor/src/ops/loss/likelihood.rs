//! Negative log-likelihoods of distributions that are no choice between classes.

use super::{Reduction, reduction_number};
use crate::autocast;
use crate::{Cause, Error, MemoryFormat, Result, Tensor, composite, no_grad};
use cresset_dispatch::observe::Argument;
use std::f64::consts::PI;

/// The options of [`Tensor::poisson_nll_loss`].
#[derive(Clone, Copy, Debug)]
pub struct PoissonLoss {
    /// Whether predictions are logarithms of rates.
    pub log_input: bool,
    /// Whether what depends on targets alone counts too, by Stirling's formula.
    pub full: bool,
    /// What is added to rates before their logarithm is taken.
    pub epsilon: f64,
    /// What becomes of the losses of single elements.
    pub reduction: Reduction,
}

impl Default for PoissonLoss {
    /// The mean over logarithms of rates.
    fn default() -> Self {
        PoissonLoss { log_input: true, full: false, epsilon: 1e-8, reduction: Reduction::Mean }
    }
}

/// The options of [`Tensor::gaussian_nll_loss`].
#[derive(Clone, Copy, Debug)]
pub struct GaussianLoss {
    /// Whether the constant counts too.
    pub full: bool,
    /// What variances are at least.
    pub epsilon: f64,
    /// What becomes of the losses of single elements.
    pub reduction: Reduction,
}

impl Default for GaussianLoss {
    /// The mean, without the constant.
    fn default() -> Self {
        GaussianLoss { full: false, epsilon: 1e-6, reduction: Reduction::Mean }
    }
}

impl Tensor {
    /// How unlikely these rates, or their logarithms, make the `target` counts.
    pub fn poisson_nll_loss(&self, target: &Tensor, how: PoissonLoss) -> Result<Tensor> {
        let _span = composite("aten::poisson_nll_loss", [self, target], |visit| {
            visit(Argument::Bool(how.log_input));
            visit(Argument::Bool(how.full));
            visit(Argument::Float(how.epsilon));
            visit(Argument::Int(reduction_number(how.reduction)));
        });
        if let Some(cast) =
            autocast::casting("aten::poisson_nll_loss", [self, target], |[x, y]| x.poisson_nll_loss(y, how))
        {
            return cast;
        }
        let losses = if how.log_input {
            let expected = target.mul(self)?;
            self.exp()?.sub(&expected)?
        } else {
            self.sub(&target.mul(&self.add(how.epsilon)?.log()?)?)?
        };
        if how.full {
            let tail = target.mul(2.0 * PI)?.log()?.mul(0.5)?;
            let stirling = target.mul(&target.log()?)?.sub(target)?.add(&tail)?;
            losses.add_(&stirling.masked_fill(&target.le(1)?, 0)?)?;
        }
        losses.reduced(how.reduction)
    }

    /// How unlikely normal distributions of these means make the `target`. There is a variance for each,
    /// or one for all that differ in one dimension only, which may be left out if it is the last.
    pub fn gaussian_nll_loss(&self, target: &Tensor, variance: &Tensor, how: GaussianLoss) -> Result<Tensor> {
        const NAME: &str = "gaussian_nll_loss";
        let before = self.shape().split_last().map_or(&[][..], |(_, before)| before);
        let differing = self.shape().iter().zip(variance.shape()).filter(|(of_mean, own)| of_mean != own);
        let differing: Vec<usize> = differing.map(|(_, own)| *own).collect();
        let variance = if variance.dim() == self.dim() && matches!(differing[..], [] | [1]) {
            variance.clone()
        } else if variance.shape() == before {
            variance.unsqueeze(-1)?
        } else {
            let text = format_args!(
                "expects a variance per element of {:?} or one for all along a dimension, not shape {:?}",
                self.shape(),
                variance.shape()
            );
            return Err(Error::new(Cause::Shape, NAME, text));
        };
        if is_any_below_zero(&variance)? {
            return Err(Error::new(Cause::Argument, NAME, "expects no variance below 0"));
        }
        // Kept from zero, but with the gradient of what it was.
        let variance = variance.copy_in(MemoryFormat::Preserve)?;
        {
            let _unrecorded = no_grad();
            variance.clamp_between_(Some(how.epsilon.into()), None)?;
        }
        // What is not needed any more is let go as torch's programs do.
        let mut losses = {
            let logarithms = variance.log()?;
            let mut share = self.sub(target)?;
            share = share.pow(2)?;
            share = share.div(&variance)?;
            logarithms.add(&share)?
        };
        losses = losses.mul(0.5)?;
        if how.full {
            losses.add_(0.5 * (2.0 * PI).ln())?;
        }
        losses.reduced(how.reduction)
    }
}

fn is_any_below_zero(x: &Tensor) -> Result<bool> {
    let found = x.lt(0)?.any()?;
    let _span = composite("aten::is_nonzero", [&found], |_| {});
    Ok(found.item()?.as_f64() != 0.0)
}
