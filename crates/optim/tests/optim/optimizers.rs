//! Optimizers against steps computed by hand.

use cresset_optim::{Adam, AdamOptions, Implementation, Optimizer, Sgd, SgdOptions, Tensor};

const ALL: [Implementation; 3] = [Implementation::Fused, Implementation::Foreach, Implementation::Single];

fn parameter(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap().with_grad().unwrap()
}

fn give(parameter: &Tensor, grad: &[f64]) {
    parameter.set_grad(Tensor::from_slice(grad, [grad.len()]).unwrap()).unwrap();
}

fn f64s(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

fn close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() < 1e-12, "{got} is not {expected}");
    }
}

#[test]
fn sgd_keeps_momentum_and_decays() {
    let p = parameter(&[1.0]);
    let options = SgdOptions { lr: 0.1, momentum: 0.9, weight_decay: 0.5, ..SgdOptions::default() };
    let mut sgd = Sgd::new(vec![p.clone()], options).unwrap();
    give(&p, &[2.0]);
    sgd.step().unwrap();
    // velocity 2 + 0.5 * 1
    close(&f64s(&p), &[0.75]);
    sgd.step().unwrap();
    // velocity 0.9 * 2.5 + 2 + 0.5 * 0.75
    close(&f64s(&p), &[0.75 - 0.1 * 4.625]);
}

#[test]
fn nesterov_looks_ahead_and_maximize_climbs() {
    let p = parameter(&[0.0]);
    let options =
        SgdOptions { lr: 1.0, momentum: 0.5, nesterov: true, maximize: true, ..SgdOptions::default() };
    let mut sgd = Sgd::new(vec![p.clone()], options).unwrap();
    give(&p, &[1.0]);
    sgd.step().unwrap();
    close(&f64s(&p), &[1.5]);
}

#[test]
fn adam_s_first_step_is_the_learning_rate_whatever_the_gradient() {
    for implementation in ALL {
        let p = parameter(&[1.0, 1.0]);
        let options = AdamOptions { lr: 0.1, implementation: Some(implementation), ..Default::default() };
        let mut adam = Adam::new(vec![p.clone()], options).unwrap();
        give(&p, &[1e-3, -500.0]);
        adam.step().unwrap();
        for (got, expected) in f64s(&p).iter().zip([0.9, 1.1]) {
            assert!((got - expected).abs() < 2e-6, "{got} is not {expected}");
        }
    }
}

#[test]
fn all_forms_of_adam_agree_over_many_steps() {
    let run = |implementation: Implementation, decoupled_weight_decay: bool| {
        let (p, q) = (parameter(&[1.0, -2.0, 3.0]), parameter(&[0.5]));
        let implementation = Some(implementation);
        let options = AdamOptions {
            lr: 0.05,
            weight_decay: 0.1,
            decoupled_weight_decay,
            implementation,
            ..Default::default()
        };
        let mut adam = Adam::new(vec![p.clone(), q.clone()], options).unwrap();
        for step in 0..20 {
            let x = step as f64;
            give(&p, &[x.sin(), (2.0 * x).cos(), 0.1 * x]);
            // The second parameter joins late, so its bias correction lags behind.
            if step > 3 {
                give(&q, &[x.cos()]);
            }
            adam.step().unwrap();
        }
        [f64s(&p), f64s(&q)].concat()
    };
    for decoupled in [false, true] {
        close(&run(Implementation::Fused, decoupled), &run(Implementation::Single, decoupled));
        close(&run(Implementation::Foreach, decoupled), &run(Implementation::Single, decoupled));
    }
}

#[test]
fn parameters_without_gradients_stay_as_they_are() {
    let (p, q) = (parameter(&[1.0]), parameter(&[1.0]));
    let mut sgd =
        Sgd::new(vec![p.clone(), q.clone()], SgdOptions { lr: 1.0, ..SgdOptions::default() }).unwrap();
    give(&p, &[1.0]);
    sgd.step().unwrap();
    assert_eq!((f64s(&p), f64s(&q)), (vec![0.0], vec![1.0]));
    sgd.zero_grad();
    assert!(p.grad().is_none());
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let p = || vec![parameter(&[1.0])];
    let error = Sgd::new(p(), SgdOptions { lr: -1.0, ..SgdOptions::default() }).err().unwrap();
    assert_eq!(error.to_string(), "SGD: lr is -1, expected a finite number, at least 0");
    let error = Adam::new(p(), AdamOptions { betas: (0.9, 1.0), ..AdamOptions::default() }).err().unwrap();
    assert_eq!(error.to_string(), "Adam: betas.1 is 1, expected at least 0 and below 1");
    let nesterov = SgdOptions { nesterov: true, ..SgdOptions::default() };
    assert!(Sgd::new(p(), nesterov).is_err());
    let error = Sgd::new(vec![], SgdOptions::default()).err().unwrap();
    assert_eq!(error.to_string(), "SGD: there are no parameters, expected at least one");
}

#[test]
fn a_step_forbids_stale_gradients() {
    let w = parameter(&[2.0]);
    let loss = w.mul(&w).unwrap().sum().unwrap();
    give(&w, &[1.0]);
    Sgd::new(vec![w.clone()], SgdOptions { lr: 0.5, ..SgdOptions::default() }).unwrap().step().unwrap();
    let error = loss.backward().unwrap_err();
    assert!(error.to_string().contains("changed in place by aten::_fused_sgd_"), "{error}");
}
