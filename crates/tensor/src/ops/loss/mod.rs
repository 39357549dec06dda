//! Losses, by what they compare: classes, distances, probabilities, distributions, margins,
//! sequences.

mod class_margin;
mod classes;
mod distance;
mod likelihood;
mod margin;
mod nll;
mod probability;
mod sequence;
mod soft_margin;

pub use class_margin::*;
pub use classes::*;
pub use distance::*;
pub use likelihood::*;
pub use margin::*;
pub use nll::*;
pub use probability::*;
pub use sequence::*;
pub use soft_margin::*;

pub use cresset_kernels::loss::{ClassMargin, Huber, Reduction, SmoothL1, Square};

use crate::{Cause, Error, Result, Tensor, cpu};
use cresset_kernels::elementwise;

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

/// What one of `count` losses counts among all.
fn share(reduction: Reduction, count: usize) -> f64 {
    match reduction {
        Reduction::Mean => 1.0 / count as f64,
        Reduction::None | Reduction::Sum => 1.0,
    }
}

/// Lets `fill` write losses of `shape`, into `out` itself or into memory that is then reduced.
fn reduce(
    reduction: Reduction,
    shape: &[usize],
    out: &Tensor,
    fill: impl FnOnce(&Tensor) -> Result<()>,
) -> Result<()> {
    if reduction == Reduction::None {
        return fill(out);
    }
    let losses = Tensor::uninit(shape, out.dtype(), out.device())?;
    fill(&losses)?;
    cpu::map(&losses.reduced(reduction)?, out.dtype(), out, elementwise::copy)
}

impl Tensor {
    /// Each of these losses, their mean or their sum.
    fn reduced(&self, reduction: Reduction) -> Result<Tensor> {
        match reduction {
            Reduction::None => Ok(self.clone()),
            Reduction::Mean => self.mean(),
            Reduction::Sum => self.sum(),
        }
    }
}
