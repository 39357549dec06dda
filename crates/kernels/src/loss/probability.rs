//! How badly a probability describes a truth.

use crate::Float;
use crate::functions::{FloatBinary, FloatTernary};

/// What the logarithm of a probability is at least, so that no loss is infinite.
const LEAST_LOGARITHM: f64 = -100.0;

/// `-b log(a) - (1 - b) log(1 - a)`, for a probability `a` and the truth `b`
#[derive(Clone, Copy, Debug)]
pub struct BinaryCrossEntropy;

impl FloatBinary for BinaryCrossEntropy {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T) -> T {
        let least = T::narrow(LEAST_LOGARITHM);
        (b - T::ONE) * (-a).logarithm_1p().max(least) - b * a.logarithm().max(least)
    }
}

/// Gradient `a` through [`BinaryCrossEntropy`] of the probability `b` and the truth `c`
#[derive(Clone, Copy, Debug)]
pub struct BinaryCrossEntropyBackward {
    /// What one loss counts among all.
    pub share: f64,
}

impl FloatTernary for BinaryCrossEntropyBackward {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T, c: T) -> T {
        // Certainty would divide by zero.
        let spread = ((T::ONE - b) * b).max(T::narrow(1e-12));
        T::narrow(self.share) * a * (b - c) / spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_costs_at_most_a_hundred() {
        assert_eq!(BinaryCrossEntropy.apply(0.0f32, 1.0), 100.0);
        assert_eq!(BinaryCrossEntropy.apply(1.0f64, 0.0), 100.0);
        assert_eq!(BinaryCrossEntropy.apply(1.0f32, 1.0), 0.0);
        assert!(BinaryCrossEntropyBackward { share: 1.0 }.apply(1.0f64, 0.0, 1.0).is_finite());
    }
}
