//! Division with a whole quotient, and powers: where integers and floats part ways.

use crate::{Float, Number};
use half::{bf16, f16};

/// Numbers that can be divided. Integers are not divided by zero: who calls has looked.
pub trait Divide: Number {
    /// The whole part of the quotient, cut towards zero.
    fn quotient(self, other: Self) -> Self;
    /// The largest whole number that is not above the quotient.
    fn floor_quotient(self, other: Self) -> Self;
    /// What division towards zero leaves; it has the sign of `self`.
    fn rest(self, other: Self) -> Self;
    /// `self` to the power of `exponent`. A negative power of an integer is cut to a whole number.
    fn power(self, exponent: Self) -> Self;
}

/// Whether a rest has another sign than the divisor.
#[inline(always)]
pub(crate) fn is_opposite<T: Number>(rest: T, divisor: T) -> bool {
    rest != T::ZERO && (rest < T::ZERO) != (divisor < T::ZERO)
}

/// Powers by squaring, modulo the size of the type.
#[inline]
fn whole_power<T: Divide>(base: T, exponent: T, halve: impl Fn(T) -> (T, bool)) -> T {
    if exponent < T::ZERO {
        let minus_one = T::ZERO.minus(T::ONE);
        return match base {
            one if one == T::ONE => one,
            // An even number of factors -1 cancels out.
            minus if minus == minus_one && halve(exponent).1 => minus_one,
            minus if minus == minus_one => T::ONE,
            _ => T::ZERO,
        };
    }
    let (mut result, mut factor, mut left) = (T::ONE, base, exponent);
    while left != T::ZERO {
        let (half, odd) = halve(left);
        if odd {
            result = result.times(factor);
        }
        factor = factor.times(factor);
        left = half;
    }
    result
}

/// By way of the rest, so that a quotient just below a whole number is not rounded up to it.
#[inline]
fn floored<T: Float>(a: T, b: T) -> T {
    if b == T::ZERO {
        return a / b;
    }
    let rest = a % b;
    let quotient = (a - rest) / b;
    let quotient = if is_opposite(rest, b) { quotient - T::ONE } else { quotient };
    if quotient == T::ZERO {
        return T::ZERO.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > T::ONE / (T::ONE + T::ONE) { floor + T::ONE } else { floor }
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Divide for $ty {
            #[inline]
            fn quotient(self, other: Self) -> Self {
                self.wrapping_div(other)
            }

            #[inline]
            fn floor_quotient(self, other: Self) -> Self {
                let quotient = self.wrapping_div(other);
                if is_opposite(self.rest(other), other) { quotient.wrapping_sub(1) } else { quotient }
            }

            #[inline]
            fn rest(self, other: Self) -> Self {
                self.wrapping_rem(other)
            }

            #[inline]
            fn power(self, exponent: Self) -> Self {
                whole_power(self, exponent, |left| (left / 2, left % 2 != 0))
            }
        }
    )*};
}

macro_rules! floats {
    ($($ty:ty)*) => {$(
        impl Divide for $ty {
            #[inline]
            fn quotient(self, other: Self) -> Self {
                num_traits::Float::trunc(self / other)
            }

            #[inline]
            fn floor_quotient(self, other: Self) -> Self {
                floored(self, other)
            }

            #[inline]
            fn rest(self, other: Self) -> Self {
                self % other
            }

            #[inline]
            fn power(self, exponent: Self) -> Self {
                num_traits::Float::powf(self, exponent)
            }
        }
    )*};
}

integers!(u8 i8 i16 i32 i64);
floats!(f32 f64 f16 bf16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_cut_or_floored() {
        assert_eq!(((-7).quotient(2), (-7).floor_quotient(2), (-7).rest(2)), (-3, -4, -1));
        assert_eq!((7.floor_quotient(-2), (-8).floor_quotient(2), 7u8.floor_quotient(2)), (-4, -4, 3));
        assert_eq!(
            ((-7.0).quotient(2.0), (-7.0).floor_quotient(2.0), 1.0.floor_quotient(0.1)),
            (-3.0, -4.0, 9.0)
        );
        assert!(1.0f32.floor_quotient(0.0).is_infinite() && i64::MIN.quotient(-1) == i64::MIN);
    }

    #[test]
    fn powers_of_integers_wrap_and_are_cut() {
        assert_eq!((2.power(10), (-3i64).power(3), 0.power(0), 16u8.power(2)), (1024, -27, 1, 0));
        assert_eq!((2.power(-1), 1.power(-5), (-1).power(-3), (-1).power(-4)), (0, 1, -1, 1));
    }
}
