//! What all training workloads have in common.

use super::Outcome;
use cresset::Result;
use cresset::optim::Implementation;
use cresset::prelude::*;

/// A training step on one batch, after a few that must have made the loss smaller.
pub(super) fn step(
    mut optimizer: impl Optimizer,
    loss: impl Fn() -> Result<Tensor>,
) -> Outcome<impl FnMut() -> Result<Tensor>> {
    let mut step = move || {
        optimizer.zero_grad();
        let loss = loss()?;
        loss.backward()?;
        optimizer.step()?;
        Ok(loss)
    };
    let first = step()?.item()?.as_f64();
    (0..4).try_for_each(|_| step().map(drop))?;
    let last = step()?.item()?.as_f64();
    if last < first {
        return Ok(step);
    }
    Err(format!("bench: six steps took the loss from {first} to {last}, expected it to fall").into())
}

/// Random classes below `count`.
pub(super) fn classes(count: usize, shape: impl AsRef<[usize]>) -> Result<Tensor> {
    Tensor::randint(0, count as i64, shape, DType::I64)
}

pub(super) fn sgd(model: &impl Module, lr: f64) -> Result<Sgd> {
    let options = SgdOptions { lr, implementation: implementation(false), ..SgdOptions::default() };
    Sgd::new(model.parameters(), options)
}

/// The fused form, or the sequence of operators that torch runs by default.
fn implementation(fused: bool) -> Option<Implementation> {
    Some(if fused { Implementation::Fused } else { Implementation::Single })
}

pub(super) fn adam(model: &impl Module, fused: bool) -> Result<Adam> {
    let options = AdamOptions { implementation: implementation(fused), ..AdamOptions::default() };
    Adam::new(model.parameters(), options)
}

/// AdamW as torch has it unless told otherwise.
pub(super) fn adamw(parameters: Vec<Tensor>, fused: bool) -> Result<AdamW> {
    let options = AdamWOptions { implementation: implementation(fused), ..AdamWOptions::default() };
    AdamW::new(parameters, options)
}
