//! Losses.

use super::Entry;
use crate::arguments::Arguments;
use cresset_tensor::ops::{ClassLoss, Reduction, reduction_named};
use cresset_tensor::{Result, Tensor};

pub(super) const OPS: &[Entry] = &[
    Entry::one("nn.functional.nll_loss", |a| {
        let [x, target] = pair(a)?;
        let weight: Option<Tensor> = a.get(2, "weight")?;
        x.nll_loss_with(&target, classes(a, weight.as_ref())?)
    }),
    Entry::one("nn.functional.cross_entropy", |a| {
        let [x, target] = pair(a)?;
        let weight: Option<Tensor> = a.get(2, "weight")?;
        let label_smoothing = a.or(7, "label_smoothing", 0.0)?;
        x.cross_entropy_with(&target, ClassLoss { label_smoothing, ..classes(a, weight.as_ref())? })
    }),
    Entry::one("nn.functional.mse_loss", |a| {
        let [x, target] = pair(a)?;
        x.mse_loss(&target, reduction(a, 4)?)
    }),
    Entry::one("nn.functional.l1_loss", |a| {
        let [x, target] = pair(a)?;
        x.l1_loss(&target, reduction(a, 4)?)
    }),
    Entry::one("nn.functional.smooth_l1_loss", |a| {
        let [x, target] = pair(a)?;
        x.smooth_l1_loss(&target, a.or(5, "beta", 1.0)?, reduction(a, 4)?)
    }),
    Entry::one("nn.functional.huber_loss", |a| {
        let [x, target] = pair(a)?;
        x.huber_loss(&target, a.or(3, "delta", 1.0)?, reduction(a, 2)?)
    }),
    Entry::one("nn.functional.binary_cross_entropy", |a| {
        let [x, target] = pair(a)?;
        let weight: Option<Tensor> = a.get(2, "weight")?;
        x.binary_cross_entropy(&target, weight.as_ref(), reduction(a, 5)?)
    }),
    Entry::one("nn.functional.binary_cross_entropy_with_logits", |a| {
        let [x, target] = pair(a)?;
        let [weight, positive]: [Option<Tensor>; 2] = [a.get(2, "weight")?, a.get(6, "pos_weight")?];
        x.binary_cross_entropy_with_logits(&target, weight.as_ref(), positive.as_ref(), reduction(a, 5)?)
    }),
    Entry::one("nn.functional.kl_div", |a| {
        let [x, target] = pair(a)?;
        let log_target = a.or(5, "log_target", false)?;
        if a.or(4, "reduction", "mean".to_owned())? == "batchmean" {
            return x.kl_div_per_sample(&target, log_target);
        }
        x.kl_div(&target, log_target, reduction(a, 4)?)
    }),
];

fn pair(a: &Arguments<'_>) -> Result<[Tensor; 2]> {
    Ok([a.get(0, "input")?, a.get(1, "target")?])
}

fn reduction(a: &Arguments<'_>, position: usize) -> Result<Reduction> {
    reduction_named(&a.or(position, "reduction", "mean".to_owned())?)
}

fn classes<'a>(a: &Arguments<'_>, weight: Option<&'a Tensor>) -> Result<ClassLoss<'a>> {
    let ignore_index = a.or(4, "ignore_index", -100)?;
    Ok(ClassLoss { weight, reduction: reduction(a, 6)?, ignore_index, label_smoothing: 0.0 })
}
