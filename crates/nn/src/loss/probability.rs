//! How well probabilities and distributions fit.

use super::{given, losses};
use cresset_tensor::ops::{GaussianLoss, PoissonLoss};

losses! {
    /// The cross-entropy of probabilities with what is true.
    BceLoss {} weights {
        /// What each element weighs.
        weight;
    }
        |loss, x, target| x.binary_cross_entropy(target, given(&loss.weight).as_ref(), loss.reduction);

    /// The cross-entropy of the sigmoid of logits with what is true.
    BceWithLogitsLoss {} weights {
        /// What each element weighs.
        weight;
        /// What truth weighs against falsehood.
        pos_weight;
    }
        |loss, x, target| {
            let [weight, positive] = [given(&loss.weight), given(&loss.pos_weight)];
            x.binary_cross_entropy_with_logits(target, weight.as_ref(), positive.as_ref(), loss.reduction)
        };

    /// What log-probabilities lack of the target distribution.
    KlDivLoss {
        /// Whether the target has logarithms too.
        log_target: bool = false;
        /// Whether the sum is divided by the size of the first dimension, whatever the reduction says:
        /// the divergence by its mathematical definition, torch's `"batchmean"`.
        batch_mean: bool = false;
    }
        |loss, x, target| if loss.batch_mean {
            x.kl_div_per_sample(target, loss.log_target)
        } else {
            x.kl_div(target, loss.log_target, loss.reduction)
        };

    /// The negative log-likelihood of counts that are Poisson distributed.
    PoissonNllLoss {
        /// Whether the model gives the logarithm of the mean.
        log_input: bool = true;
        /// Whether Stirling's approximation of the target's factorial is added.
        full: bool = false;
        /// Keeps the logarithm of a mean of 0 finite.
        eps: f64 = 1e-8, "above 0" if |eps| eps > 0.0;
    }
        |loss, x, target| x.poisson_nll_loss(target, PoissonLoss {
            log_input: loss.log_input,
            full: loss.full,
            epsilon: loss.eps,
            reduction: loss.reduction,
        });

    /// The negative log-likelihood of targets that are normally distributed, given means and variances:
    /// called with means, targets and variances.
    GaussianNllLoss {
        /// Whether the constant term is added.
        full: bool = false;
        /// The least variance.
        eps: f64 = 1e-6, "above 0" if |eps| eps > 0.0;
    }
        |loss, x, target, variance| x.gaussian_nll_loss(target, variance, GaussianLoss {
            full: loss.full,
            epsilon: loss.eps,
            reduction: loss.reduction,
        });
}
