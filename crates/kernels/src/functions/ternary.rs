//! Functions of three numbers.

use super::{FloatTernary, functions};
use crate::Float;

functions! { FloatTernary of Float:
    /// From `a` towards `b` by the share `c`
    Lerp(a, b, c) => if c.abs() < T::ONE / (T::ONE + T::ONE) { a + c * (b - a) } else { b - (b - a) * (T::ONE - c) };
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
