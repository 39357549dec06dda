//! Gradients of random compositions against finite differences, to second order.

use super::step::{Step, smooth};
use super::{config, look, shapes, strided};
use cresset_tensor::autograd::{GradCheck, gradcheck, gradgradcheck};
use cresset_tensor::{DType, Result, Tensor};
use proptest::prelude::*;

/// Runs all steps that fit, then weighs the elements differently, so that no slope is lost in a sum.
fn run(program: &[Step], x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    for step in program {
        if y.numel() < 64 && step.suits(DType::F64, y.shape()) {
            y = step.run(&y)?;
        }
    }
    let weights = Tensor::linspace(0.5, 1.5, y.numel(), DType::F64)?.view(y.shape())?;
    y.mul(&weights)?.sum()
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn gradients_are_slopes(
        shape in shapes(1..4).prop_filter("few elements", |shape| shape.iter().product::<usize>() <= 12),
        look in look(),
        program in proptest::collection::vec(smooth(), 1..6),
    ) {
        let x = strided(&shape, &look, DType::F64).unwrap().mul(0.4).unwrap();
        prop_assume!((1..=16).contains(&x.numel()));
        let x = x.with_grad().unwrap();
        let f = |x: &[Tensor]| run(&program, &x[0]);
        // The mean of nothing has no slope.
        prop_assume!(run(&program, &x).unwrap().item().unwrap().as_f64().is_finite());
        let told = |error: cresset_tensor::Error| TestCaseError::fail(error.to_string());
        gradcheck(f, &[&x], GradCheck::default()).map_err(told)?;
        gradgradcheck(f, &[&x], GradCheck::default()).map_err(told)?;
    }
}
