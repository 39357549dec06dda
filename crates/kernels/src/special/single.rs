//! Functions of single precision without branches or calls, so that loops over them become vector code.

/// `e^x`, within 1 ulp or so.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding this leaves the nearest integer in the low bits of the sum.
    const TO_INTEGER: f32 = 12_582_912.0;
    // ln 2 in two parts, the first short enough for exact multiples.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let sum = x * std::f32::consts::LOG2_E + TO_INTEGER;
    let n = sum - TO_INTEGER;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let p = polynomial(r, [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5]);
    let value = (p * r) * r + r + 1.0;
    // Two factors, because 2^n may be too large or too small for one.
    let n = sum.to_bits().wrapping_sub(TO_INTEGER.to_bits()) as i32;
    let half = n >> 1;
    value * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// The hyperbolic tangent, within 3 ulp or so.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let square = x * x;
    // tanh(x) = x + x^3 P(x^2) near zero, P fitted over |x| <= 0.63.
    let near = polynomial(
        square,
        [0.002_269_501_7, -0.008_323_187, 0.021_762_503, -0.053_958_46, 0.133_333, -0.333_333_33],
    );
    let size = x.abs();
    let far = 1.0 - 2.0 / (exp(2.0 * size) + 1.0);
    if size < 0.63 { x + x * square * near } else { far.copysign(x) }
}

/// The error function, within 3 ulp or so.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    // erf(x) = x P(x^2), P fitted over |x| <= 1.
    let near = polynomial(
        x * x,
        [
            7.875_875e-5,
            -8.016_864e-4,
            0.005_189_087_3,
            -0.026_854_212,
            0.112_835_95,
            -0.376_126_26,
            std::f32::consts::FRAC_2_SQRT_PI,
        ],
    );
    // erf(x) = 1 - exp(-Q(x)), Q fitted over 1 <= x <= 4, beyond which the result is 1.
    let size = x.abs();
    let far = polynomial(
        if size > 4.0 { 4.0 } else { size },
        [
            -1.637_151_4e-6,
            4.605_804e-5,
            -5.968_056e-4,
            0.004_759_596,
            -0.026_421_136,
            0.110_080_08,
            0.631_826_04,
            1.130_233_4,
            -3.201_380_6e-4,
        ],
    );
    if size < 1.0 { x * near } else { (1.0 - exp(-far)).copysign(x) }
}

/// Coefficients from the highest power down.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    coefficients.into_iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_everywhere_and_right_at_the_edges() {
        let mut x = -103.0f32;
        while x < 88.7 {
            let (ours, true_value) = (exp(x), f64::from(x).exp());
            let ulp = f64::from(f32::EPSILON) * true_value.max(1.2e-38);
            assert!((f64::from(ours) - true_value).abs() <= 1.5 * ulp, "exp({x}) = {ours}, not {true_value}");
            x += 0.00713;
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(200.0), f32::INFINITY);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn tanh_and_erf_in_single_precision_are_close_everywhere() {
        for i in -600_000..600_000 {
            let x = i as f32 * 1.7e-5;
            for (ours, true_value) in [(tanh(x), f64::from(x).tanh()), (erf(x), libm::erf(f64::from(x)))] {
                let ulp = f64::from(f32::EPSILON) * true_value.abs();
                assert!((f64::from(ours) - true_value).abs() <= 3.0 * ulp, "{x}: {ours}, not {true_value}");
            }
        }
        assert_eq!([tanh(f32::INFINITY), erf(f32::NEG_INFINITY), tanh(-1e-30)], [1.0, -1.0, -1e-30]);
        assert!(tanh(f32::NAN).is_nan() && erf(f32::NAN).is_nan());
    }
}
