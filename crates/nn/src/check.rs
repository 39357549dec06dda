//! What makes no sense is refused by name: hyper-parameters when they are set, inputs when they come.

use cresset_tensor::{Cause, Error, Result, Tensor};
use std::fmt::Display;

/// Refuses sizes of 0.
pub(crate) fn positive(layer: &'static str, sizes: &[(&str, usize)]) -> Result<()> {
    sizes.iter().try_for_each(|&(name, size)| within(layer, name, size, size > 0, "at least 1"))
}

/// Refuses a list with a 0 in it.
pub(crate) fn all_positive(layer: &'static str, name: &str, sizes: &[usize]) -> Result<()> {
    if !sizes.contains(&0) {
        return Ok(());
    }
    Err(refused(layer, format_args!("{name} is {sizes:?}, expected at least 1 in each dimension")))
}

/// Refuses `value` unless it is `allowed`.
pub(crate) fn within(
    layer: &'static str,
    name: &str,
    value: impl Display,
    allowed: bool,
    expected: impl Display,
) -> Result<()> {
    if allowed {
        return Ok(());
    }
    Err(refused(layer, format_args!("{name} is {value}, expected {expected}")))
}

/// Refuses a probability that is none.
pub(crate) fn probability(layer: &'static str, p: f64) -> Result<()> {
    within(layer, "p", p, (0.0..=1.0).contains(&p), "a probability from 0 to 1")
}

/// Refuses an epsilon that could not keep a divisor away from 0.
pub(crate) fn epsilon(layer: &'static str, eps: f64) -> Result<()> {
    within(layer, "eps", eps, eps > 0.0 && eps.is_finite(), "a finite number above 0")
}

pub(crate) fn refused(layer: &'static str, text: impl Display) -> Error {
    Error::new(Cause::Argument, layer, text)
}

/// What a call gave; if it failed, what `check` has against the input, which says more than the operator.
/// Checked afterwards, a profile shows the call that failed.
pub(crate) fn explained<T>(result: Result<T>, check: impl FnOnce() -> Result<()>) -> Result<T> {
    result.or_else(|error| check().and(Err(error)))
}

/// Refuses an input that is not of one of the `ranks`.
pub(crate) fn rank(layer: &'static str, input: &Tensor, ranks: &[usize]) -> Result<()> {
    if ranks.contains(&input.dim()) {
        return Ok(());
    }
    let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
    let text = format_args!(
        "expects an input of {} dimensions, not one of shape {:?}",
        ranks.join(" or "),
        input.shape()
    );
    Err(Error::new(Cause::Shape, layer, text))
}

/// Refuses an input with another number of `what` than expected at `dim`.
pub(crate) fn size(
    layer: &'static str,
    what: &str,
    input: &Tensor,
    dim: usize,
    expected: usize,
) -> Result<()> {
    match input.shape().get(dim) {
        Some(&found) if found == expected => Ok(()),
        found => {
            let found = found.map_or("none".to_owned(), usize::to_string);
            let text = format_args!(
                "expects {expected} {what} in dimension {dim} of its input, not {found}: its shape is {:?}",
                input.shape()
            );
            Err(Error::new(Cause::Shape, layer, text))
        }
    }
}
