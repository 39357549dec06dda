//! Products of matrices.

use super::Outcome;
use super::harness::{Harness, Work};
use cresset::prelude::*;

pub(super) fn run(harness: &mut Harness) -> Outcome {
    for size in [64, 128, 256, 512, 1024, 2048] {
        product(harness, &size.to_string(), [size; 3])?;
    }
    product(harness, "64x784x512", [64, 784, 512])
}

/// Rows by depth times depth by columns.
fn product(harness: &mut Harness, size: &str, [rows, depth, columns]: [usize; 3]) -> Outcome {
    let work = Work::Flops(2.0 * (rows * depth * columns) as f64);
    harness.bench(&format!("w1/gemm/{size}"), work, || {
        let a = Tensor::uniform(-1.0, 1.0, [rows, depth], ())?;
        let b = Tensor::uniform(-1.0, 1.0, [depth, columns], ())?;
        Ok(move || a.matmul(&b))
    })
}
