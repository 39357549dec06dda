//! Scalar functions as small types, for the loops of [`elementwise`](crate::elementwise).
//!
//! A new function is a struct with one of these traits; nothing here needs to know it.
//! Loops call `apply` with `f32` or `f64`: half-precision elements are computed in `f32`
//! and rounded once.

use crate::{Float, Number, Scalar};

/// A function of one float.
pub trait Unary: Copy {
    /// The function's value.
    fn apply<T: Float>(self, x: T) -> T;
}

/// A function of one number, integers too.
pub trait NumberUnary: Copy {
    /// The function's value.
    fn apply<T: Number>(self, x: T) -> T;
}

/// A function of two numbers, integers too.
pub trait Binary: Copy {
    /// The function's value.
    fn apply<T: Number>(self, a: T, b: T) -> T;
}

/// A function of two floats.
pub trait FloatBinary: Copy {
    /// The function's value.
    fn apply<T: Float>(self, a: T, b: T) -> T;
}

/// A function of three floats.
pub trait FloatTernary: Copy {
    /// The function's value.
    fn apply<T: Float>(self, a: T, b: T, c: T) -> T;
}

// One row per function without parameters: what it is, its name and arguments, its value.
macro_rules! functions {
    ($kind:ident of $number:ident: $(#[doc = $doc:literal] $name:ident($($x:ident),*) => $value:expr;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl $kind for $name {
            #[inline(always)]
            fn apply<T: $number>(self, $($x: T),*) -> T {
                $value
            }
        }
    )*};
}

functions! { Unary of Float:
    /// `e^x`
    Exp(x) => x.exponential();
    /// `e^x - 1`, exact near zero
    Expm1(x) => x.exp_m1();
    /// The natural logarithm
    Log(x) => x.ln();
    /// `log(1 + x)`, exact near zero
    Log1p(x) => x.ln_1p();
    /// The logarithm to base 2
    Log2(x) => x.log2();
    /// The square root
    Sqrt(x) => x.sqrt();
    /// `1 / sqrt(x)`
    Rsqrt(x) => T::ONE / x.sqrt();
    /// `1 / x`
    Reciprocal(x) => T::ONE / x;
    /// The hyperbolic tangent
    Tanh(x) => x.hyperbolic_tangent();
    /// `1 / (1 + e^-x)`
    Sigmoid(x) => T::ONE / (T::ONE + (-x).exponential());
    /// The sine
    Sin(x) => x.sin();
    /// The cosine
    Cos(x) => x.cos();
    /// The error function
    Erf(x) => Float::erf(x);
    /// The next integer below
    Floor(x) => x.floor();
    /// The next integer above
    Ceil(x) => x.ceil();
    /// The nearest integer, halves to the even one
    Round(x) => x.round_even();
    /// The next integer towards zero
    Trunc(x) => x.trunc();
}

functions! { NumberUnary of Number:
    /// `-x`
    Neg(x) => if T::DTYPE.is_float() { x.times(T::ZERO.minus(T::ONE)) } else { T::ZERO.minus(x) };
    /// `x` without its sign
    Abs(x) => if x <= T::ZERO { T::ZERO.minus(x) } else { x };
    /// `1`, `0` or `-1`; `0` for NaN
    Sign(x) => number::<T>(x > T::ZERO).minus(number(x < T::ZERO));
    /// `x * x`
    Square(x) => x.times(x);
    /// `x`, or `0` where negative
    Relu(x) => if x < T::ZERO { T::ZERO } else { x };
}

functions! { Binary of Number:
    /// `a * b`
    Mul(a, b) => a.times(b);
    /// The larger; NaN if either is
    Maximum(a, b) => if a >= b || is_nan(a) { a } else { b };
    /// The smaller; NaN if either is
    Minimum(a, b) => if a <= b || is_nan(a) { a } else { b };
}

functions! { FloatBinary of Float:
    /// `a / b`
    Div(a, b) => a / b;
    /// `a` to the power of `b`
    Pow(a, b) => a.powf(b);
    /// The angle of the point with height `a` and width `b`
    Atan2(a, b) => a.atan2(b);
    /// Gradient `a` through `tanh`, whose output was `b`
    TanhBackward(a, b) => a * (T::ONE - b * b);
    /// Gradient `a` through `sigmoid`, whose output was `b`
    SigmoidBackward(a, b) => a * (T::ONE - b) * b;
}

functions! { FloatTernary of Float:
    /// From `a` towards `b` by the share `c`
    Lerp(a, b, c) => if c.abs() < T::ONE / (T::ONE + T::ONE) { a + c * (b - a) } else { b - (b - a) * (T::ONE - c) };
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
        a.plus(T::from_scalar(self.alpha).times(b))
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
        a.minus(T::from_scalar(self.alpha).times(b))
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

/// `a + value * b / c`
#[derive(Clone, Copy, Debug)]
pub struct Addcdiv {
    /// What the quotient is multiplied by.
    pub value: f64,
}

impl FloatTernary for Addcdiv {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T, c: T) -> T {
        a + T::narrow(self.value) * b / c
    }
}

/// `a + value * b * c`
#[derive(Clone, Copy, Debug)]
pub struct Addcmul {
    /// What the product is multiplied by.
    pub value: f64,
}

impl FloatTernary for Addcmul {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T, c: T) -> T {
        a + T::narrow(self.value) * b * c
    }
}

#[inline(always)]
pub(crate) fn is_nan<T: PartialEq>(x: T) -> bool {
    #[expect(clippy::eq_op, reason = "only NaN differs from itself")]
    let nan = x != x;
    nan
}

#[inline(always)]
fn number<T: Number>(condition: bool) -> T {
    if condition { T::ONE } else { T::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn lerp_meets_both_ends() {
        assert_eq!(
            [Lerp.apply(1.0f32, 3.0, 0.0), Lerp.apply(1.0, 3.0, 1.0), Lerp.apply(1.0, 3.0, 0.25)],
            [1.0, 3.0, 1.5]
        );
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
