//! Random numbers that devices make: a seed repeats them, and no call repeats another.

use crate::support::{alone, npu};
use cresset_npu::{manual_seed, rng_state, set_rng_state};
use cresset_tensor::{DType, Tensor};

fn list(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

#[test]
fn a_seed_or_a_state_gives_the_same_numbers_again() {
    alone("random::a_seed_or_a_state_gives_the_same_numbers_again", &[], || {
        let npu = npu();
        manual_seed(7, npu).unwrap();
        let first = list(&Tensor::rand([100], npu).unwrap());
        let state = rng_state(npu).unwrap();
        let second = list(&Tensor::randn([100], npu).unwrap());
        manual_seed(7, npu).unwrap();
        assert_eq!(list(&Tensor::rand([100], npu).unwrap()), first);
        set_rng_state(state, npu).unwrap();
        assert_eq!(list(&Tensor::randn([100], npu).unwrap()), second);
    });
}

#[test]
fn no_call_gives_numbers_of_the_one_before() {
    alone("random::no_call_gives_numbers_of_the_one_before", &[], || {
        let npu = npu();
        let [first, second] = [0, 1].map(|_| list(&Tensor::rand([1000], npu).unwrap()));
        let again = second.iter().filter(|&number| first.contains(number)).count();
        assert!(again < 5, "{again} of 1000 numbers came again");
    });
}

#[test]
fn numbers_are_distributed_as_they_should_be() {
    alone("random::numbers_are_distributed_as_they_should_be", &[], || {
        let npu = npu();
        manual_seed(0, npu).unwrap();
        let mean = |x: &Tensor| x.to_dtype(DType::F64).unwrap().mean().unwrap().item().unwrap().as_f64();
        let normal = Tensor::randn([40_000], npu).unwrap();
        assert!(mean(&normal).abs() < 0.03 && (mean(&normal.square().unwrap()) - 1.0).abs() < 0.04);
        assert!((mean(&Tensor::rand([40_000], npu).unwrap()) - 0.5).abs() < 0.01);
        assert!((mean(&Tensor::kept(0.25, [40_000], npu).unwrap()) - 0.75).abs() < 0.01);
        let drawn = Tensor::zeros([200, 200], npu).unwrap().transpose(0, 1).unwrap();
        drawn.get((.., ..100)).unwrap().bernoulli_(0.5).unwrap();
        assert!((mean(&drawn) - 0.25).abs() < 0.02, "a view is filled, and nothing beside it");
    });
}
