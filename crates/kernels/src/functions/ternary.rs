//! Functions of three numbers.

use super::{FloatBinary, FloatTernary, Ternary, functions};
use crate::{Float, Number, Scalar};

functions! { FloatTernary of Float:
    /// From `a` towards `b` by the share `c`
    Lerp(a, b, c) => if c.abs() < T::ONE / (T::ONE + T::ONE) { a.plus_product(c, b - a) } else { b.plus_product(c - T::ONE, b - a) };
}

/// From `a` towards `b` by one share for all, which is not rounded to the type of half-precision elements
#[derive(Clone, Copy, Debug)]
pub struct LerpBy {
    /// 0 is `a`, 1 is `b`.
    pub share: f64,
}

impl FloatBinary for LerpBy {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T) -> T {
        Lerp.apply(a, b, T::narrow(self.share))
    }
}

/// `a + value * b / c`
#[derive(Clone, Copy, Debug)]
pub struct Addcdiv {
    /// What the quotient is multiplied by.
    pub value: Scalar,
}

impl FloatTernary for Addcdiv {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T, c: T) -> T {
        a + T::from_scalar(self.value) * b / c
    }
}

/// `a + value * b * c`
#[derive(Clone, Copy, Debug)]
pub struct Addcmul {
    /// What the product is multiplied by.
    pub value: Scalar,
}

impl Ternary for Addcmul {
    #[inline(always)]
    fn apply<T: Number>(self, a: T, b: T, c: T) -> T {
        a.plus_product(T::from_scalar(self.value).times(b), c)
    }
}

impl FloatTernary for Addcmul {
    #[inline(always)]
    fn apply<T: Float>(self, a: T, b: T, c: T) -> T {
        Ternary::apply(self, a, b, c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lerp_meets_both_ends() {
        assert_eq!(
            [Lerp.apply(1.0f32, 3.0, 0.0), Lerp.apply(1.0, 3.0, 1.0), Lerp.apply(1.0, 3.0, 0.25)],
            [1.0, 3.0, 1.5]
        );
    }
}
