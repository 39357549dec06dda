//! Derivatives of the logarithm of the gamma function, which `libm` has.

use std::f64::consts::PI;

/// From where on the series below have all digits of a double.
const FAR: f64 = 10.0;

/// `B(2k)`, the Bernoulli numbers, from `B(2)` on.
const BERNOULLI: [f64; 8] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
];

/// The slope of the logarithm of the gamma function.
pub(crate) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        // Below 0 it is mirrored, with poles at the integers.
        let pole = x == x.trunc();
        return if pole { f64::NAN } else { digamma(1.0 - x) - PI / (PI * x.fract()).tan() };
    }
    let (mut x, mut below) = (x, 0.0);
    while x < FAR {
        below += 1.0 / x;
        x += 1.0;
    }
    let square = x * x;
    let (mut series, mut power) = (0.0, 1.0);
    for (k, bernoulli) in (1u32..).zip(BERNOULLI) {
        power /= square;
        series += bernoulli / f64::from(2 * k) * power;
    }
    x.ln() - 0.5 / x - series - below
}

/// The `n`th derivative of [`digamma`].
pub(crate) fn polygamma(n: u32, x: f64) -> f64 {
    match n {
        0 => digamma(x),
        1 if x < 0.5 => {
            let sine = (PI * x).sin();
            PI * PI / (sine * sine) - zeta(2, 1.0 - x)
        }
        n => {
            // Beyond 170 it is infinite.
            let factorial: f64 = (1..=n.min(171)).map(f64::from).product();
            let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
            sign * factorial * zeta(n.saturating_add(1), x)
        }
    }
}

/// Hurwitz's zeta function: the sum of `(x + k)^-s` over all `k` from 0 on, for `s` from 2 on.
fn zeta(s: u32, x: f64) -> f64 {
    if x > 0.0 || x.is_nan() {
        return zeta_above(s, x);
    }
    let whole = x.floor();
    if x == whole {
        return f64::INFINITY;
    }
    // The terms below 0 are, up to their sign, the difference of two such sums.
    let fraction = x - whole;
    let below = zeta_above(s, 1.0 - fraction) - zeta_above(s, 1.0 - x);
    let sign = if s.is_multiple_of(2) { 1.0 } else { -1.0 };
    sign * below + zeta_above(s, fraction)
}

/// The first terms, and the rest by the formula of Euler and Maclaurin.
fn zeta_above(s: u32, x: f64) -> f64 {
    let s = f64::from(s);
    let (mut x, mut sum) = (x, 0.0);
    // Powers beyond the 200th leave nothing that far out.
    while x < FAR + s.min(200.0) {
        sum += x.powf(-s);
        x += 1.0;
    }
    let last = x.powf(-s);
    sum += x * last / (s - 1.0) + last / 2.0;
    // s (s+1) .. (s+2k-2) / (2k)! x^(-s-2k+1)
    let mut factor = s * last / (2.0 * x);
    for (k, bernoulli) in (1u32..).zip(BERNOULLI) {
        sum += bernoulli * factor;
        let even = f64::from(2 * k);
        factor *= (s + even - 1.0) * (s + even) / ((even + 1.0) * (even + 2.0) * x * x);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(ours: f64, true_value: f64) {
        assert!((ours / true_value - 1.0).abs() < 1e-13, "{ours}, not {true_value}");
    }

    #[test]
    fn digamma_agrees_with_closed_forms() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        assert_close(digamma(1.0), -EULER);
        assert_close(digamma(0.5), -EULER - 4f64.ln());
        assert_close(digamma(2.0), 1.0 - EULER);
        assert_close(digamma(10.0), 2.251_752_589_066_721);
        assert_close(digamma(1e10), 1e10f64.ln() - 0.5e-10);
        assert_close(digamma(-0.5), digamma(0.5) + 2.0);
        assert_eq!([digamma(0.0), digamma(-0.0)], [f64::NEG_INFINITY, f64::INFINITY]);
        assert!(digamma(-3.0).is_nan() && digamma(f64::NAN).is_nan());
    }

    #[test]
    fn polygamma_agrees_with_closed_forms() {
        const APERY: f64 = 1.202_056_903_159_594_3;
        assert_close(polygamma(1, 1.0), PI * PI / 6.0);
        assert_close(polygamma(1, 0.5), PI * PI / 2.0);
        assert_close(polygamma(2, 1.0), -2.0 * APERY);
        assert_close(polygamma(2, 0.5), -14.0 * APERY);
        assert_close(polygamma(3, 1.0), PI.powi(4) / 15.0);
        for n in 1..5 {
            let factorial: f64 = (1..=n).map(f64::from).product();
            for x in [-2.3f64, -0.7, 0.3, 4.1] {
                // The recurrence that defines them, up to a constant.
                let step = -(-1f64).powi(n as i32 + 1) * factorial * x.powi(-1 - n as i32);
                assert!(
                    (polygamma(n, x + 1.0) - polygamma(n, x) - step).abs() < 1e-10 * step.abs(),
                    "{n} {x}"
                );
            }
        }
    }
}
