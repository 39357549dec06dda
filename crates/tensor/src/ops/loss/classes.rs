//! Cross-entropy of classes.

use super::nll::Samples;
use super::{Reduction, reduction_number};
use crate::autocast;
use crate::{Cause, Error, Result, Tensor, composite, shown};
use cresset_dispatch::observe::Argument;
use cresset_kernels::Dims;

/// The class number that does not count, unless said otherwise.
const IGNORED: i64 = -100;

const NAME: &str = "aten::cross_entropy_loss";

/// The options of losses over classes.
#[derive(Clone, Copy, Debug)]
pub struct ClassLoss<'a> {
    /// What each class weighs.
    pub weight: Option<&'a Tensor>,
    /// What becomes of the losses of single samples.
    pub reduction: Reduction,
    /// Samples of this class do not count.
    pub ignore_index: i64,
    /// The share of the target that is spread over all classes; for [`Tensor::cross_entropy_with`].
    pub label_smoothing: f64,
}

impl Default for ClassLoss<'_> {
    /// The mean over all samples, whose classes weigh the same.
    fn default() -> Self {
        ClassLoss { weight: None, reduction: Reduction::Mean, ignore_index: IGNORED, label_smoothing: 0.0 }
    }
}

impl ClassLoss<'_> {
    pub(super) fn arguments(&self, visit: &mut dyn FnMut(Argument<'_>)) {
        visit(Argument::Int(reduction_number(self.reduction)));
        visit(Argument::Int(self.ignore_index));
    }
}

/// The dimension of the classes: the only one of a single sample, else the second.
fn class_dim(x: &Tensor) -> usize {
    usize::from(x.dim() > 1)
}

/// Refuses targets that are not of the scores' shape without classes.
fn check_targets(x: &Tensor, target: &Tensor) -> Result<()> {
    let dim = class_dim(x);
    let others = x.shape().iter().enumerate().filter(|&(at, _)| at != dim).map(|(_, &size)| size);
    if others.eq(target.shape().iter().copied()) {
        return Ok(());
    }
    let text = format_args!(
        "expects scores of [classes] or [samples, classes, ..] and targets of the same shape without \
         classes, not {:?} and {:?}",
        x.shape(),
        target.shape()
    );
    Err(Error::new(Cause::Shape, NAME, text))
}

impl Tensor {
    /// The mean cross-entropy between these scores, one row per sample, and the `target`
    /// classes.
    pub fn cross_entropy(&self, target: &Tensor) -> Result<Tensor> {
        self.cross_entropy_with(target, ClassLoss::default())
    }

    /// The cross-entropy between these scores and the `target`: classes, or if it has the shape of
    /// the scores, the probability of each class. Classes are the second dimension, or the only
    /// one of a single sample.
    pub fn cross_entropy_with(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        let smoothing = how.label_smoothing;
        let _span = composite(NAME, ([self, target], how.weight), |visit| {
            how.arguments(visit);
            visit(Argument::Float(smoothing));
        });
        let again =
            |([x, target], weight): Samples<'_>| x.cross_entropy_with(target, ClassLoss { weight, ..how });
        if let Some(cast) = autocast::casting(NAME, ([self, target], how.weight), again) {
            return cast;
        }
        if !(0.0..=1.0).contains(&smoothing) {
            let text = format_args!("expects a label smoothing from 0 to 1, not {smoothing}");
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        if self.dim() == 0 {
            return Err(Error::new(Cause::Shape, NAME, "expects scores of at least one dimension"));
        }
        let probabilities = self.shape() == target.shape();
        let scores = self.log_softmax_named(class_dim(self) as isize)?;
        if !probabilities {
            check_targets(self, target).map_err(|error| {
                let weight = how.weight.map_or(Argument::None, |weight| Argument::Tensor(weight.argument()));
                let reduction = Argument::Int(reduction_number(how.reduction));
                let more = [weight, reduction, Argument::Int(how.ignore_index)];
                shown::failed_around("aten::nll_loss_nd", [&scores, target], &more, error)
            })?;
        }
        if probabilities {
            return scores.probability_loss(target, how);
        }
        let loss = scores.nll_loss_with(target, how)?;
        if smoothing == 0.0 {
            return Ok(loss);
        }
        let classes = self.shape()[class_dim(self)] as f64;
        let smooth = scores.smooth_loss(target, how)?.mul(smoothing / classes)?;
        loss.mul(1.0 - smoothing)?.add(&smooth)
    }

    /// The cross-entropy of log-probabilities with the probability of each class.
    fn probability_loss(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        if !target.dtype().is_float() || how.ignore_index >= 0 {
            let text = format_args!(
                "expects probabilities of floats and no class to ignore, not {} and class {}",
                target.dtype(),
                how.ignore_index
            );
            return Err(Error::new(Cause::Argument, NAME, text));
        }
        let dim = class_dim(self);
        let classes = self.shape()[dim];
        let target = if how.label_smoothing > 0.0 {
            target.mul(1.0 - how.label_smoothing)?.add(how.label_smoothing / classes as f64)?
        } else {
            target.clone()
        };
        let weight = how.weight.map(|weight| self.per_class(weight)).transpose()?;
        let product = self.mul(&target)?;
        let product = weight.map_or_else(|| Ok(product.clone()), |weight| product.mul(&weight))?;
        Ok(match how.reduction {
            Reduction::None => product.sum_dims(&[dim as isize], false)?.neg()?,
            Reduction::Sum => product.sum()?.neg()?,
            Reduction::Mean if classes == 0 => product.sum()?.neg()?.div(f64::NAN)?,
            Reduction::Mean => product.sum()?.neg()?.div((self.numel() / classes) as i64)?,
        })
    }

    /// The loss of log-probabilities for a target that is all classes alike.
    fn smooth_loss(&self, target: &Tensor, how: ClassLoss<'_>) -> Result<Tensor> {
        let weighted = match how.weight {
            Some(weight) => self.mul(&self.per_class(weight)?)?,
            None => self.clone(),
        };
        let losses = weighted.sum_dims(&[class_dim(self) as isize], false)?.neg()?;
        let ignored = target.eq(how.ignore_index)?;
        losses.masked_fill_(&ignored, 0.0)?;
        match how.reduction {
            Reduction::None => Ok(losses),
            Reduction::Sum => losses.sum(),
            Reduction::Mean => {
                let counted = ignored.bitwise_not()?;
                let total = match how.weight {
                    Some(weight) => {
                        weight.gather(0, &target.masked_select(&counted)?.flatten(0, -1)?)?.sum()?
                    }
                    None => counted.sum()?,
                };
                losses.sum()?.div(&total)
            }
        }
    }

    /// A weight per class, of a shape that broadcasts with this tensor.
    fn per_class(&self, weight: &Tensor) -> Result<Tensor> {
        let (dim, mut shape) = (class_dim(self), Dims::from_elem(1, self.dim()));
        shape[dim] = self.shape()[dim];
        if weight.shape() != [shape[dim]] {
            let text = format_args!("expects a weight of shape [{}], not {:?}", shape[dim], weight.shape());
            return Err(Error::new(Cause::Shape, NAME, text));
        }
        weight.view(&shape[..])
    }
}
