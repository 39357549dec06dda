//! Steps: hooks, closures, groups, and what is refused.

use crate::common::{ALL, all, bits, give, parameters};
use cresset_optim::*;
use std::sync::{Arc, Mutex};

#[test]
fn hooks_run_before_and_after_a_step_and_may_change_the_optimizer() {
    let p = parameters();
    let mut sgd = Sgd::new(p.clone(), SgdOptions::default()).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (before, after) = (seen.clone(), seen.clone());
    let first = sgd.before_step(Box::new(move |optimizer| {
        before.lock().unwrap().push(("before", optimizer.lr()));
        optimizer.set_lr(0.5);
        Ok(())
    }));
    sgd.after_step(Box::new(move |optimizer| {
        after.lock().unwrap().push(("after", optimizer.lr()));
        Ok(())
    }));
    sgd.step().unwrap();
    assert_eq!(*seen.lock().unwrap(), [("before", 1e-3), ("after", 0.5)]);
    assert!(sgd.remove_hook(first));
    assert!(!sgd.remove_hook(first));
    sgd.step().unwrap();
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[test]
fn a_closure_makes_the_gradients_and_its_loss_is_given() {
    let x = Tensor::new([3.0f64]).unwrap().with_grad().unwrap();
    let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { lr: 0.5, ..Default::default() }).unwrap();
    let at = x.clone();
    let mut closure = move || {
        at.clear_grad();
        let loss = at.mul(&at)?.sum()?;
        loss.backward()?;
        Ok(loss)
    };
    let loss = cresset_tensor::autograd::without_grad(|| sgd.step_with(&mut closure)).unwrap();
    assert_eq!((loss.item().unwrap().as_f64(), x.to_vec::<f64>().unwrap()), (9.0, vec![0.0]));
    let mut lbfgs = Lbfgs::new(vec![x], LbfgsOptions::default()).unwrap();
    assert!(lbfgs.step().unwrap_err().to_string().contains("call step_with()"));
}

#[test]
fn groups_have_options_of_their_own() {
    let p = parameters();
    let group = |parameter: &Tensor, lr: f64| Group {
        parameters: vec![parameter.clone()],
        options: SgdOptions { lr, ..Default::default() },
    };
    let mut sgd = Sgd::with_groups(vec![group(&p[0], 0.0), group(&p[1], 1.0)]).unwrap();
    let before = bits(&p[..1]);
    give(&p, 0);
    sgd.step().unwrap();
    assert_eq!(bits(&p[..1]), before);
    assert_ne!(bits(&p[1..]), before);
    assert_eq!(sgd.lrs(), [0.0, 1.0]);
    sgd.set_option(0, "momentum", Value::Float(0.9)).unwrap();
    assert_eq!(sgd.option(0, "momentum"), Some(Value::Float(0.9)));
    assert_eq!(sgd.options(1).unwrap().momentum, 0.0);
    let error = sgd.add_group(group(&p[1], 0.1)).unwrap_err();
    assert_eq!(error.to_string(), "SGD: a parameter is in two groups, expected in one");
    assert!(sgd.set_option(2, "lr", Value::Float(0.1)).unwrap_err().to_string().contains("no group 2"));
    let error = sgd.set_option(0, "speed", Value::Int(3)).unwrap_err().to_string();
    assert!(error.starts_with("SGD: has no option \"speed\", only lr, momentum"), "{error}");
}

#[test]
fn gradients_are_forgotten_or_filled_with_zeros() {
    let p = parameters();
    let sgd = Sgd::new(p.clone(), SgdOptions::default()).unwrap();
    give(&p[..1], 0);
    sgd.zero_grad_in_place().unwrap();
    assert_eq!(p[0].grad().unwrap().to_vec::<f64>().unwrap(), [0.0; 6]);
    assert!(p[1].grad().is_none());
    sgd.zero_grad();
    assert!(p[0].grad().is_none());
}

#[test]
fn what_is_no_parameter_is_refused() {
    let new =
        |parameters: Vec<Tensor>| Sgd::new(parameters, SgdOptions::default()).err().unwrap().to_string();
    let x = Tensor::ones([2], ()).unwrap().with_grad().unwrap();
    assert_eq!(new(vec![Tensor::arange(3).unwrap()]), "SGD: a parameter is i64, expected floats");
    assert_eq!(new(vec![x.mul(2.0).unwrap()]), "SGD: a parameter is the result of a call, expected a leaf");
    assert_eq!(new(vec![x.clone(), x.clone()]), "SGD: a parameter is given twice, expected once");
    let nowhere = Tensor::empty([2], cresset_tensor::Device::META).unwrap();
    assert_eq!(
        new(vec![x, nowhere]),
        "SGD: parameters of a group are on cpu and meta, of shapes [2] and [2], expected one device"
    );
    let vector = Tensor::ones([2], ()).unwrap();
    let error = Muon::new(vec![vector], MuonOptions::default()).err().unwrap().to_string();
    assert_eq!(error, "Muon: a parameter has shape [2], expected a matrix");
}

#[test]
fn numbers_out_of_range_are_named_with_their_range() {
    let refused = |result: Result<()>| result.unwrap_err().to_string();
    for (got, expected) in [
        (
            refused(AdadeltaOptions { rho: 1.1, ..Default::default() }.check()),
            "Adadelta: rho is 1.1, expected from 0 to 1",
        ),
        (
            refused(AdafactorOptions { d: 0.0, ..Default::default() }.check()),
            "Adafactor: d is 0, expected at least 1",
        ),
        (
            refused(RpropOptions { etas: (1.0, 0.5), ..Default::default() }.check()),
            "Rprop: etas.0 is 1, expected above 0 and below 1",
        ),
        (
            refused(NadamOptions { momentum_decay: -0.2, ..Default::default() }.check()),
            "NAdam: momentum_decay is -0.2, expected a finite number, at least 0",
        ),
        (
            refused(AdamWOptions { lr: f64::NAN, ..Default::default() }.check()),
            "AdamW: lr is NaN, expected a finite number, at least 0",
        ),
    ] {
        assert_eq!(got, expected);
    }
}

#[test]
fn gradients_that_are_not_numbers_pass_through() {
    for (name, make) in all() {
        // Torch's sign of what is not a number is 0, so that Rprop stays where it is; Muon mixes all elements.
        let p = parameters();
        let mut optimizer = make(p.clone());
        let mut grads = [1.0; 6];
        grads[2] = f64::NAN;
        p[0].set_grad(Tensor::from_slice(&grads, [2, 3]).unwrap()).unwrap();
        let before = p[0].to_vec::<f64>().unwrap();
        optimizer.step().unwrap();
        let after = p[0].to_vec::<f64>().unwrap();
        if name.starts_with("Rprop") {
            assert_eq!(after[2], before[2], "{name}");
        } else {
            assert!(after[2].is_nan(), "{name}");
        }
        if !name.starts_with("Muon") && !name.starts_with("Adafactor") {
            assert!(after[0].is_finite() && after[0] != before[0], "{name}");
        }
    }
}

#[test]
fn half_precision_and_views_take_the_same_steps() {
    use cresset_tensor::DType;
    for implementation in ALL {
        let options = AdamOptions { lr: 0.1, implementation: Some(implementation), ..Default::default() };
        let exact = parameters();
        let turned =
            exact[0].detach().unwrap().t().unwrap().copy().unwrap().t().unwrap().with_grad().unwrap();
        let half = exact[0].detach().unwrap().to_dtype(DType::BF16).unwrap().with_grad().unwrap();
        let mut optimizers = [&exact[0], &turned, &half]
            .map(|parameter| Adam::new(vec![parameter.clone()], options.clone()).unwrap());
        for step in 0..3 {
            give(&exact[..1], step);
            turned.set_grad(exact[0].grad().unwrap()).unwrap();
            half.set_grad(exact[0].grad().unwrap().to_dtype(DType::BF16).unwrap()).unwrap();
            optimizers.iter_mut().for_each(|optimizer| optimizer.step().unwrap());
        }
        let expected = exact[0].to_vec::<f64>().unwrap();
        assert_eq!(turned.to_vec::<f64>().unwrap(), expected);
        let half = half.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap();
        for (half, expected) in half.iter().zip(expected) {
            assert!((half - expected).abs() < 0.02, "{half} is not {expected}");
        }
    }
}
