//! Results over operands that are given away. Whether somebody watches counts, so these tests run one
//! after the other.

use crate::alone;
use cresset_dispatch::observe::{Call, Observer, Slot};
use cresset_tensor::autograd::{inference_mode, no_grad};
use cresset_tensor::{DType, Result, Tensor};

fn numbers(start: f64) -> Tensor {
    Tensor::arange(start..start + 1024.0).unwrap().reshape([32, 32]).unwrap().copy().unwrap()
}

fn ones(dtype: DType) -> Tensor {
    Tensor::ones([32, 32], dtype).unwrap()
}

/// Whether the result of `run` lies where its operand did.
fn reuses(x: Tensor, run: impl FnOnce(Tensor) -> Result<Tensor>) -> bool {
    let before = x.storage().address();
    run(x).unwrap().storage().address() == before
}

#[test]
fn an_operand_that_nobody_else_has_becomes_the_result() {
    let _alone = alone();
    let (y, row) = (numbers(3.0), Tensor::full([32], 0.5, DType::F32).unwrap());
    assert!(reuses(numbers(0.0), |x| x + &y));
    assert!(reuses(numbers(0.0), |x| ((x - &row) * &y)? / 3.0));
    assert!(reuses(numbers(0.0), |x| (x / y.clone())? - 2));
    assert!(reuses(numbers(0.0), |x| Ok(x) + y.clone()));
    assert!(reuses(numbers(0.0), |x| x * y.neg()));
}

#[test]
fn the_result_is_what_it_would_be_elsewhere() {
    let _alone = alone();
    let (x, y) = (numbers(-100.0), numbers(0.25));
    let row = Tensor::arange(0.0..32.0).unwrap();
    let apart = x.mul(&y).unwrap().add(&row).unwrap().sub(&y).unwrap().div(0.3).unwrap();
    let over = ((numbers(-100.0) * &y + &row - &y).unwrap() / 0.3).unwrap();
    assert_eq!(over.to_vec::<f32>().unwrap(), apart.to_vec::<f32>().unwrap());
    let version = numbers(-100.0).version();
    assert_eq!((over.version(), over.is_leaf(), over.requires_grad()), (version, true, false));
}

#[test]
fn what_others_see_stays_as_it_was() {
    let _alone = alone();
    let y = ones(DType::F32);
    let others: [fn(&Tensor) -> Result<Tensor>; 4] =
        [|x| Ok(x.clone()), |x| x.select(0, 1), |x| x.t(), Tensor::detach];
    for other in others {
        let x = numbers(0.0);
        let seen = other(&x).unwrap();
        let before = seen.to_vec::<f32>().unwrap();
        assert!(!reuses(x, |x| x + &y));
        assert_eq!(seen.to_vec::<f32>().unwrap(), before);
    }
    let x = numbers(0.0);
    let view = x.t().unwrap();
    drop(x);
    assert!(!reuses(view, |x| x + &y));
}

#[test]
fn what_gradients_need_is_kept() {
    let _alone = alone();
    let leaf = ones(DType::F32).with_grad().unwrap();
    assert!(!reuses(leaf.mul(2.0).unwrap(), |x| x + 1.0));
    assert!(!reuses(numbers(0.0), |x| x * &leaf));
    let product = (numbers(0.0) * &leaf).unwrap();
    product.sum().unwrap().backward().unwrap();
    assert_eq!(leaf.grad().unwrap().to_vec::<f32>().unwrap(), numbers(0.0).to_vec::<f32>().unwrap());
    let _unrecorded = no_grad();
    assert!(reuses(numbers(0.0), |x| x * &leaf));
    assert!(!reuses(leaf.detach().unwrap(), |x| x * 2.0));
    let with_gradient = numbers(0.0);
    with_gradient.set_grad(numbers(1.0)).unwrap();
    assert!((with_gradient + 1.0).unwrap().grad().is_none());
}

#[test]
fn results_of_another_shape_or_type_get_memory_of_their_own() {
    let _alone = alone();
    let (y, doubles) = (numbers(0.0), ones(DType::F64));
    assert!(!reuses(ones(DType::I64), |x| x / 2));
    assert!(!reuses(ones(DType::F32), |x| x + &doubles));
    assert!(!reuses(Tensor::ones([1, 32, 32], DType::F32).unwrap(), |x| x + &Tensor::ones(
        [2, 1, 1],
        DType::F32
    )?));
    assert_eq!((Tensor::ones([32], DType::F32).unwrap() + &y).unwrap().shape(), [32, 32]);
    assert!((numbers(0.0) + &Tensor::ones([33], DType::F32).unwrap()).is_err());
    let outside = numbers(0.0);
    let _inference = inference_mode();
    assert!(!(outside * 2.0).unwrap().requires_grad());
    assert!((numbers(0.0) * 2.0).unwrap().is_inference());
}

/// Somebody who looks away.
struct Watcher;

impl Observer for Watcher {
    fn enter(&self, _id: u64, _call: &dyn Call) -> u64 {
        0
    }

    fn exit(&self, _token: u64, _failed: bool) {}
}

#[test]
fn who_watches_sees_the_ordinary_call() {
    let _alone = alone();
    let slot = Slot::claim(&Watcher).expect("a slot is free");
    slot.set_active(true);
    let reused = reuses(numbers(0.0), |x| x + 1.0);
    slot.set_active(false);
    assert!(!reused);
}
