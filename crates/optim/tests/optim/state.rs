//! What is kept from step to step, saved and taken up again.

use crate::common::{all, bits, give, parameters};
use cresset_optim::*;

#[test]
fn a_loaded_state_goes_on_bit_for_bit() {
    for (name, make) in all() {
        let (first, second) = (parameters(), parameters());
        let mut one = make(first.clone());
        for step in 0..10 {
            give(&first, step);
            one.step().unwrap();
        }
        // By way of what a file holds.
        let state = StateDict::from_tensors(one.state_dict().unwrap().to_tensors().unwrap()).unwrap();
        for (to, from) in second.iter().zip(&first) {
            let _guard = cresset_tensor::no_grad();
            to.copy_(from).unwrap();
        }
        let mut two = make(second.clone());
        two.load_state_dict(&state).unwrap();
        for step in 10..110 {
            give(&first, step);
            give(&second, step);
            one.step().unwrap();
            two.step().unwrap();
            assert_eq!(bits(&first), bits(&second), "{name} after step {step}");
        }
    }
}

#[test]
fn a_state_is_a_copy_that_later_steps_leave_alone() {
    let p = parameters();
    let mut adam = Adam::new(p.clone(), AdamOptions::default()).unwrap();
    give(&p, 0);
    adam.step().unwrap();
    let state = adam.state_dict().unwrap();
    let before = state.state[0]["exp_avg"].to_vec::<f64>().unwrap();
    give(&p, 1);
    adam.step().unwrap();
    assert_eq!(state.state[0]["exp_avg"].to_vec::<f64>().unwrap(), before);
    assert_eq!(state.state[0]["step"].item().unwrap().as_f64(), 1.0);
    let names: Vec<String> = state.to_tensors().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[..3], ["state.0.exp_avg", "state.0.exp_avg_sq", "state.0.step"]);
}

#[test]
fn states_that_do_not_fit_are_refused_and_change_nothing() {
    let p = parameters();
    let mut adam = Adam::new(p.clone(), AdamOptions::default()).unwrap();
    give(&p, 0);
    adam.step().unwrap();
    let state = adam.state_dict().unwrap();
    let mut other = Adam::new(vec![p[0].clone()], AdamOptions::default()).unwrap();
    let error = other.load_state_dict(&state).unwrap_err();
    assert_eq!(error.to_string(), "Adam: there are 2 parameters of a group, expected 1");
    let mut sgd = Sgd::new(p.clone(), SgdOptions::default()).unwrap();
    assert!(sgd.load_state_dict(&state).is_err());
    let mut changed = state.clone();
    changed.state[1].insert("exp_avg".to_owned(), Tensor::zeros([5], ()).unwrap());
    let error = adam.load_state_dict(&changed).unwrap_err().to_string();
    assert!(error.contains("exp_avg of a parameter of shape [3, 2] is [5], expected [3, 2]"), "{error}");
    adam.load_state_dict(&state).unwrap();
}

#[test]
fn lbfgs_goes_on_bit_for_bit() {
    let run = |saved_after: Option<usize>| {
        let mut x = Tensor::new([-1.5f64, 2.0]).unwrap().with_grad().unwrap();
        let mut lbfgs =
            Lbfgs::new(vec![x.clone()], LbfgsOptions { max_iter: 3, ..Default::default() }).unwrap();
        for step in 0..104 {
            if saved_after == Some(step) {
                let state = lbfgs.state_dict().unwrap().to_tensors().unwrap();
                let state = StateDict::from_tensors(state).unwrap();
                x = x.detach().unwrap().copy().unwrap().with_grad().unwrap();
                lbfgs = Lbfgs::new(vec![x.clone()], LbfgsOptions::default()).unwrap();
                lbfgs.load_state_dict(&state).unwrap();
            }
            let at = x.clone();
            let mut closure = move || {
                at.clear_grad();
                let (a, b) = (at.select(0, 0)?, at.select(0, 1)?);
                let loss = (a.sub(1.0)?.pow(2.0)? + b.sub(&a.pow(2.0)?)?.pow(2.0)?)?;
                loss.backward()?;
                Ok(loss)
            };
            lbfgs.step_with(&mut closure).unwrap();
        }
        bits(&[x])
    };
    assert_eq!(run(None), run(Some(4)));
    assert!(f64::from_bits(run(None)[0]) > 0.9);
}

#[test]
fn a_state_in_tensors_is_the_same_state() {
    for (name, make) in all() {
        let p = parameters();
        let mut optimizer = make(p.clone());
        give(&p[..1], 0);
        optimizer.step().unwrap();
        optimizer.initial_lrs();
        let state = optimizer.state_dict().unwrap();
        let mut tensors = state.to_tensors().unwrap();
        tensors.reverse();
        let back = StateDict::from_tensors(tensors).unwrap();
        assert_eq!(back.groups, state.groups, "{name}");
        let exact = |state: &StateDict| -> Vec<Vec<(String, Vec<f64>)>> {
            let kept = |(name, x): (&String, &Tensor)| {
                (name.clone(), x.to_dtype(cresset_tensor::DType::F64).unwrap().to_vec().unwrap())
            };
            state.state.iter().map(|state| state.iter().map(kept).collect()).collect()
        };
        assert_eq!(exact(&back), exact(&state), "{name}");
    }
}

type Named = (String, Tensor);

#[test]
fn tensors_that_are_no_state_are_refused_by_name() {
    let p = parameters();
    let adam = Adam::new(p, AdamOptions::default()).unwrap();
    let tensors = adam.state_dict().unwrap().to_tensors().unwrap();
    let told = |tensors: Vec<Named>| StateDict::from_tensors(tensors).unwrap_err().to_string();
    let without =
        |name: &str| -> Vec<Named> { tensors.iter().filter(|(known, _)| known != name).cloned().collect() };
    let one = || Tensor::new(1i64).unwrap();
    let with = |name: &str, tensor: Tensor| {
        let mut tensors = without(name);
        tensors.push((name.to_owned(), tensor));
        told(tensors)
    };
    assert_eq!(with("weight", one()), "StateDict: \"weight\" is no part of an optimizer's state");
    assert_eq!(with("state.x.step", one()), "StateDict: \"state.x.step\" is no part of an optimizer's state");
    assert_eq!(with("state.2.step", one()), "StateDict: state.2 is there, expected less than 2");
    assert_eq!(with("groups.2.parameters", one()), "StateDict: groups.1 of 2 is missing");
    let huge = Tensor::new(i64::MAX).unwrap();
    assert_eq!(
        with("groups.0.parameters", huge),
        "StateDict: \"groups.0.parameters\" is no part of an optimizer's state"
    );
    assert_eq!(
        with("groups.0.options.lr", Tensor::new([1.0f32]).unwrap()),
        "StateDict: \"groups.0.options.lr\" is no part of an optimizer's state"
    );
    assert_eq!(told(without("groups.0.parameters")), "StateDict: groups.0.parameters is missing");
}
