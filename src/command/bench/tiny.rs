//! What a call costs when there is next to nothing to compute.

use super::Outcome;
use super::harness::{Harness, Work};
use cresset::Result;
use cresset::prelude::*;
use std::hint::black_box;

/// One small call.
pub(super) fn first() -> Result<()> {
    let x = small()?;
    black_box(x.add(&x)?);
    Ok(())
}

pub(super) fn run(harness: &mut Harness) -> Outcome {
    harness.bench("w2/add2x2", Work::Call, || {
        let (x, y) = (small()?, small()?);
        Ok(move || x.add(&y))
    })?;
    harness.bench("w2/add2x2_grad", Work::Call, || {
        let (x, y) = (small()?.with_grad()?, small()?);
        Ok(move || x.add(&y))
    })?;
    harness.bench("w2/sqsum_fwbw", Work::Call, || {
        let x = small()?.with_grad()?;
        Ok(move || {
            x.clear_grad();
            x.mul(&x)?.sum()?.backward()
        })
    })
}

fn small() -> Result<Tensor> {
    Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])
}
