//! Work that memory limits: a few operations on each of many elements.
//!
//! Bytes are the least that must move: each input once, and the output once.

use super::Outcome;
use super::harness::{Harness, Work};
use cresset::Result;
use cresset::prelude::*;
use cresset::tensor::ops::{Add, Approximate};
use cresset::tensor::{CallOut as _, Scalar};

const LARGE: usize = 16 << 20;
/// What fits into a core's cache.
const SMALL: usize = 256 << 10;

pub(super) fn run(harness: &mut Harness) -> Outcome {
    two(harness, "w3/add16M", LARGE)?;
    harness.bench("w3/add16M_out", streams(3, LARGE), || {
        let (x, y, out) = (random([LARGE])?, random([LARGE])?, Tensor::zeros([LARGE], ())?);
        Ok(move || Add { alpha: Scalar::Int(1) }.call_out((&x, (&y).into()), &out))
    })?;
    one(harness, "w3/relu16M", LARGE, |x| x.relu())?;
    one(harness, "w3/exp16M", LARGE, |x| x.exp())?;
    one(harness, "w3/gelu16M", LARGE, |x| x.gelu(Approximate::Tanh))?;
    one(harness, "w3/gelu_erf16M", LARGE, |x| x.gelu(Approximate::None))?;
    harness.bench("w3/sum16M", streams(1, LARGE), || {
        let x = random([LARGE])?;
        Ok(move || x.sum())
    })?;
    rows(harness)?;
    planes(harness)?;
    two(harness, "w3/add256K", SMALL)?;
    one(harness, "w3/exp256K", SMALL, |x| x.exp())
}

/// Work on each row of a matrix.
fn rows(harness: &mut Harness) -> Outcome {
    const SHAPE: [usize; 2] = [4096, 1024];
    let work = streams(2, SHAPE[0] * SHAPE[1]);
    harness.bench("w3/softmax4096x1024", work, || {
        let x = random(SHAPE)?;
        Ok(move || x.softmax(-1))
    })?;
    harness.bench("w3/layernorm4096x1024", work, || {
        let columns = [SHAPE[1]];
        let (x, weight, bias) = (random(SHAPE)?, Tensor::ones(columns, ())?, Tensor::zeros(columns, ())?);
        Ok(move || x.layer_norm(&columns, Some(&weight), Some(&bias), 1e-5))
    })
}

/// Sums of matrices that lie in memory in different ways.
fn planes(harness: &mut Harness) -> Outcome {
    const SIDE: usize = 4096;
    harness.bench("w3/add_transposed4096", streams(3, LARGE), || {
        let (x, y) = (random([SIDE, SIDE])?, random([SIDE, SIDE])?);
        Ok(move || x.add(&y.t()?))
    })?;
    harness.bench("w3/add_bcast4096", streams(2, LARGE), || {
        let (x, row) = (random([SIDE, SIDE])?, random([SIDE])?);
        Ok(move || x.add(&row))
    })
}

fn one(harness: &mut Harness, name: &str, count: usize, call: fn(&Tensor) -> Result<Tensor>) -> Outcome {
    harness.bench(name, streams(2, count), || {
        let x = random([count])?;
        Ok(move || call(&x))
    })
}

fn two(harness: &mut Harness, name: &str, count: usize) -> Outcome {
    harness.bench(name, streams(3, count), || {
        let (x, y) = (random([count])?, random([count])?);
        Ok(move || x.add(&y))
    })
}

fn random(shape: impl AsRef<[usize]>) -> Result<Tensor> {
    Tensor::uniform(-1.0, 1.0, shape, ())
}

/// The bytes of so many tensors of `f32`.
fn streams(tensors: usize, elements: usize) -> Work {
    Work::Bytes((tensors * elements * size_of::<f32>()) as f64)
}
