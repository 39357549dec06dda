//! Functions of single precision without branches or calls, so that loops over them become vector code.
//!
//! They multiply and add in one step, rounded once: an instruction within [`wide`](crate::wide) loops
//! on processors that have it, a call of the same result elsewhere. Errors are in units of the last
//! place of the true value, over all numbers.

/// Adding this leaves the nearest integer in the low bits of the sum.
const TO_INTEGER: f32 = 12_582_912.0;

/// `e^x`, within 1.1 ulp, also where it is subnormal.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (rest, n) = split(x);
    let p = polynomial(rest, [0.001_381_454, 0.008_368_745, 0.041_668_39, 0.166_665_21, 0.499_999_94]);
    let value = (p * rest).mul_add(rest, rest) + 1.0;
    // Two factors, because 2^n may be too large or too small for one.
    let half = n >> 1;
    value * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `e^x - 1`, within 1.5 ulp.
#[inline(always)]
pub(crate) fn exp_m1(x: f32) -> f32 {
    let y = if x > 89.0 { 89.0 } else { x };
    let y = if y < -30.0 { -30.0 } else { y };
    let (rest, n) = split(y);
    // Half of the result: 2^n may be too large.
    let half = power_of_two(n.wrapping_sub(1));
    let value = 2.0 * half.mul_add(exp_m1_near(rest), half - 0.5);
    if x == 0.0 { x } else { value }
}

/// `x = n ln 2 + rest`, the rest as small as can be.
#[inline(always)]
fn split(x: f32) -> (f32, i32) {
    // ln 2 in two parts, for digits that one lacks.
    const LN2_HIGH: f32 = std::f32::consts::LN_2;
    const LN2_LOW: f32 = -1.904_654_3e-9;
    let sum = x.mul_add(std::f32::consts::LOG2_E, TO_INTEGER);
    let n = sum - TO_INTEGER;
    let rest = n.mul_add(-LN2_LOW, n.mul_add(-LN2_HIGH, x));
    (rest, sum.to_bits().wrapping_sub(TO_INTEGER.to_bits()) as i32)
}

/// `e^x - 1` within half of ln 2.
#[inline(always)]
fn exp_m1_near(x: f32) -> f32 {
    let p = polynomial(x, [1.991_410_8e-4, 0.001_394_105, 0.008_333_273, 0.041_666_355, 0.166_666_67, 0.5]);
    (p * x).mul_add(x, x)
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// The natural logarithm, within 1 ulp.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    // Subnormal numbers are brought where all digits count.
    let tiny = x < f32::MIN_POSITIVE;
    let y = if tiny { x * 8_388_608.0 } else { x };
    let (mantissa, n) = mantissa(y);
    let n = if tiny { n - 23 } else { n };
    log_edges(x, 0.0, ln_of_parts(mantissa - 1.0, n as f32))
}

/// `log(1 + x)`, within 1.5 ulp.
#[inline(always)]
pub(crate) fn ln_1p(x: f32) -> f32 {
    // Beyond 2^64, 1 counts for nothing, and the scale below would be subnormal.
    let huge = x > 1.844_674_4e19;
    let (y, one) = if huge { (x * 5.421_011e-20, 0.0) } else { (x, 1.0) };
    let (_, n) = mantissa(y + one);
    // What 1 + x loses, scaling before the sum keeps.
    let scale = power_of_two(n.wrapping_neg());
    let rest = y.mul_add(scale, one * scale - 1.0);
    let value = log_edges(x, -1.0, ln_of_parts(rest, if huge { n + 64 } else { n } as f32));
    if x == 0.0 { x } else { value }
}

/// `x` as a number from the root of 1/2 to the root of 2, and how many times that is doubled.
#[inline(always)]
fn mantissa(x: f32) -> (f32, i32) {
    const ROOT: u32 = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    let above = x.to_bits().wrapping_sub(ROOT);
    (f32::from_bits((above & 0x007f_ffff).wrapping_add(ROOT)), above as i32 >> 23)
}

/// `log(1 + x) + n ln 2`, for a small `x`.
#[inline(always)]
fn ln_of_parts(x: f32, n: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let p = polynomial(
        x,
        [
            -0.078_609_39,
            0.128_834_95,
            -0.131_291_02,
            0.141_809_57,
            -0.166_244_98,
            0.200_022_95,
            -0.250_008_1,
            0.333_333_16,
        ],
    );
    let square = x * x;
    let tail = (p * x).mul_add(square, n.mul_add(LN2_LOW, -0.5 * square));
    n.mul_add(LN2_HIGH, x + tail)
}

/// A logarithm where the number is infinite, `zero`, below it, or none.
#[inline(always)]
fn log_edges(x: f32, zero: f32, value: f32) -> f32 {
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == zero { f32::NEG_INFINITY } else { value };
    if x >= zero { value } else { f32::NAN }
}

/// The hyperbolic tangent, within 2.5 ulp.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let twice = 2.0 * x.abs();
    let (rest, n) = split(if twice > 20.0 { 20.0 } else { twice });
    let power = power_of_two(n);
    let less = power.mul_add(exp_m1_near(rest), power - 1.0);
    (less / (less + 2.0)).copysign(x)
}

/// `1 / (1 + e^-x)`, within 2.5 ulp; 0 where `e^-x` is infinite.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The error function, within 5 ulp: 3e-7 of the value.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    #[expect(clippy::approx_constant, reason = "rounded down, for a smaller error elsewhere")]
    const SLOPE_AT_0: f32 = 1.128_379_1;
    // erf(x) = x P(x^2) / Q(x^2) up to 3.9, beyond which the result is 1.
    let square = x * x;
    let above = polynomial(
        square,
        [1.900_225_6e-6, 2.885_298_2e-4, 0.004_176_019_7, 0.054_011_397, 0.200_728_71, SLOPE_AT_0],
    );
    let below =
        polynomial(square, [3.672_395_5e-5, 0.001_251_307_5, 0.015_801_037, 0.118_281_51, 0.511_222_96, 1.0]);
    let size = x.abs() * above / below;
    let size = if size > 1.0 || x.abs() > 3.9 { 1.0 } else { size };
    size.copysign(x)
}

/// Coefficients from the highest power down.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    coefficients[1..].iter().fold(coefficients[0], |sum, &coefficient| sum.mul_add(x, coefficient))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far `ours` is from the true value, in units of the last place of that.
    fn distance(ours: f32, true_value: f64) -> f64 {
        let nearest = true_value as f32;
        if ours.to_bits() == nearest.to_bits() || (ours.is_nan() && nearest.is_nan()) {
            return 0.0;
        }
        if !ours.is_finite() || !nearest.is_finite() || ours.is_sign_negative() != nearest.is_sign_negative()
        {
            return f64::INFINITY;
        }
        let exponent = true_value.abs().max(f32::MIN_POSITIVE.into()).log2().floor();
        (f64::from(ours) - true_value).abs() / (exponent - 23.0).exp2()
    }

    /// Numbers of every size, sign and kind.
    fn numbers() -> impl Iterator<Item = f32> {
        (0..=u32::MAX).step_by(9973).chain([0, 1 << 31, 0x7f80_0000, 0xff80_0000]).map(f32::from_bits)
    }

    fn assert_within(ulp: f64, ours: fn(f32) -> f32, true_value: fn(f64) -> f64) {
        for x in numbers() {
            let (ours, true_value) = (ours(x), true_value(x.into()));
            let distance = distance(ours, true_value);
            assert!(distance <= ulp, "of {x:e}: {ours:e}, not {true_value:e}, off by {distance} ulp");
        }
    }

    #[test]
    fn functions_of_single_precision_are_within_their_errors() {
        assert_within(1.1, exp, f64::exp);
        assert_within(1.5, exp_m1, f64::exp_m1);
        assert_within(1.0, ln, f64::ln);
        assert_within(1.5, ln_1p, f64::ln_1p);
        assert_within(2.5, tanh, f64::tanh);
        assert_within(5.0, erf, libm::erf);
        assert_within(2.5, sigmoid, |x| if x < -88.722_84 { 0.0 } else { 1.0 / (1.0 + (-x).exp()) });
    }

    #[test]
    fn functions_are_exact_at_the_edges() {
        assert_eq!([exp(0.0), exp(200.0), exp(f32::NEG_INFINITY)], [1.0, f32::INFINITY, 0.0]);
        assert_eq!([tanh(f32::INFINITY), erf(f32::NEG_INFINITY), tanh(-1e-30)], [1.0, -1.0, -1e-30]);
        assert_eq!([ln(1.0), ln(0.0), ln_1p(-1.0)], [0.0, f32::NEG_INFINITY, f32::NEG_INFINITY]);
        for f in [exp, exp_m1, ln, ln_1p, tanh, erf, sigmoid] {
            assert!(f(f32::NAN).is_nan());
        }
        for f in [exp_m1, ln_1p, tanh, erf] {
            assert_eq!(f(-0.0).to_bits(), (-0.0f32).to_bits());
        }
    }
}
