//! Random programs: what must hold whatever the shapes, element types, strides and operators.
//!
//! `PROPTEST_CASES` and `PROPTEST_RNG_SEED` look further than the default, which is the same each time.

mod gradients;
mod programs;
mod reference;
mod sizes;
mod step;
mod views;

use cresset_tensor::{DType, Result, Tensor};
use proptest::prelude::*;
use proptest::test_runner::Config;
use step::{Step, looks};

fn config(cases: u32) -> Config {
    let asked = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases } else { cases };
    Config { cases, failure_persistence: None, max_global_rejects: cases * 4, ..asked }
}

/// Shapes of few elements, with dimensions of size 0 and 1 among them.
fn shapes(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(sizes, 0..5)
}

/// A tensor that looks at new memory in some order, with gaps, and each element's value: small
/// integers and halves, which all element types but `bool` and bytes hold exactly.
fn strided(shape: &[usize], look: &[Step], dtype: DType) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let halves: Vec<f64> = (0..count).map(|i| ((i * 7 + 3) % 13) as f64 / 2.0 - 3.0).collect();
    let mut x = Tensor::from_slice(&halves, shape)?.to_dtype(dtype)?;
    for step in look.iter().filter(|step| step.suits(dtype, &[])) {
        x = step.run(&x)?;
    }
    Ok(x)
}

/// A few steps that only look at elements in another way.
fn look() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(looks(), 0..4)
}

fn f64s(x: &Tensor) -> Vec<f64> {
    x.to_dtype(DType::F64).unwrap().to_vec().unwrap()
}
