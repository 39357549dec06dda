//! Losses, by what they compare: classes, distances, probabilities, margins.

mod classes;

pub use classes::*;

pub use cresset_kernels::loss::Reduction;

use crate::{Cause, Error, Result};

/// The reduction that torch calls `name`.
pub fn reduction_named(name: &str) -> Result<Reduction> {
    match name {
        "none" => Ok(Reduction::None),
        "mean" => Ok(Reduction::Mean),
        "sum" => Ok(Reduction::Sum),
        other => {
            let text = format_args!("{other:?} is no reduction; there are \"none\", \"mean\" and \"sum\"");
            Err(Error::new(Cause::Argument, "reduction", text))
        }
    }
}

/// Reductions by number, as traces and devices write them.
pub fn reduction_number(reduction: Reduction) -> i64 {
    match reduction {
        Reduction::None => 0,
        Reduction::Mean => 1,
        Reduction::Sum => 2,
    }
}
