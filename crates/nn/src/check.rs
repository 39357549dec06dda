//! Hyper-parameters that make no sense are refused by name.

use cresset_tensor::{Cause, Error, Result};
use std::fmt::Display;

/// Refuses sizes of 0.
pub(crate) fn positive(layer: &'static str, sizes: &[(&str, usize)]) -> Result<()> {
    sizes.iter().try_for_each(|&(name, size)| within(layer, name, size, size > 0, "at least 1"))
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
    Err(Error::new(Cause::Argument, layer, format_args!("{name} is {value}, expected {expected}")))
}
