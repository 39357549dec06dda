//! Steps against their formulas.

use super::pieces::PIECE;
use super::*;
use crate::bf16;
use crate::testing::{Array, assert_close};

const SGD: SgdStep = SgdStep {
    lr: 0.5,
    momentum: 0.0,
    dampening: 0.0,
    weight_decay: 0.0,
    nesterov: false,
    maximize: false,
    first: true,
};

const ADAM: AdamStep = AdamStep {
    lr: 0.1,
    beta1: 0.9,
    beta2: 0.99,
    eps: 1e-8,
    weight_decay: 0.0,
    decoupled: false,
    amsgrad: false,
    maximize: false,
    step: 1,
};

#[test]
fn tensors_of_all_sizes_and_types_take_one_step_together() {
    let sizes = [1, 7, PIECE - 1, PIECE, 3 * PIECE + 5, 0];
    let arrays = |seed| sizes.map(|size| Array::<f32>::random(&[size], seed));
    let (grads, before, old) = (arrays(1), arrays(2), arrays(3));
    let run = |threads: usize| {
        let (mut params, mut means, mut squares) = (before.clone(), old.clone(), arrays(4));
        squares.iter_mut().flat_map(|square| &mut square.elements).for_each(|x| *x = x.abs());
        let doubles = Array::<f64>::random(&[5], 5);
        let mut other = [doubles.clone(), doubles.clone(), Array::zeros(&[5])];
        let [param, exp_avg, exp_avg_sq] = other.each_mut().map(|array| array.view_mut());
        let mut all = vec![Tensors::new(param, doubles.view(), [exp_avg, exp_avg_sq])];
        let state = params.iter_mut().zip(&grads).zip(&mut means).zip(&mut squares);
        all.extend(state.map(|(((param, grad), mean), square)| {
            Tensors::new(param.view_mut(), grad.view(), [mean.view_mut(), square.view_mut()])
        }));
        let rules = vec![AdamStep { step: 5, ..ADAM }; all.len()];
        crate::threads::with_threads(threads, || step_all(&rules, &mut all));
        drop(all);
        (
            params.map(|array| array.elements),
            means.map(|array| array.elements),
            other.map(|array| array.elements),
        )
    };
    let (params, means, other) = run(1);
    assert_eq!((&params, &means), (&run(2).0, &run(3).1));
    assert_ne!(other[0], Array::<f64>::random(&[5], 5).elements);
    for (i, (param, mean)) in params.iter().zip(&means).enumerate() {
        for (j, &mean) in mean.iter().enumerate() {
            let (g, m) = (grads[i].elements[j], old[i].elements[j]);
            assert!((mean - (m + 0.1 * (g - m))).abs() < 1e-5);
            assert!(param[j].is_nan() || param[j] != before[i].elements[j] || mean == 0.0);
        }
    }
}

fn sgd_twice(rule: SgdStep) -> f64 {
    let (mut param, grad) = (Array::new(&[1], &[1.0f64]), Array::new(&[1], &[2.0f64]));
    let mut buffer = Array::<f64>::zeros(&[1]);
    for rule in [rule, SgdStep { first: false, ..rule }] {
        let buffer = (rule.momentum != 0.0).then(|| buffer.view_mut());
        step(&rule, Tensors::new(param.view_mut(), grad.view(), buffer));
    }
    param.elements[0]
}

#[test]
fn sgd_follows_its_formula() {
    assert_eq!(sgd_twice(SGD), -1.0);
    assert_eq!(sgd_twice(SgdStep { maximize: true, ..SGD }), 3.0);
    // 1 - 0.5 (2 + 0.5) = -0.25, then -0.25 - 0.5 (2 - 0.125)
    assert_eq!(sgd_twice(SgdStep { weight_decay: 0.5, ..SGD }), -1.1875);
    // 1 - 0.5 * 2 = 0, then 0 - 0.5 (0.5 * 2 + 2)
    assert_eq!(sgd_twice(SgdStep { momentum: 0.5, ..SGD }), -1.5);
    // 0, then 0 - 0.5 (0.5 * 2 + 0.75 * 2)
    assert_eq!(sgd_twice(SgdStep { momentum: 0.5, dampening: 0.25, ..SGD }), -1.25);
    // 1 - 0.5 (2 + 0.5 * 2) = -0.5, then -0.5 - 0.5 (2 + 0.5 * 3)
    assert_eq!(sgd_twice(SgdStep { momentum: 0.5, nesterov: true, ..SGD }), -2.25);
}

/// Adam on one number, straight from the paper, with torch's options.
fn reference(rule: AdamStep, grads: &[f64]) -> f64 {
    let (mut param, mut m, mut v, mut max) = (1.0, 0.0, 0.0, 0.0f64);
    for (t, grad) in (1..).zip(grads) {
        let mut grad = if rule.maximize { -grad } else { *grad };
        if rule.decoupled {
            param -= rule.lr * rule.weight_decay * param;
        } else {
            grad += rule.weight_decay * param;
        }
        m = rule.beta1 * m + (1.0 - rule.beta1) * grad;
        v = rule.beta2 * v + (1.0 - rule.beta2) * grad * grad;
        max = max.max(v);
        let v = if rule.amsgrad { max } else { v } / (1.0 - rule.beta2.powi(t));
        param -= rule.lr * (m / (1.0 - rule.beta1.powi(t))) / (v.sqrt() + rule.eps);
    }
    param
}

#[test]
fn adam_follows_its_formula() {
    let grads = [2.0, -1.0, 0.1, 0.0];
    for rule in [
        ADAM,
        AdamStep { weight_decay: 0.1, ..ADAM },
        AdamStep { weight_decay: 0.1, decoupled: true, ..ADAM },
        AdamStep { amsgrad: true, ..ADAM },
        AdamStep { maximize: true, beta1: 0.3, ..ADAM },
    ] {
        let mut state = [1.0f64, 0.0, 0.0, 0.0].map(|x| Array::new(&[1], &[x]));
        for (t, &grad) in (1..).zip(&grads) {
            let [param, mean, square, max] = state.each_mut().map(|array| array.view_mut());
            let grad = Array::new(&[1], &[grad]);
            let states = [mean, square].into_iter().chain(rule.amsgrad.then_some(max));
            step(&AdamStep { step: t, ..rule }, Tensors::new(param, grad.view(), states));
        }
        assert_close(&state[0].elements, &[reference(rule, &grads)], 1e-12);
    }
}

#[test]
fn any_precision_and_arrangement_takes_the_same_step() {
    let numbers: Vec<f64> = (0..6).map(|i| f64::from(i) - 2.5).collect();
    let expected: Vec<f64> = numbers.iter().map(|grad| 1.0 - 0.1 * grad.signum()).collect();
    let grad = Array::new(&[2, 3], &numbers.iter().map(|&x| x as f32).collect::<Vec<_>>());
    let turned = || Array::<f32>::zeros(&[3, 2]).with(|layout| layout.transpose(0, 1));
    let (mut param, mut mean, mut square) = (turned(), turned(), turned());
    param.elements.fill(1.0);
    step(&ADAM, Tensors::new(param.view_mut(), grad.view(), [mean.view_mut(), square.view_mut()]));
    assert_close(&param.wide(), &expected, 1e-6);
    let grad = Array::new(&[6], &numbers.iter().map(|&x| bf16::from_f64(x)).collect::<Vec<_>>());
    let mut state = [1.0, 0.0, 0.0].map(|x| Array::new(&[6], &[bf16::from_f32(x); 6]));
    let [param, mean, square] = state.each_mut().map(|array| array.view_mut());
    step(&ADAM, Tensors::new(param, grad.view(), [mean, square]));
    assert_close(&state[0].wide(), &expected, 5e-3);
}

#[test]
#[should_panic(expected = "the rule keeps 1 tensors")]
fn momentum_needs_its_buffer() {
    let grad = Array::<f32>::zeros(&[1]);
    step(&SgdStep { momentum: 0.9, ..SGD }, Tensors::new(grad.clone().view_mut(), grad.view(), []));
}
