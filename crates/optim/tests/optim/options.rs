//! Numbers that optimizers cannot work with: each is refused, named, with what would be accepted.

use cresset_optim::*;

/// `value` with each of its numbers replaced by `number` in turn.
fn with(value: &Value, number: f64) -> Vec<Value> {
    match value {
        Value::Float(_) => vec![Value::Float(number)],
        Value::List(list) => {
            let each = list.iter().enumerate().flat_map(|(i, inner)| {
                with(inner, number).into_iter().map(move |changed| {
                    let mut list = list.clone();
                    list[i] = changed;
                    Value::List(list)
                })
            });
            each.collect()
        }
        _ => Vec::new(),
    }
}

fn refused<O: Options + Default>(name: &str, value: &Value) -> Option<String> {
    let mut options = O::default();
    options.set(name, value).unwrap();
    options.check().err().map(|error| error.to_string())
}

/// Checks all numbers of an optimizer; gives how many there are.
fn check<O: Options + Default>() -> usize {
    let mut count = 0;
    for (name, value) in O::default().entries() {
        for broken in with(&value, f64::NAN) {
            let told =
                refused::<O>(name, &broken).unwrap_or_else(|| panic!("{}: {name} may be {broken}", O::NAME));
            assert!(told.starts_with(&format!("{}: {name}", O::NAME)), "{told}");
            assert!(told.contains(" is NaN, expected "), "{told}");
            count += 1;
        }
    }
    count
}

#[test]
fn no_option_may_be_something_that_is_no_number() {
    let counts = [
        check::<SgdOptions>(),
        check::<AdamOptions>(),
        check::<AdamWOptions>(),
        check::<NadamOptions>(),
        check::<RadamOptions>(),
        check::<AdamaxOptions>(),
        check::<AdagradOptions>(),
        check::<AdadeltaOptions>(),
        check::<RmspropOptions>(),
        check::<RpropOptions>(),
        check::<AsgdOptions>(),
        check::<AdafactorOptions>(),
        check::<MuonOptions>(),
        check::<LbfgsOptions>(),
    ];
    assert!(counts.iter().all(|&count| count >= 3), "{counts:?}");
}

/// A line per optimizer: options that torch refuses when they are below 0.
#[test]
fn what_must_not_be_negative_is_refused_below_0() {
    fn check<O: Options + Default>(names: &[&str]) {
        for name in names {
            let told = refused::<O>(name, &Value::Float(-0.5));
            let expected = format!("{}: {name} is -0.5, expected a finite number, at least 0", O::NAME);
            assert_eq!(told, Some(expected));
        }
    }
    check::<SgdOptions>(&["lr", "momentum", "weight_decay"]);
    check::<AdamOptions>(&["lr", "eps", "weight_decay"]);
    check::<AdamWOptions>(&["lr", "eps", "weight_decay"]);
    check::<NadamOptions>(&["lr", "eps", "weight_decay", "momentum_decay"]);
    check::<RadamOptions>(&["lr", "eps", "weight_decay"]);
    check::<AdamaxOptions>(&["lr", "eps", "weight_decay"]);
    check::<AdagradOptions>(&["lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"]);
    check::<AdadeltaOptions>(&["lr", "eps", "weight_decay"]);
    check::<RmspropOptions>(&["lr", "alpha", "eps", "weight_decay", "momentum"]);
    check::<RpropOptions>(&["lr"]);
    check::<AsgdOptions>(&["lr", "weight_decay"]);
    check::<AdafactorOptions>(&["lr", "weight_decay"]);
    check::<MuonOptions>(&["lr", "weight_decay", "momentum", "eps"]);
    check::<LbfgsOptions>(&["lr", "tolerance_grad", "tolerance_change"]);
}

#[test]
fn betas_of_1_are_refused() {
    fn check<O: Options + Default>() {
        for (value, name) in [([1.0, 0.5], "betas.0"), ([0.5, 1.0], "betas.1")] {
            let told = refused::<O>("betas", &Value::List(value.map(Value::Float).to_vec()));
            assert_eq!(told, Some(format!("{}: {name} is 1, expected at least 0 and below 1", O::NAME)));
        }
    }
    check::<AdamOptions>();
    check::<AdamWOptions>();
    check::<NadamOptions>();
    check::<RadamOptions>();
    check::<AdamaxOptions>();
}

#[test]
fn optimizers_without_parameters_are_refused() {
    fn told<A: Algorithm + Default>() -> String {
        Descent::<A>::new(Vec::new(), A::default()).err().unwrap().to_string()
    }
    let all =
        [told::<SgdOptions>(), told::<AdamWOptions>(), told::<AdafactorOptions>(), told::<MuonOptions>()];
    for told in all {
        assert!(told.ends_with(": there are no parameters, expected at least one"), "{told}");
    }
    let error = Lbfgs::new(Vec::new(), LbfgsOptions::default()).err().unwrap().to_string();
    assert_eq!(error, "LBFGS: there are no parameters, expected at least one");
}
