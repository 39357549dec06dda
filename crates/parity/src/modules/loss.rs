//! Losses.

use super::{Entry, Made};
use crate::arguments::{Arguments, Either, KEYWORD};
use cresset_nn::*;
use cresset_tensor::ops::reduction_named;
use cresset_tensor::{Cause, DType, Error, Result};

/// The position of `reduction` in most constructors, behind two arguments that nobody uses any more.
const LAST: usize = 2;

pub(super) const MODULES: &[Entry] = &[
    Entry::new("MSELoss", |a| pair(MseLoss::new().reduction(reduction(a, LAST)?)?)),
    Entry::new("L1Loss", |a| pair(L1Loss::new().reduction(reduction(a, LAST)?)?)),
    Entry::new("SmoothL1Loss", |a| {
        pair(SmoothL1Loss::new().reduction(reduction(a, LAST)?)?.beta(a.or(3, "beta", 1.0)?)?)
    }),
    Entry::new("HuberLoss", |a| {
        pair(HuberLoss::new().reduction(reduction(a, 0)?)?.delta(a.or(1, "delta", 1.0)?)?)
    }),
    Entry::new("CrossEntropyLoss", |a| {
        let loss = CrossEntropyLoss::new().reduction(reduction(a, 4)?)?;
        let loss = loss.ignore_index(a.or(2, "ignore_index", -100)?)?;
        let loss = loss.label_smoothing(a.or(5, "label_smoothing", 0.0)?)?;
        pair(weighted(loss, a, (0, "weight"), CrossEntropyLoss::weight)?)
    }),
    Entry::new("NLLLoss", |a| {
        let loss = NllLoss::new().reduction(reduction(a, 4)?)?;
        let loss = loss.ignore_index(a.or(2, "ignore_index", -100)?)?;
        pair(weighted(loss, a, (0, "weight"), NllLoss::weight)?)
    }),
    Entry::new("LinearCrossEntropyLoss", |a| {
        let loss = LinearCrossEntropyLoss::new(a.size(0, "in_features")?, a.size(1, "num_classes")?)?;
        let loss = loss.reduction(reduction(a, KEYWORD)?)?.bias(a.or(KEYWORD, "bias", false)?)?;
        let loss = loss.out_features(&a.or(KEYWORD, "out_features", Vec::new())?)?;
        let loss = loss.label_smoothing(a.or(KEYWORD, "label_smoothing", 0.0)?)?;
        let loss = match a.get(KEYWORD, "ignore_index")? {
            Some(class) => loss.ignore_index(class)?,
            None => loss,
        };
        pair(weighted(loss, a, (KEYWORD, "weight"), LinearCrossEntropyLoss::weight)?)
    }),
    Entry::new("BCELoss", |a| {
        pair(weighted(BceLoss::new().reduction(reduction(a, 3)?)?, a, (0, "weight"), BceLoss::weight)?)
    }),
    Entry::new("BCEWithLogitsLoss", |a| {
        let loss = BceWithLogitsLoss::new().reduction(reduction(a, 3)?)?;
        let loss = weighted(loss, a, (0, "weight"), BceWithLogitsLoss::weight)?;
        pair(weighted(loss, a, (4, "pos_weight"), BceWithLogitsLoss::pos_weight)?)
    }),
    Entry::new("KLDivLoss", |a| {
        let loss = KlDivLoss::new().log_target(a.or(3, "log_target", false)?)?;
        if a.or(LAST, "reduction", "mean".to_owned())? == "batchmean" {
            return pair(loss.batch_mean(true)?);
        }
        pair(loss.reduction(reduction(a, LAST)?)?)
    }),
    Entry::new("PoissonNLLLoss", |a| {
        let loss = PoissonNllLoss::new().reduction(reduction(a, 5)?)?.eps(a.or(3, "eps", 1e-8)?)?;
        let loss = loss.log_input(a.or(0, "log_input", true)?)?.full(a.or(1, "full", false)?)?;
        Made::with(loss, |loss, a| loss.call((&a.get(0, "log_input")?, &a.get(1, "target")?)))
    }),
    Entry::new("GaussianNLLLoss", |a| {
        let loss = GaussianNllLoss::new().reduction(reduction(a, KEYWORD)?)?;
        let loss = loss.full(a.or(KEYWORD, "full", false)?)?.eps(a.or(KEYWORD, "eps", 1e-6)?)?;
        triple(loss, ["input", "target", "var"])
    }),
    Entry::new("SoftMarginLoss", |a| pair(SoftMarginLoss::new().reduction(reduction(a, LAST)?)?)),
    Entry::new("HingeEmbeddingLoss", |a| {
        pair(HingeEmbeddingLoss::new().reduction(reduction(a, 3)?)?.margin(a.or(0, "margin", 1.0)?)?)
    }),
    Entry::new("CosineEmbeddingLoss", |a| {
        let loss = CosineEmbeddingLoss::new().reduction(reduction(a, 3)?)?;
        triple(loss.margin(a.or(0, "margin", 0.0)?)?, ["input1", "input2", "target"])
    }),
    Entry::new("MarginRankingLoss", |a| {
        let loss = MarginRankingLoss::new().reduction(reduction(a, 3)?)?;
        triple(loss.margin(a.or(0, "margin", 0.0)?)?, ["input1", "input2", "target"])
    }),
    Entry::new("MultiMarginLoss", |a| {
        let loss = MultiMarginLoss::new().reduction(reduction(a, 5)?)?.margin(a.or(1, "margin", 1.0)?)?;
        let p = a.get::<Option<i64>>(0, "p")?.map_or(Ok(1), |_| a.size(0, "p"))?;
        pair(weighted(loss.p(p)?, a, (2, "weight"), MultiMarginLoss::weight)?)
    }),
    Entry::new("MultiLabelMarginLoss", |a| pair(MultiLabelMarginLoss::new().reduction(reduction(a, LAST)?)?)),
    Entry::new("MultiLabelSoftMarginLoss", |a| {
        let loss = MultiLabelSoftMarginLoss::new().reduction(reduction(a, 3)?)?;
        pair(weighted(loss, a, (0, "weight"), MultiLabelSoftMarginLoss::weight)?)
    }),
    Entry::new("TripletMarginLoss", |a| {
        let loss = TripletMarginLoss::new().reduction(reduction(a, 6)?)?;
        let loss = loss.margin(a.or(0, "margin", 1.0)?)?.p(a.or(1, "p", 2.0)?)?;
        let loss = loss.eps(a.or(2, "eps", 1e-6)?)?.swap(a.or(3, "swap", false)?)?;
        triple(loss, ["anchor", "positive", "negative"])
    }),
    Entry::new("TripletMarginWithDistanceLoss", |a| {
        let loss = TripletMarginWithDistanceLoss::default().reduction(reduction(a, KEYWORD)?)?;
        let loss = loss.margin(a.or(KEYWORD, "margin", 1.0)?)?.swap(a.or(KEYWORD, "swap", false)?)?;
        triple(loss, ["anchor", "positive", "negative"])
    }),
    Entry::new("CTCLoss", |a| {
        let blank = a.get::<Option<i64>>(0, "blank")?.map_or(Ok(0), |_| a.size(0, "blank"))?;
        let loss = CtcLoss::new().blank(blank)?.reduction(reduction(a, 1)?)?;
        let loss = loss.zero_infinity(a.or(2, "zero_infinity", false)?)?;
        Made::with(loss, |loss, a| {
            let [log_probs, targets]: [Tensor; 2] = [a.get(0, "log_probs")?, a.get(1, "targets")?];
            let [inputs, labels] = [lengths(a, 2, "input_lengths")?, lengths(a, 3, "target_lengths")?];
            loss.call((&log_probs, &targets, &inputs, &labels))
        })
    }),
];

/// A loss of an input and a target.
fn pair(loss: impl Forward<(Tensor, Tensor), Output = Tensor>) -> Result<Made> {
    Made::with(loss, |loss, a| loss.call((&a.get(0, "input")?, &a.get(1, "target")?)))
}

/// A loss of three tensors.
fn triple(
    loss: impl Forward<(Tensor, Tensor, Tensor), Output = Tensor>,
    names: [&'static str; 3],
) -> Result<Made> {
    Made::with(loss, move |loss, a| {
        loss.call((&a.get(0, names[0])?, &a.get(1, names[1])?, &a.get(2, names[2])?))
    })
}

fn reduction(a: &Arguments<'_>, position: usize) -> Result<Reduction> {
    reduction_named(&a.or(position, "reduction", "mean".to_owned())?)
}

/// The loss with weights, if they are given.
fn weighted<L>(
    loss: L,
    a: &Arguments<'_>,
    (position, name): (usize, &'static str),
    with: fn(L, &Tensor) -> Result<L>,
) -> Result<L> {
    match a.get::<Option<Tensor>>(position, name)? {
        Some(weight) => with(loss, &weight),
        None => Ok(loss),
    }
}

/// Lengths as torch takes them: a tensor, or a list.
fn lengths(a: &Arguments<'_>, position: usize, name: &'static str) -> Result<Tensor> {
    match a.get::<Either<Tensor, Vec<i64>>>(position, name)? {
        Either::One(tensor) if tensor.dtype() == DType::Bool => {
            Err(Error::new(Cause::DType, "CTCLoss", format_args!("{name} must be integers, not bool")))
        }
        Either::One(tensor) => Ok(tensor),
        Either::Other(list) => Tensor::from_slice(&list, [list.len()]),
    }
}
