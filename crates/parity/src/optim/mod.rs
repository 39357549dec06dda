//! Recorded paths of optimizers, learning rates of schedulers and clipped gradients.

mod case;
mod clip;
mod expression;
mod make;
mod optimizers;
mod schedules;

pub(crate) use make::{Entry, Refusal, Wanted, find};
pub(crate) use schedules::make as scheduler;

use crate::golden::Golden;
use crate::report::{Fault, Report, Row, Suite};
use cresset_tensor::Device;
use std::path::Path;

/// Optimizers.
pub const OPTIMIZERS: Suite = Suite {
    one: "optimizer",
    list: "optimizers",
    preface: "\
# Optimizers, beside PyTorch

Where PyTorch's optimizers went, replayed here by

    cresset parity optim FOLDER --markdown docs/parity-optim.md

A case is one path in one implementation: fused, over lists, and operator by operator, as far as there is
one. It passes if the parameters after every step, what is kept at the end, and where a loss is minimized the
loss of every step are the same within torch's own tolerance for the element type; learning rates of
schedulers are the same to twelve digits; and an error is given wherever torch raises one. The worst error is
a share of the tolerance, so 1 would be its edge. What is not offered is unsupported; it never counts as
passed.

",
};

/// Replays the files of `folder`, or those of optimizer `only`, and shows each row when it is done.
///
/// # Errors
/// If a file cannot be read, or there is none.
pub fn replay_optim(
    folder: &Path,
    only: Option<&str>,
    device: Device,
    show: impl FnMut(&Row),
) -> Result<Report, Fault> {
    Report::collect(OPTIMIZERS, folder, only, show, |path| {
        if let Some((json, golden)) = Golden::open(path, "optim")? {
            return optimizers::row(path, &json, &golden, device).map(Some);
        }
        if let Some((json, golden)) = Golden::open(path, "clip_grad")? {
            return Ok(Some(clip::row(&json, &golden, device)));
        }
        schedules::row(path)
    })
}
