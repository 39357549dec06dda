//! Training steps of a network of three linear layers.

use super::Outcome;
use super::harness::{Harness, Work};
use super::training::{adam, classes, sgd, step};
use cresset::Result;
use cresset::prelude::*;

pub(super) fn run(harness: &mut Harness) -> Outcome {
    for batch in [64, 1024] {
        harness.bench(&format!("w4/mlp_b{batch}_sgd"), Work::Step, || {
            let model = model()?;
            step(sgd(&model, 1e-3)?, loss(model, batch)?)
        })?;
        for (name, fused) in [("adam", false), ("adam_fused", true)] {
            harness.bench(&format!("w4/mlp_b{batch}_{name}"), Work::Step, || {
                let model = model()?;
                step(adam(&model, fused)?, loss(model, batch)?)
            })?;
        }
    }
    Ok(())
}

fn model() -> Result<Sequential> {
    Ok(Sequential::new()
        .push(Linear::new(784, 512)?)
        .push(Relu)
        .push(Linear::new(512, 256)?)
        .push(Relu)
        .push(Linear::new(256, 10)?))
}

fn loss(model: Sequential, batch: usize) -> Result<impl Fn() -> Result<Tensor>> {
    let (x, classes) = (Tensor::randn([batch, 784], ())?, classes(10, [batch])?);
    Ok(move || model.call(&x)?.cross_entropy(&classes))
}
