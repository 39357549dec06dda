//! Chains of operators on any shape, element type and stride, beside the slow and obvious way.

use super::step::{Step, steps};
use super::{config, f64s, look, reference, shapes, strided};
use cresset_tensor::{DType, Tensor};
use ndarray::ArrayD;
use proptest::prelude::*;

fn array(x: &Tensor) -> ArrayD<f64> {
    ArrayD::from_shape_vec(x.shape(), f64s(x)).unwrap()
}

/// Whether the step can be taken, and compared by the given element type.
fn fits(step: Step, x: &Tensor) -> bool {
    let half = matches!(x.dtype(), DType::F16 | DType::BF16);
    // What repeats and doubles must not grow without end.
    x.numel() < 4096 && step.suits(x.dtype(), x.shape()) && (!half || step.is_exact())
}

proptest! {
    #![proptest_config(config(2000))]

    #[test]
    fn a_program_computes_what_its_steps_say(
        shape in shapes(0..5),
        look in look(),
        dtype in proptest::sample::select(&DType::ALL[..]),
        program in proptest::collection::vec(steps(), 1..8),
    ) {
        let mut x = strided(&shape, &look, dtype).unwrap();
        let mut expected = array(&x);
        // Rounding is relative to the largest number on the way, for it may have been taken away again.
        let mut largest: f64 = 1.0;
        for &step in &program {
            if !fits(step, &x) {
                continue;
            }
            x = step.run(&x).unwrap();
            expected = reference::run(step, &expected);
            prop_assert_eq!(x.shape(), expected.shape(), "after {:?}", step);
            largest = expected.iter().fold(largest, |largest, x| largest.max(x.abs()));
            let tolerance = match x.dtype() {
                DType::F64 => 1e-12,
                dtype if dtype.is_float() => 2e-5,
                _ => 0.0,
            };
            for (got, expected) in f64s(&x).iter().zip(&expected) {
                let same = got == expected || got.is_nan() && expected.is_nan();
                prop_assert!(
                    same || (got - expected).abs() <= tolerance * largest,
                    "{got}, expected {expected}, after {step:?}"
                );
            }
        }
    }

    #[test]
    fn a_shape_without_data_is_inferred_as_with_it(
        shape in shapes(0..4),
        look in look(),
        dtype in proptest::sample::select(&DType::ALL[..]),
        program in proptest::collection::vec(steps(), 1..8),
    ) {
        let mut x = strided(&shape, &look, dtype).unwrap();
        let mut meta = x.to(cresset_tensor::Device::META).unwrap();
        for step in program {
            if !fits(step, &x) {
                continue;
            }
            (x, meta) = (step.run(&x).unwrap(), step.run(&meta).unwrap());
            prop_assert_eq!((x.shape(), x.dtype()), (meta.shape(), meta.dtype()), "after {:?}", step);
        }
    }
}
