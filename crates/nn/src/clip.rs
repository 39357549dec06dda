//! Gradients that are too large, made smaller.

use cresset_tensor::{Cause, Error, Result, Tensor, no_grad};

/// How the norm of many tensors is taken.
#[derive(Clone, Copy, Debug)]
pub struct TotalNorm {
    /// The order of the norm; infinite for the largest element.
    pub norm_type: f64,
    /// Whether a norm that is infinite or not a number is an error.
    pub error_if_nonfinite: bool,
}

impl Default for TotalNorm {
    /// The Euclidean norm, whatever it is.
    fn default() -> TotalNorm {
        TotalNorm { norm_type: 2.0, error_if_nonfinite: false }
    }
}

/// The norm of the norms of `tensors`: as if they were one vector.
///
/// # Errors
/// If it is not finite and that was asked for.
pub fn get_total_norm(tensors: &[Tensor], how: TotalNorm) -> Result<Tensor> {
    let Some(first) = tensors.first() else { return Tensor::zeros([], ()) };
    let _guard = no_grad();
    let norm = |tensor: &Tensor| tensor.vector_norm(how.norm_type, &[], false, None)?.to(first.device());
    let norms = tensors.iter().map(norm).collect::<Result<Vec<_>>>()?;
    let total =
        Tensor::stack(&norms.iter().collect::<Vec<_>>(), 0)?.vector_norm(how.norm_type, &[], false, None)?;
    // Whether a number is finite is known only where it is computed, so it is asked for on demand.
    if how.error_if_nonfinite && !total.item()?.as_f64().is_finite() {
        let text = format_args!("the norm of order {} is {}", how.norm_type, total.item()?.as_f64());
        return Err(Error::new(Cause::Argument, "get_total_norm", text));
    }
    Ok(total)
}

/// Scales the gradients of `parameters` so that their Euclidean norm, taken of all together, is at
/// most `max_norm`. Gives the norm that they had.
///
/// ```
/// use cresset_nn::{Forward, Linear, Module, Tensor, TotalNorm, clip_grad_norm, get_total_norm};
///
/// let model = Linear::new(3, 2)?;
/// model.call(&Tensor::full([4, 3], 100.0, ())?)?.sum()?.backward()?;
/// assert!(clip_grad_norm(&model.parameters(), 1.0)?.item()?.as_f64() > 900.0);
/// let grads: Vec<Tensor> = model.parameters().iter().filter_map(Tensor::grad).collect();
/// let norm = get_total_norm(&grads, TotalNorm::default())?.item()?.as_f64();
/// assert!((norm - 1.0).abs() < 1e-5);
/// # Ok::<(), cresset_nn::Error>(())
/// ```
///
/// # Errors
/// If gradients cannot be changed.
pub fn clip_grad_norm(parameters: &[Tensor], max_norm: f64) -> Result<Tensor> {
    clip_grad_norm_with(parameters, max_norm, TotalNorm::default())
}

/// As [`clip_grad_norm`], by another norm.
///
/// # Errors
/// If the norm is not finite and that was asked for; nothing is changed then.
pub fn clip_grad_norm_with(parameters: &[Tensor], max_norm: f64, how: TotalNorm) -> Result<Tensor> {
    let total = get_total_norm(&gradients(parameters), how)?;
    clip_grads_with_norm(parameters, max_norm, &total)?;
    Ok(total)
}

/// Scales the gradients of `parameters`, whose norm is `total_norm`, so that it is at most `max_norm`.
///
/// # Errors
/// If gradients cannot be changed.
pub fn clip_grads_with_norm(parameters: &[Tensor], max_norm: f64, total_norm: &Tensor) -> Result<()> {
    let _guard = no_grad();
    // As in torch, a norm of 0 is kept from dividing, and nothing waits for the norm to be known.
    let factor = total_norm.add(1e-6)?.reciprocal()?.mul(max_norm)?.clamp_max(1.0)?;
    own_gradients(parameters)?.iter().try_for_each(|grad| grad.mul_(&factor.to(grad.device())?))
}

/// Limits every element of the gradients of `parameters` to `-clip_value..=clip_value`.
///
/// # Errors
/// If gradients cannot be changed.
pub fn clip_grad_value(parameters: &[Tensor], clip_value: f64) -> Result<()> {
    let _guard = no_grad();
    own_gradients(parameters)?.iter().try_for_each(|grad| grad.clamp_(-clip_value, clip_value))
}

/// The gradients of those that have one, each in memory that no other shares.
fn own_gradients(parameters: &[Tensor]) -> Result<Vec<Tensor>> {
    parameters.iter().filter_map(|parameter| parameter.own_grad().transpose()).collect()
}

/// The gradients of those that have one.
fn gradients(parameters: &[Tensor]) -> Vec<Tensor> {
    parameters.iter().filter_map(Tensor::grad).collect()
}
