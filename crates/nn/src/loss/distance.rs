//! How far numbers are from numbers.

use super::losses;

losses! {
    /// The squared difference of `x` and the target.
    MseLoss {}
        |loss, x, target| x.mse_loss(target, loss.reduction);

    /// The absolute difference of `x` and the target.
    L1Loss {}
        |loss, x, target| x.l1_loss(target, loss.reduction);

    /// The absolute difference of `x` and the target, rounded off to half its square over `beta`
    /// where it is smaller than `beta`.
    SmoothL1Loss {
        /// Where the loss becomes straight.
        beta: f64 = 1.0, "at least 0" if |beta| beta >= 0.0;
    }
        |loss, x, target| x.smooth_l1_loss(target, loss.beta, loss.reduction);

    /// Half the squared difference of `x` and the target up to `delta`, and straight from there on.
    HuberLoss {
        /// Where the loss becomes straight.
        delta: f64 = 1.0, "above 0" if |delta| delta > 0.0;
    }
        |loss, x, target| x.huber_loss(target, loss.delta, loss.reduction);
}
