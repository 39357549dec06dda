//! Functions that the library does not have, made of those that it has.

use super::{converted, operand};
use crate::aclnn;
use cresset_tensor::ops::{Digamma, Hypot, Lgamma, Polygamma};
use cresset_tensor::{DType, Kernel, Key, Result, Tensor};
use std::f64::consts::PI;

pub(super) fn register(npu: Key) {
    Lgamma::table().register(npu, |_, [x], out| in_wide(x, out, lgamma));
    Digamma::table().register(npu, |_, [x], out| in_wide(x, out, digamma));
    Polygamma::table().register(npu, |op, [x], out| in_wide(x, out, |x| polygamma(op.n, x)));
    Hypot::table().register(npu, |_, (a, b), out| {
        let (a, b) = (converted(a, out.dtype())?.abs()?, operand(b, out.dtype(), out)?.abs()?);
        let long = a.maximum(&b)?;
        let ratio = a.minimum(&b)?.div(&long)?;
        let length = long.mul(&ratio.mul(&ratio)?.add(1)?.sqrt()?)?;
        // Nothing is divided by nothing, nor what has no end by itself.
        let is_plain = long.gt(0)?.logical_and(&long.lt(f64::INFINITY)?)?;
        aclnn::inplace_copy(out, &length.where_(&is_plain, &long)?)
    });
}

/// Half precision is not enough for what goes on inside.
fn in_wide(x: &Tensor, out: &Tensor, function: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<()> {
    let wide = if out.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    aclnn::inplace_copy(out, &function(&converted(x, wide)?)?)
}

/// Where the series of Stirling and of Euler and Maclaurin are good enough.
const FAR: f64 = 10.0;
/// Coefficients of the series for the logarithm of the gamma function, by odd powers of `1 / x`.
const STIRLING: [f64; 6] =
    [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1260.0, -1.0 / 1680.0, 1.0 / 1188.0, -691.0 / 360_360.0];
/// Coefficients of that for its derivative, by even powers.
const OF_DIGAMMA: [f64; 6] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32_760.0];
/// Bernoulli's numbers of even order.
const BERNOULLI: [f64; 6] = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0];

/// `c0 y + c1 y^3 + …`, or with `even` `c0 y^2 + c1 y^4 + …`.
fn series(coefficients: &[f64], y: &Tensor, even: bool) -> Result<Tensor> {
    let square = y.mul(y)?;
    let mut sum = square.zeros_like()?;
    for &coefficient in coefficients.iter().rev() {
        sum = sum.mul(&square)?.add(coefficient)?;
    }
    sum.mul(if even { &square } else { y })
}

/// `x`, and `1 - x` where that is positive and `x` is not.
fn mirrored(x: &Tensor) -> Result<(Tensor, Tensor)> {
    let below = x.lt(0.5)?;
    Ok((x.rsub(1)?.where_(&below, x)?, below))
}

/// How far `x` is from the nearest integer, times pi: the sine of that is the sine of `pi x`, up to its sign.
fn angle(x: &Tensor) -> Result<Tensor> {
    x.sub(&x.round()?)?.mul(PI)
}

fn lgamma(x: &Tensor) -> Result<Tensor> {
    // No farther than must be: what is added there is taken off again here.
    const STEPS: f64 = 4.0;
    let (y, below) = mirrored(x)?;
    let near = y.lt(STEPS)?;
    let mut product = y.ones_like()?;
    for step in 0..STEPS as i64 {
        product = product.mul(&y.add(step)?)?;
    }
    let far = y.add(STEPS)?.where_(&near, &y)?;
    let stirling = far.sub(0.5)?.mul(&far.log()?)?.sub(&far)?.add(0.5 * (2.0 * PI).ln())?;
    let above = stirling.add(&series(&STIRLING, &far.reciprocal()?, false)?)?;
    let above = above.sub(&product.log()?)?.where_(&near, &above)?;
    let reflected = angle(x)?.sin()?.abs()?.reciprocal()?.mul(PI)?.log()?.sub(&above)?;
    let value = reflected.where_(&below, &above)?;
    // The series has no end to lean on there.
    let endless = x.abs()?.eq(f64::INFINITY)?;
    value.masked_fill(&endless, f64::INFINITY)
}

fn digamma(x: &Tensor) -> Result<Tensor> {
    let (y, below) = mirrored(x)?;
    let near = y.lt(FAR)?;
    let mut sum = y.zeros_like()?;
    for step in 0..FAR as i64 {
        sum = sum.add(&y.add(step)?.reciprocal()?)?;
    }
    let far = y.add(FAR)?.where_(&near, &y)?;
    let inverse = far.reciprocal()?;
    let above = far.log()?.sub(&inverse.mul(0.5)?)?.sub(&series(&OF_DIGAMMA, &inverse, true)?)?;
    let above = above.sub(&sum)?.where_(&near, &above)?;
    let value = above.sub(&angle(x)?.tan()?.reciprocal()?.mul(PI)?)?.where_(&below, &above)?;
    let pole = x.eq(&x.floor()?)?.logical_and(&x.lt(0)?)?;
    let value = value.masked_fill(&pole, f64::NAN)?;
    // At 0 it falls or rises without end.
    let endless = x.full_like(f64::INFINITY)?;
    endless.where_(&x.signbit()?, &endless.neg()?)?.where_(&x.eq(0)?, &value)
}

/// Hurwitz's zeta function, up to a factor: the first terms, and the rest by Euler and Maclaurin.
fn polygamma(n: u32, x: &Tensor) -> Result<Tensor> {
    if n == 0 {
        return digamma(x);
    }
    let s = f64::from(n) + 1.0;
    // So many terms that the rest begins far enough out.
    let least = if x.numel() == 0 { 0.0 } else { x.min()?.item()?.as_f64() };
    let below = if least.is_finite() { (-least).max(0.0).ceil() } else { 0.0 };
    let terms = (FAR + s.min(200.0) + below).min(MOST_TERMS);
    let mut sum = x.zeros_like()?;
    for step in 0..terms as i64 {
        sum = sum.add(&x.add(step)?.pow(-s)?)?;
    }
    let far = x.add(terms)?;
    let last = far.pow(-s)?;
    sum = sum.add(&far.mul(&last)?.mul(1.0 / (s - 1.0))?)?.add(&last.mul(0.5)?)?;
    let mut factor = last.div(&far)?.mul(0.5 * s)?;
    for (k, bernoulli) in (1u32..).zip(BERNOULLI) {
        sum = sum.add(&factor.mul(bernoulli)?)?;
        let even = f64::from(2 * k);
        let growth = (s + even - 1.0) * (s + even) / ((even + 1.0) * (even + 2.0));
        factor = factor.div(&far.mul(&far)?)?.mul(growth)?;
    }
    let factorial: f64 = (1..=n.min(171)).map(f64::from).product();
    let value = sum.mul(if n.is_multiple_of(2) { -factorial } else { factorial })?;
    let pole = x.eq(&x.floor()?)?.logical_and(&x.le(0)?)?;
    value.masked_fill(&pole, if n.is_multiple_of(2) { f64::NEG_INFINITY } else { f64::INFINITY })
}

/// Farther below 0 than this nobody asks in earnest.
const MOST_TERMS: f64 = 10_000.0;
