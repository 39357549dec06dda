//! Steps of optimizers in a profile, beside torch's.

use cresset::optim::{
    AdadeltaOptions, AdafactorOptions, AdagradOptions, AdamaxOptions, Algorithm, AsgdOptions, Descent,
    Implementation, MuonOptions, NadamOptions, RadamOptions, RmspropOptions, RpropOptions, Value,
};
use cresset::prelude::*;
use cresset::profiler::Event;
use serde_json::Value as Json;

/// Two parameters with gradients.
fn parameters(second: impl AsRef<[usize]>) -> Vec<Tensor> {
    let parameter = |shape: &[usize]| {
        let parameter = Tensor::randn(shape, ()).unwrap().with_grad().unwrap();
        parameter.set_grad(Tensor::randn(shape, ()).unwrap()).unwrap();
        parameter
    };
    vec![parameter(&[3, 4]), parameter(second.as_ref())]
}

/// Which calls of step number `count` are looked at.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    /// Those that the step makes.
    First,
    /// All, those inside of others further in.
    All,
}

fn list(event: Event<'_>, indent: usize, depth: Depth, names: &mut Vec<String>) {
    for call in event.children() {
        names.push(format!("{}{}", " ".repeat(indent), call.name()));
        if depth == Depth::All {
            list(call, indent + 2, depth, names);
        }
    }
}

/// The calls inside of step number `count`.
fn calls(optimizer: &mut dyn Optimizer, count: usize, depth: Depth) -> Vec<String> {
    (1..count).for_each(|_| optimizer.step().unwrap());
    let mut profiler = Profiler::builder().all_threads(false).start().unwrap();
    optimizer.step().unwrap();
    profiler.stop().unwrap();
    let trace = profiler.into_trace().unwrap();
    let step = trace.events().next().unwrap();
    assert_eq!(step.name(), format!("Optimizer.step#{}.step", optimizer.name()));
    let mut names = Vec::new();
    list(step, 0, depth, &mut names);
    names
}

fn single<A: Algorithm + Default>(options: &Json) -> Vec<String> {
    let mut chosen = A::default();
    for (name, value) in options.as_object().unwrap() {
        let value = value.as_bool().map_or_else(|| Value::Float(value.as_f64().unwrap()), Value::Bool);
        chosen.set(name, &value).unwrap();
    }
    if chosen.entries().iter().any(|(name, _)| *name == "implementation") {
        chosen.set("implementation", &Value::Text("single".to_owned())).unwrap();
    }
    // The second parameter was a vector when torch was recorded, but for Muon, which takes none.
    let second: &[usize] = if A::NAME == "Muon" { &[4, 3] } else { &[5] };
    calls(&mut Descent::new(parameters(second), chosen).unwrap(), 7, Depth::All)
}

#[test]
fn a_step_operator_by_operator_is_torch_s_call_for_call() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/optimizer_steps.json");
    let json: Json = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut compared = 0;
    for step in json["steps"].as_array().unwrap() {
        let options = &step["options"];
        let name = step["optimizer"].as_str().unwrap();
        let got = match name {
            "SGD" => single::<SgdOptions>(options),
            "Adam" => single::<AdamOptions>(options),
            "AdamW" => single::<AdamWOptions>(options),
            "NAdam" => single::<NadamOptions>(options),
            "RAdam" => single::<RadamOptions>(options),
            "Adamax" => single::<AdamaxOptions>(options),
            "Adagrad" => single::<AdagradOptions>(options),
            "Adadelta" => single::<AdadeltaOptions>(options),
            "RMSprop" => single::<RmspropOptions>(options),
            "Rprop" => single::<RpropOptions>(options),
            "ASGD" => single::<AsgdOptions>(options),
            "Adafactor" => single::<AdafactorOptions>(options),
            "Muon" => single::<MuonOptions>(options),
            other => panic!("no optimizer {other}"),
        };
        let expected = step["calls"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let expected: Vec<&str> = expected.collect();
        assert_eq!(got, expected, "{name} with {options}");
        compared += 1;
    }
    assert!(compared > 25, "only {compared} steps are recorded");
}

#[test]
fn a_fused_step_is_one_call_per_group() {
    let fused = Some(Implementation::Fused);
    let options = AdamOptions { amsgrad: true, implementation: fused, ..Default::default() };
    let mut adam = Adam::new(parameters([2, 2]), options).unwrap();
    adam.add_group(cresset::optim::Group { parameters: parameters([5, 1]), options: AdamOptions::default() })
        .unwrap();
    // Torch counts the steps of a group by a call before the step.
    let group = ["aten::_foreach_add_", "aten::_fused_adam_"];
    assert_eq!(calls(&mut adam, 2, Depth::First), [group, group].concat());
    let options = RmspropOptions { implementation: fused, ..Default::default() };
    assert_eq!(
        calls(&mut Descent::new(parameters([2, 2]), options).unwrap(), 2, Depth::First),
        ["aten::_foreach_add_", "cresset::_fused_rmsprop_"]
    );
    let mut adamw = AdamW::new(parameters([2, 2]), AdamWOptions::default()).unwrap();
    assert_eq!(calls(&mut adamw, 2, Depth::First), ["aten::_foreach_add_", "aten::_fused_adamw_"]);
}
