//! The workloads.

use super::Outcome;
use super::harness::{Harness, Work};
use cresset::Result;
use cresset::prelude::*;
use std::hint::black_box;

/// One small call.
pub(super) fn first() -> Result<()> {
    let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
    black_box(x.add(&x)?);
    Ok(())
}

pub(super) fn run_all(harness: &mut Harness) -> Outcome {
    tiny_calls(harness)?;
    mlp_steps(harness)
}

/// What a call costs when there is next to nothing to compute.
fn tiny_calls(harness: &mut Harness) -> Outcome {
    harness.bench("w2/add2x2", Work::Call, || {
        let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?;
        Ok(move || x.add(&x).map(|y| drop(black_box(y))))
    })?;
    harness.bench("w2/add2x2_grad", Work::Call, || {
        let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.with_grad()?;
        Ok(move || x.add(&x).map(|y| drop(black_box(y))))
    })?;
    harness.bench("w2/sqsum_fwbw", Work::Call, || {
        let x = Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.with_grad()?;
        Ok(move || {
            x.clear_grad();
            x.mul(&x)?.sum()?.backward()
        })
    })
}

/// Whole training steps of a 784-512-256-10 network.
fn mlp_steps(harness: &mut Harness) -> Outcome {
    for batch in [64, 1024] {
        harness.bench(&format!("w4/mlp_b{batch}_sgd"), Work::Step, || {
            let options = SgdOptions { lr: 1e-3, ..SgdOptions::default() };
            mlp(batch, move |parameters| Ok(Box::new(Sgd::new(parameters, options)?)))
        })?;
        for (suffix, fused) in [("", false), ("_fused", true)] {
            harness.bench(&format!("w4/mlp_b{batch}_adam{suffix}"), Work::Step, || {
                let options = AdamOptions { lr: 1e-3, fused, ..AdamOptions::default() };
                mlp(batch, move |parameters| Ok(Box::new(Adam::new(parameters, options)?)))
            })?;
        }
    }
    Ok(())
}

fn mlp(
    batch: usize,
    optimizer: impl FnOnce(Vec<Tensor>) -> Result<Box<dyn Optimizer>>,
) -> Result<impl FnMut() -> Result<()>> {
    let model = Sequential::new()
        .push(Linear::new(784, 512)?)
        .push(Relu)
        .push(Linear::new(512, 256)?)
        .push(Relu)
        .push(Linear::new(256, 10)?);
    let x = Tensor::uniform(-1.0, 1.0, [batch, 784], ())?;
    let classes: Vec<i64> = (0..batch as i64).map(|i| i * 7 % 10).collect();
    let classes = Tensor::from_slice(&classes, [batch])?;
    let mut optimizer = optimizer(model.parameters())?;
    Ok(move || {
        optimizer.zero_grad();
        model.forward(&x)?.cross_entropy(&classes)?.backward()?;
        optimizer.step()
    })
}
