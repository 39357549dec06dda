//! Functions of one number.

use super::{NumberUnary, Unary, functions, is_nan, number};
use crate::{Float, Number, special};
use std::f64::consts::PI;

functions! { Unary of Float:
    /// `e^x`
    Exp(x) => x.exponential();
    /// `e^x - 1`, exact near zero
    Expm1(x) => x.exponential_m1();
    /// The natural logarithm
    Log(x) => x.logarithm();
    /// `log(1 + x)`, exact near zero
    Log1p(x) => x.logarithm_1p();
    /// The logarithm to base 2
    Log2(x) => x.log2();
    /// The logarithm to base 10
    Log10(x) => x.log10();
    /// 2 to the power of `x`
    Exp2(x) => x.exp2();
    /// The square root
    Sqrt(x) => x.sqrt();
    /// `1 / sqrt(x)`
    Rsqrt(x) => T::ONE / x.sqrt();
    /// `1 / x`
    Reciprocal(x) => T::ONE / x;
    /// The hyperbolic tangent
    Tanh(x) => x.hyperbolic_tangent();
    /// `1 / (1 + e^-x)`
    Sigmoid(x) => Float::sigmoid(x);
    /// The sine
    Sin(x) => x.sin();
    /// The cosine
    Cos(x) => x.cos();
    /// The tangent
    Tan(x) => x.tan();
    /// The angle with this sine
    Asin(x) => x.asin();
    /// The angle with this cosine
    Acos(x) => x.acos();
    /// The angle with this tangent
    Atan(x) => x.atan();
    /// The hyperbolic sine
    Sinh(x) => x.sinh();
    /// The hyperbolic cosine
    Cosh(x) => x.cosh();
    /// The number with this hyperbolic sine
    Asinh(x) => double(x, libm::asinh);
    /// The number with this hyperbolic cosine
    Acosh(x) => double(x, libm::acosh);
    /// The number with this hyperbolic tangent
    Atanh(x) => double(x, libm::atanh);
    /// Degrees as radians
    Deg2rad(x) => x * T::narrow(PI / 180.0);
    /// Radians as degrees
    Rad2deg(x) => x * T::narrow(180.0 / PI);
    /// The error function
    Erf(x) => Float::erf(x);
    /// `1 - erf(x)`, exact where that is near zero
    Erfc(x) => double(x, libm::erfc);
    /// The number with this error function
    Erfinv(x) => double(x, special::erfinv);
    /// The logarithm of the size of the gamma function
    Lgamma(x) => double(x, libm::lgamma);
    /// The slope of the logarithm of the gamma function
    Digamma(x) => double(x, special::digamma);
    /// `sin(pi x) / (pi x)`, and 1 at zero
    Sinc(x) => {
        let angle = x * T::narrow(PI);
        if x == T::ZERO { T::ONE } else { angle.sin() / angle }
    };
    /// The next integer below
    Floor(x) => x.floor();
    /// The next integer above
    Ceil(x) => x.ceil();
    /// The nearest integer, halves to the even one
    Round(x) => x.round_even();
    /// The next integer towards zero
    Trunc(x) => x.trunc();
    /// What is left of `x` without its integer part
    Frac(x) => x - x.trunc();
}

/// A function that is computed in double precision, whatever the element.
#[inline(always)]
fn double<T: Float>(x: T, f: impl Fn(f64) -> f64) -> T {
    T::narrow(f(x.wide()))
}

functions! { NumberUnary of Number:
    /// `-x`
    Neg(x) => if T::DTYPE.is_float() { x.times(T::ZERO.minus(T::ONE)) } else { T::ZERO.minus(x) };
    /// `x` without its sign
    Abs(x) => if x <= T::ZERO { T::ZERO.minus(x) } else { x };
    /// `1`, `0` or `-1`; `0` for NaN
    Sign(x) => number::<T>(x > T::ZERO).minus(number(x < T::ZERO));
    /// The same as [`Sign`], which differs for complex numbers only
    Sgn(x) => Sign.apply(x);
    /// Every bit turned around
    BitwiseNot(x) => T::ZERO.minus(x).minus(T::ONE);
    /// `x`, or `0` where negative
    Relu(x) => if x < T::ZERO { T::ZERO } else { x };
}

/// A derivative of [`Digamma`]
#[derive(Clone, Copy, Debug)]
pub struct Polygamma {
    /// How many times it is differentiated.
    pub n: u32,
}

impl Unary for Polygamma {
    fn apply<T: Float>(self, x: T) -> T {
        double(x, |x| special::polygamma(self.n, x))
    }
}

/// The logarithm of the odds `x / (1 - x)`
#[derive(Clone, Copy, Debug)]
pub struct Logit {
    /// `x` counts as this if it is less.
    pub low: f64,
    /// `x` counts as this if it is more.
    pub high: f64,
}

impl Unary for Logit {
    #[inline(always)]
    fn apply<T: Float>(self, x: T) -> T {
        let (low, high) = (T::narrow(self.low), T::narrow(self.high));
        let x = if x < low {
            low
        } else if x > high {
            high
        } else {
            x
        };
        (x / (T::ONE - x)).logarithm()
    }
}

/// `x`, or another number where it is none or infinite
#[derive(Clone, Copy, Debug)]
pub struct NanToNum {
    /// In the place of NaN.
    pub nan: f64,
    /// In the place of infinity.
    pub posinf: f64,
    /// In the place of negative infinity.
    pub neginf: f64,
}

impl Unary for NanToNum {
    #[inline(always)]
    fn apply<T: Float>(self, x: T) -> T {
        if is_nan(x) {
            T::narrow(self.nan)
        } else if x == T::infinity() {
            T::narrow(self.posinf)
        } else if x == T::neg_infinity() {
            T::narrow(self.neginf)
        } else {
            x
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_zero_are_kept_where_they_mean_something() {
        assert!(Neg.apply(0.0f32).is_sign_negative());
        assert!(Abs.apply(-0.0f32).is_sign_positive());
        assert_eq!(Abs.apply(-2.5f64), 2.5);
        assert_eq!([Sign.apply(-3.0f32), Sign.apply(0.0), Sign.apply(f32::NAN)], [-1.0, 0.0, 0.0]);
    }

    #[test]
    fn rounding_goes_to_even() {
        let rounded = [-1.5f32, -0.5, 0.5, 1.5, 2.5].map(|x| Round.apply(x));
        assert_eq!(rounded, [-2.0, -0.0, 0.0, 2.0, 2.0]);
    }
}
