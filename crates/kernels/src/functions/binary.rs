//! Functions of two numbers.

use super::{Binary, Bits, BitsBinary, DivideBinary, FloatBinary, functions, is_nan, number};
use crate::division::is_opposite;
use crate::{Divide, Float, Number, Scalar};

functions! { Binary of Number:
    /// `a * b`
    Mul(a, b) => a.times(b);
    /// The larger; NaN if either is
    Maximum(a, b) => if a >= b || is_nan(a) { a } else { b };
    /// The smaller; NaN if either is
    Minimum(a, b) => if a <= b || is_nan(a) { a } else { b };
    /// The larger; the other one if either is NaN
    Fmax(a, b) => if a >= b || is_nan(b) { a } else { b };
    /// The smaller; the other one if either is NaN
    Fmin(a, b) => if a <= b || is_nan(b) { a } else { b };
    /// Whether `a` is positive; `b` where it is 0
    Heaviside(a, b) => if a == T::ZERO { b } else { number(a > T::ZERO) };
}

functions! { DivideBinary of Divide:
    /// The quotient cut towards zero
    DivTrunc(a, b) => a.quotient(b);
    /// The largest whole number that is not above the quotient
    DivFloor(a, b) => a.floor_quotient(b);
    /// What is left of `a` after division by `b`, with the sign of `a`
    Fmod(a, b) => a.rest(b);
    /// What is left of `a` after division by `b`, with the sign of `b`
    Remainder(a, b) => {
        let rest = a.rest(b);
        if is_opposite(rest, b) { rest.plus(b) } else { rest }
    };
    /// `a` to the power of `b`
    Power(a, b) => a.power(b);
}

functions! { BitsBinary of Bits:
    /// Bits that both have
    And(a, b) => a & b;
    /// Bits that either has
    Or(a, b) => a | b;
    /// Bits that one of the two has
    Xor(a, b) => a ^ b;
}

functions! { FloatBinary of Float:
    /// `a / b`
    Div(a, b) => a / b;
    /// `a` to the power of `b`
    Pow(a, b) => a.powf(b);
    /// The angle of the point with height `a` and width `b`
    Atan2(a, b) => a.atan2(b);
    /// The size of `a` with the sign of `b`
    Copysign(a, b) => a.copysign(b);
    /// The length of the longest side of a right triangle with sides `a` and `b`
    Hypot(a, b) => a.hypot(b);
    /// `log(e^a + e^b)`, without the powers
    LogAddExp(a, b) => {
        // Equal infinities have no difference.
        if a.is_infinite() && a == b { a } else { a.max(b) + (-(a - b).abs()).exponential().logarithm_1p() }
    };
    /// `a * log(b)`; 0 where `a` is 0 and `b` a number
    Xlogy(a, b) => if is_nan(b) { b } else if a == T::ZERO { T::ZERO } else { a * b.logarithm() };
    /// Gradient `a` through `tanh`, whose output was `b`
    TanhBackward(a, b) => a * (T::ONE - b * b);
    /// Gradient `a` through `sigmoid`, whose output was `b`
    SigmoidBackward(a, b) => a * (T::ONE - b) * b;
}

/// `a + alpha * b`
#[derive(Clone, Copy, Debug)]
pub struct Add {
    /// What `b` is multiplied by.
    pub alpha: Scalar,
}

impl Binary for Add {
    #[inline(always)]
    fn apply<T: Number>(self, a: T, b: T) -> T {
        let alpha = T::from_scalar(self.alpha);
        if alpha == T::ONE { a.plus(b) } else { a.plus_product(alpha, b) }
    }
}

/// `a - alpha * b`
#[derive(Clone, Copy, Debug)]
pub struct Sub {
    /// What `b` is multiplied by.
    pub alpha: Scalar,
}

impl Binary for Sub {
    #[inline(always)]
    fn apply<T: Number>(self, a: T, b: T) -> T {
        let alpha = T::from_scalar(self.alpha);
        if alpha == T::ONE { a.minus(b) } else { a.plus_product(T::ZERO.minus(alpha), b) }
    }
}

/// Gradient `a` where `b` is above the threshold, else `0`
#[derive(Clone, Copy, Debug)]
pub struct ThresholdBackward {
    /// What `b` is compared with.
    pub threshold: f64,
}

impl FloatBinary for ThresholdBackward {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T) -> T {
        if b <= T::narrow(self.threshold) { T::ZERO } else { a }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::functions::{Abs, Neg, NumberUnary as _, Relu};

    #[test]
    fn nan_wins_a_comparison() {
        assert!(Maximum.apply(f32::NAN, 1.0).is_nan() && Maximum.apply(1.0, f32::NAN).is_nan());
        assert!(Minimum.apply(f64::NAN, 1.0).is_nan() && Minimum.apply(1.0, f64::NAN).is_nan());
        assert_eq!((Maximum.apply(3, 5), Minimum.apply(3, 5)), (5, 3));
    }

    #[test]
    fn integers_wrap_around() {
        assert_eq!(Neg.apply(i8::MIN), i8::MIN);
        assert_eq!(Abs.apply(i8::MIN), i8::MIN);
        assert_eq!(Neg.apply(1u8), 255);
        assert_eq!(Add { alpha: Scalar::Int(2) }.apply(200u8, 100), 144);
        assert_eq!(Mul.apply(i64::MAX, 2), -2);
    }

    #[test]
    fn relu_and_its_gradient_pass_nan_on() {
        assert!(Relu.apply(f32::NAN).is_nan());
        assert_eq!([Relu.apply(-1i32), Relu.apply(4)], [0, 4]);
        let back = ThresholdBackward { threshold: 0.0 };
        assert_eq!(
            [back.apply(5.0f32, 0.0), back.apply(5.0, 1.0), back.apply(5.0, f32::NAN)],
            [0.0, 5.0, 5.0]
        );
    }
}
