//! An optimizer's step alone, over 100 parameters of 100 000 elements.

use super::Outcome;
use super::harness::{Harness, Work};
use super::training::adamw;
use cresset::prelude::*;

const PARAMETERS: usize = 100;
const ELEMENTS: usize = 100_000;

pub(super) fn run(harness: &mut Harness) -> Outcome {
    // Parameter, gradient and both moments are read; all but the gradient are written.
    let work = Work::Bytes((7 * PARAMETERS * ELEMENTS * size_of::<f32>()) as f64);
    for (name, fused) in [("w8/adamw_100x100k", false), ("w8/adamw_100x100k_fused", true)] {
        harness.bench(name, work, || {
            let mut parameters = Vec::new();
            for _ in 0..PARAMETERS {
                let parameter = Tensor::randn([ELEMENTS], ())?.with_grad()?;
                parameter.set_grad(Tensor::randn([ELEMENTS], ())?)?;
                parameters.push(parameter);
            }
            let mut optimizer = adamw(parameters, fused)?;
            Ok(move || optimizer.step())
        })?;
    }
    Ok(())
}
