//! Views: they show the elements that they say, and what is written through them arrives there.

use super::step::{looks, steps};
use super::{config, f64s, look, shapes, strided};
use cresset_tensor::{DType, Tensor};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn what_is_written_through_a_view_changes_those_elements_and_no_others(
        shape in shapes(1..5),
        look in look(),
        added in 1..100i64,
    ) {
        let count: usize = shape.iter().product();
        let base = Tensor::arange(count as i64).unwrap().view(shape).unwrap();
        let mut view = base.clone();
        for step in &look {
            view = step.run(&view).unwrap();
        }
        prop_assert!(view.storage().same_as(base.storage()), "{look:?} copied");
        let before = base.to_vec::<i64>().unwrap();
        let mut expected = before.clone();
        let seen = view.to_vec::<i64>().unwrap();
        // Elements are numbered by their places, so a view tells which it shows.
        seen.iter().for_each(|&place| expected[place as usize] = place + added);
        match view.add_(added) {
            Ok(()) => prop_assert_eq!(base.to_vec::<i64>().unwrap(), expected),
            Err(error) => {
                let mut places = seen;
                places.sort();
                places.dedup();
                prop_assert!(places.len() < view.numel(), "{error}");
                prop_assert_eq!(base.to_vec::<i64>().unwrap(), before);
            }
        }
    }

    #[test]
    fn a_view_and_its_copy_compute_the_same(
        shape in shapes(0..5),
        look in proptest::collection::vec(looks(), 1..5),
        step in steps(),
        dtype in proptest::sample::select(&DType::ALL[..]),
    ) {
        let view = strided(&shape, &look, dtype).unwrap();
        let copy = Tensor::from_slice(&f64s(&view), view.shape()).unwrap().to_dtype(dtype).unwrap();
        prop_assume!(step.suits(dtype, view.shape()));
        let (of_view, of_copy) = (step.run(&view).unwrap(), step.run(&copy).unwrap());
        prop_assert_eq!(of_view.shape(), of_copy.shape());
        for (of_view, of_copy) in f64s(&of_view).iter().zip(f64s(&of_copy)) {
            // Sums may be taken in another order.
            let close = (of_view - of_copy).abs() <= 1e-2 * (1.0 + of_copy.abs());
            prop_assert!(close && dtype.is_float() || *of_view == of_copy || of_view.is_nan() && of_copy.is_nan());
        }
    }
}
