//! Random numbers that the device makes itself: each call follows from a seed and a counter.

use crate::aclnn;
use cresset_tensor::backend::Random;
use cresset_tensor::{RandomState, Result, Scalar, Tensor};

/// Fills `out` with numbers that follow from `state`.
pub(crate) fn fill(out: &Tensor, numbers: Random, state: RandomState) -> Result<()> {
    let (seed, offset) = (state.seed as i64, state.offset as i64);
    match numbers {
        Random::Uniform { low, high } => aclnn::inplace_uniform(out, low, high, state.seed, state.offset),
        Random::Normal { mean, std } => aclnn::inplace_normal(out, mean as f32, std as f32, seed, offset),
        Random::Integers { low, high } => aclnn::inplace_random(out, low, high, seed, offset),
        Random::Kept { dropped } => aclnn::inplace_bernoulli(out, Scalar::Float(1.0 - dropped), seed, offset),
        Random::Permutation => aclnn::randperm(out.numel() as i64, seed, offset, out),
    }
}
