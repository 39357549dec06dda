//! Losses that depend on nothing but how far two numbers are apart.

use crate::Float;
use crate::functions::{FloatBinary, FloatTernary};

/// What a difference costs.
pub trait Distance: Copy + Sync {
    /// The loss.
    fn value<T: Float>(self, difference: T) -> T;

    /// How the loss changes with the difference.
    fn slope<T: Float>(self, difference: T) -> T;
}

/// The square of the difference.
#[derive(Clone, Copy, Debug)]
pub struct Square;

impl Distance for Square {
    #[inline(always)]
    fn value<T: Float>(self, difference: T) -> T {
        difference * difference
    }

    #[inline(always)]
    fn slope<T: Float>(self, difference: T) -> T {
        difference + difference
    }
}

/// The distance, rounded off within `beta` of zero so that its slope is continuous.
#[derive(Clone, Copy, Debug)]
pub struct SmoothL1 {
    /// Where the parabola ends; above 0.
    pub beta: f64,
}

impl Distance for SmoothL1 {
    #[inline(always)]
    fn value<T: Float>(self, difference: T) -> T {
        let (distance, beta, half) = (difference.abs(), T::narrow(self.beta), T::narrow(0.5));
        if distance < beta { half * distance * distance / beta } else { distance - half * beta }
    }

    #[inline(always)]
    fn slope<T: Float>(self, difference: T) -> T {
        let beta = T::narrow(self.beta);
        if difference <= -beta {
            -T::ONE
        } else if difference >= beta {
            T::ONE
        } else {
            difference / beta
        }
    }
}

/// Half the square of the difference, continued as a straight line beyond `delta`.
#[derive(Clone, Copy, Debug)]
pub struct Huber {
    /// Where the parabola ends; above 0.
    pub delta: f64,
}

impl Distance for Huber {
    #[inline(always)]
    fn value<T: Float>(self, difference: T) -> T {
        let (distance, delta, half) = (difference.abs(), T::narrow(self.delta), T::narrow(0.5));
        if distance <= delta { half * distance * distance } else { delta * (distance - half * delta) }
    }

    #[inline(always)]
    fn slope<T: Float>(self, difference: T) -> T {
        let delta = T::narrow(self.delta);
        if difference <= -delta {
            -delta
        } else if difference >= delta {
            delta
        } else {
            difference
        }
    }
}

/// The loss of `a` for the target `b`.
#[derive(Clone, Copy, Debug)]
pub struct Loss<D>(pub D);

impl<D: Distance> FloatBinary for Loss<D> {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T) -> T {
        self.0.value(a - b)
    }
}

/// Gradient `a` through the loss of `b` for the target `c`.
#[derive(Clone, Copy, Debug)]
pub struct LossBackward<D> {
    /// What a difference costs.
    pub distance: D,
    /// What one loss counts among all.
    pub share: f64,
}

impl<D: Distance> FloatTernary for LossBackward<D> {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T, c: T) -> T {
        T::narrow(self.share) * self.distance.slope(b - c) * a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_the_values() {
        fn check(distance: impl Distance) {
            for difference in [-3.0f64, -0.7, 0.0, 0.3, 2.0] {
                let step = 1e-6;
                let rise = distance.value(difference + step) - distance.value(difference - step);
                assert!((rise / (2.0 * step) - distance.slope(difference)).abs() < 1e-6);
            }
        }
        check(Square);
        check(SmoothL1 { beta: 0.5 });
        check(Huber { delta: 1.5 });
        assert_eq!(Huber { delta: 1.5 }.slope(4.0), 1.5);
    }
}
