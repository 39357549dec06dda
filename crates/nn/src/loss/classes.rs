//! How sure a model is of the right classes.

use super::{given, losses};
use cresset_tensor::ops::{ClassLoss, MultiMargin};

losses! {
    /// The cross-entropy of scores `[samples, classes, ..]` or `[classes]` with classes, or with the
    /// probability of each.
    CrossEntropyLoss {
        /// Samples of this class do not count.
        ignore_index: i64 = -100;
        /// The share of the target that is spread over all classes.
        label_smoothing: f64 = 0.0, "from 0 to 1" if |share| (0.0..=1.0).contains(&share);
    } weights {
        /// What each class weighs.
        weight;
    }
        |loss, scores, target| {
            let weight = given(&loss.weight);
            scores.cross_entropy_with(target, ClassLoss {
                weight: weight.as_ref(),
                reduction: loss.reduction,
                ignore_index: loss.ignore_index,
                label_smoothing: loss.label_smoothing,
            })
        };

    /// The negative log-likelihood of classes, given log-probabilities `[samples, classes, ..]` or
    /// `[classes]`.
    NllLoss {
        /// Samples of this class do not count.
        ignore_index: i64 = -100;
    } weights {
        /// What each class weighs.
        weight;
    }
        |loss, log_probs, target| {
            let weight = given(&loss.weight);
            log_probs.nll_loss_with(target, ClassLoss {
                weight: weight.as_ref(),
                reduction: loss.reduction,
                ignore_index: loss.ignore_index,
                label_smoothing: 0.0,
            })
        };

    /// What the right class lacks to lie a margin above each other one.
    MultiMarginLoss {
        /// The power that is taken of what lacks.
        p: usize = 1, "1 or 2" if |p| p == 1 || p == 2;
        /// How far the right class should lie above the others.
        margin: f64 = 1.0;
    } weights {
        /// What each class weighs.
        weight;
    }
        |loss, scores, target| {
            let weight = given(&loss.weight);
            scores.multi_margin_loss(target, MultiMargin {
                squared: loss.p == 2,
                margin: loss.margin,
                weight: weight.as_ref(),
                reduction: loss.reduction,
            })
        };

    /// What right classes, several per sample, lack to lie 1 above wrong ones. The target lists the
    /// classes of a sample in front of the first -1.
    MultiLabelMarginLoss {}
        |loss, scores, target| scores.multilabel_margin_loss(target, loss.reduction);

    /// The mean binary cross-entropy over classes, of which a sample may have several.
    MultiLabelSoftMarginLoss {} weights {
        /// What each class weighs.
        weight;
    }
        |loss, scores, target| {
            scores.multilabel_soft_margin_loss(target, given(&loss.weight).as_ref(), loss.reduction)
        };
}
