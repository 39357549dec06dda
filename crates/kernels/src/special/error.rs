//! The inverse of the error function, which `libm` has.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

/// The number whose error function is `y`.
pub(crate) fn erfinv(y: f64) -> f64 {
    let size = y.abs();
    if size >= 1.0 {
        return if size == 1.0 { f64::INFINITY.copysign(y) } else { f64::NAN };
    }
    // Two steps by Halley make 18 digits of the 2 or 3 that the guess has.
    refined(refined(guess(size), size), size).copysign(y)
}

/// Within 0.3 % for `y` from 0 to 1; found by S. Winitzki.
fn guess(y: f64) -> f64 {
    const A: f64 = 0.147;
    let log = (-y * y).ln_1p();
    let t = 2.0 / (PI * A) + log / 2.0;
    ((t * t - log / A).sqrt() - t).sqrt()
}

/// A step from `x` towards where the error function is `y`, from 0 to 1.
fn refined(x: f64, y: f64) -> f64 {
    // Near 1 the difference of the complements has the digits that the values lack.
    let above = if y < 0.5 { libm::erf(x) - y } else { (1.0 - y) - libm::erfc(x) };
    let step = above / (FRAC_2_SQRT_PI * (-x * x).exp());
    x - step / (1.0 + x * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erfinv_is_the_inverse_of_erf() {
        for i in 1..10_000 {
            let y = f64::from(i) / 10_000.0;
            assert!((libm::erf(erfinv(y)) - y).abs() <= 4e-16, "{y}");
            assert_eq!(erfinv(-y), -erfinv(y));
        }
        for i in 1..50 {
            let rest = 0.5f64.powi(i);
            let back = libm::erfc(erfinv(1.0 - rest));
            assert!((back / rest - 1.0).abs() < 1e-13, "1 - {rest}: {back}");
        }
        for tiny in [0.0, 1e-300, 1e-20, 1e-9] {
            assert!((erfinv(tiny) - tiny / FRAC_2_SQRT_PI).abs() <= 1e-15 * tiny);
        }
        assert_eq!([erfinv(1.0), erfinv(-1.0)], [f64::INFINITY, f64::NEG_INFINITY]);
        assert!(erfinv(1.5).is_nan() && erfinv(f64::NAN).is_nan());
    }
}
