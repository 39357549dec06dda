//! Whether a tensor is the one that was recorded.

use crate::golden::{Expected, Golden};
use cresset_tensor::{DType, Scalar, Tensor};

/// Compares values, shape and element type. Gives the worst error as a share of what is allowed.
pub(crate) fn compare(golden: &Golden, got: &Tensor, expected: &Expected) -> Result<f64, String> {
    let Some(key) = &expected.key else { return Err("is a tensor, expected none".to_owned()) };
    let wanted = golden.tensor(key)?;
    if got.dtype() != wanted.dtype() {
        return Err(format!("has dtype {}, expected {}", got.dtype(), wanted.dtype()));
    }
    compare_values(golden, got, wanted, expected)
}

/// As [`compare`] with tensor `key`, whose own error is `noise`.
pub(crate) fn compare_within(golden: &Golden, got: &Tensor, key: &str, noise: f64) -> Result<f64, String> {
    compare(golden, got, &Expected { key: Some(key.to_owned()), noise, ill: false })
}

/// As [`compare`], whatever the element types are.
pub(crate) fn compare_values(
    golden: &Golden,
    got: &Tensor,
    wanted: &Tensor,
    expected: &Expected,
) -> Result<f64, String> {
    if got.shape() != wanted.shape() {
        return Err(format!("has shape {:?}, expected {:?}", got.shape(), wanted.shape()));
    }
    if expected.ill {
        return Ok(0.0);
    }
    let [relative, absolute] = golden.tolerances.get(&wanted.dtype()).copied().unwrap_or([0.0; 2]);
    let allowed = |wanted: f64| absolute + relative * wanted.abs() + 4.0 * expected.noise;
    let mut worst = 0.0;
    for (i, (got, wanted)) in numbers(got)?.into_iter().zip(numbers(wanted)?).enumerate() {
        let share = distance(got, wanted, allowed);
        if share > 1.0 {
            return Err(format!("is {got} at element {i}, expected {wanted}"));
        }
        worst = f64::max(worst, share);
    }
    Ok(worst)
}

/// How far apart two numbers are, as a share of what is allowed.
fn distance(got: Scalar, wanted: Scalar, allowed: impl Fn(f64) -> f64) -> f64 {
    if let (Scalar::Int(got), Scalar::Int(wanted)) = (got, wanted) {
        return if got == wanted { 0.0 } else { f64::INFINITY };
    }
    let (got, wanted) = (got.as_f64(), wanted.as_f64());
    if got == wanted || (got.is_nan() && wanted.is_nan()) {
        return 0.0;
    }
    let difference = (got - wanted).abs();
    // Not a number where a number is expected, or the other way round.
    if difference.is_nan() || difference.is_infinite() {
        return f64::INFINITY;
    }
    if difference == 0.0 { 0.0 } else { difference / allowed(wanted) }
}

/// The elements in row-major order.
pub(crate) fn numbers(x: &Tensor) -> Result<Vec<Scalar>, String> {
    let told = |error: cresset_tensor::Error| error.to_string();
    let exact = |x: &Tensor| x.to_dtype(DType::I64)?.to_vec::<i64>();
    let wide = |x: &Tensor| x.to_dtype(DType::F64)?.to_vec::<f64>();
    let x = x.detach().map_err(told)?;
    if x.dtype().is_float() {
        return Ok(wide(&x).map_err(told)?.into_iter().map(Scalar::Float).collect());
    }
    Ok(exact(&x).map_err(told)?.into_iter().map(Scalar::Int).collect())
}
