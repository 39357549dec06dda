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
