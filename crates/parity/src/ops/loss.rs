//! Losses.

use super::Entry;
use crate::arguments::{Arguments, Either};
use cresset_tensor::ops::{
    ClassLoss, Ctc, GaussianLoss, MultiMargin, PoissonLoss, Reduction, TripletMargin, reduction_named,
};
use cresset_tensor::{Cause, DType, Error, Result, Tensor};

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
    Entry::one("nn.functional.soft_margin_loss", |a| {
        let [x, target] = pair(a)?;
        x.soft_margin_loss(&target, reduction(a, 4)?)
    }),
    Entry::one("nn.functional.hinge_embedding_loss", |a| {
        let [x, target] = pair(a)?;
        x.hinge_embedding_loss(&target, a.or(2, "margin", 1.0)?, reduction(a, 5)?)
    }),
    Entry::one("nn.functional.margin_ranking_loss", |a| {
        let [x, other, target] = three(a, ["input1", "input2", "target"])?;
        x.margin_ranking_loss(&other, &target, a.or(3, "margin", 0.0)?, reduction(a, 6)?)
    }),
    Entry::one("nn.functional.cosine_embedding_loss", |a| {
        let [x, other, target] = three(a, ["input1", "input2", "target"])?;
        x.cosine_embedding_loss(&other, &target, a.or(3, "margin", 0.0)?, reduction(a, 6)?)
    }),
    Entry::one("nn.functional.triplet_margin_loss", |a| {
        let [anchor, positive, negative] = three(a, ["anchor", "positive", "negative"])?;
        let how = TripletMargin {
            margin: a.or(3, "margin", 1.0)?,
            p: a.or(4, "p", 2.0)?,
            epsilon: a.or(5, "eps", 1e-6)?,
            swap: a.or(6, "swap", false)?,
            reduction: reduction(a, 9)?,
        };
        anchor.triplet_margin_loss(&positive, &negative, how)
    }),
    Entry::one("nn.functional.multi_margin_loss", |a| {
        let [x, target] = pair(a)?;
        let weight: Option<Tensor> = a.get(4, "weight")?;
        let squared = match a.or(2, "p", 1)? {
            1i64 => false,
            2 => true,
            p => return Err(Error::new(Cause::Argument, "", format_args!("p is {p}, neither 1 nor 2"))),
        };
        let (margin, reduction) = (a.or(3, "margin", 1.0)?, reduction(a, 7)?);
        x.multi_margin_loss(&target, MultiMargin { squared, margin, weight: weight.as_ref(), reduction })
    }),
    Entry::one("nn.functional.multilabel_margin_loss", |a| {
        let [x, target] = pair(a)?;
        x.multilabel_margin_loss(&target, reduction(a, 4)?)
    }),
    Entry::one("nn.functional.multilabel_soft_margin_loss", |a| {
        let [x, target] = pair(a)?;
        let weight: Option<Tensor> = a.get(2, "weight")?;
        x.multilabel_soft_margin_loss(&target, weight.as_ref(), reduction(a, 5)?)
    }),
    Entry::one("nn.functional.poisson_nll_loss", |a| {
        let [x, target] = pair(a)?;
        let how = PoissonLoss {
            log_input: a.or(2, "log_input", true)?,
            full: a.or(3, "full", false)?,
            epsilon: a.or(5, "eps", 1e-8)?,
            reduction: reduction(a, 7)?,
        };
        x.poisson_nll_loss(&target, how)
    }),
    Entry::one("nn.functional.gaussian_nll_loss", |a| {
        let [x, target, variance] = three(a, ["input", "target", "var"])?;
        let how = GaussianLoss {
            full: a.or(3, "full", false)?,
            epsilon: a.or(4, "eps", 1e-6)?,
            reduction: reduction(a, 5)?,
        };
        x.gaussian_nll_loss(&target, &variance, how)
    }),
    Entry::one("nn.functional.ctc_loss", |a| {
        let [log_probs, targets]: [Tensor; 2] = [a.get(0, "log_probs")?, a.get(1, "targets")?];
        let how = Ctc {
            blank: a.get::<Option<i64>>(4, "blank")?.map_or(Ok(0), |_| a.size(4, "blank"))?,
            reduction: reduction(a, 5)?,
            zero_infinity: a.or(6, "zero_infinity", false)?,
        };
        log_probs.ctc_loss(&targets, &lengths(a, 2, "input_lengths")?, &lengths(a, 3, "target_lengths")?, how)
    }),
];

/// Lengths as torch takes them: a list, or a tensor of integers.
fn lengths(a: &Arguments<'_>, position: usize, name: &'static str) -> Result<Vec<usize>> {
    let lengths = match a.get::<Either<Vec<i64>, Tensor>>(position, name)? {
        Either::One(list) => list,
        Either::Other(tensor) if !tensor.dtype().is_float() => {
            tensor.to_dtype(DType::I64)?.reshape([tensor.numel()])?.to_vec()?
        }
        Either::Other(tensor) => {
            let text = format_args!("{name} must be integers, not {}", tensor.dtype());
            return Err(Error::new(Cause::DType, "", text));
        }
    };
    lengths.iter().map(|&length| usize::try_from(length)).collect::<std::result::Result<_, _>>().map_err(
        |_| Error::new(Cause::Argument, "", format_args!("{name} must not be negative: {lengths:?}")),
    )
}

fn three(a: &Arguments<'_>, [first, second, third]: [&'static str; 3]) -> Result<[Tensor; 3]> {
    Ok([a.get(0, first)?, a.get(1, second)?, a.get(2, third)?])
}

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
