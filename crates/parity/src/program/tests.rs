//! Programs that are wrong are told where; programs that are hostile do no harm.

use super::Program;
use cresset_tensor::Device;
use serde_json::{Value, json};

fn program(body: Value) -> Value {
    json!({
        "program": 1,
        "tensors": { "x": { "shape": [2, 3], "seed": 1, "requires_grad": true } },
        "modules": { "layer": { "type": "Linear", "args": [3, 2] } },
        "body": body,
        "results": ["x.grad"],
    })
}

fn refusal(program: &Value) -> String {
    match Program::from_json(program.to_string().as_bytes()) {
        Ok(program) => program.run(Device::CPU).err().expect("the program is wrong"),
        Err(reason) => reason,
    }
}

#[test]
fn results_are_in_the_trace_and_gradients_among_them() {
    let body = json!([
        { "call": "aten::mul", "args": ["x", 3], "to": "y" },
        { "call": "sum", "args": ["y"], "to": "loss" },
        { "backward": "loss" },
    ]);
    let program = Program::from_json(program(body).to_string().as_bytes()).unwrap();
    let ran = program.run(Device::CPU).unwrap();
    assert_eq!(ran.results["x.grad"], json!({ "shape": [2, 3], "dtype": "f32", "values": ([3.0; 6]) }));
    // Other tests run meanwhile, and the profiler sees all threads.
    for name in ["aten::mul", "aten::sum", "MulBackward0"] {
        assert!(ran.profiler.events().unwrap().any(|event| event.name() == name), "{name}");
    }
}

#[test]
fn gradients_of_several_roots_are_summed_and_may_be_given() {
    let body = json!([
        { "call": "aten::mul", "args": ["x", 3], "to": "y" },
        { "call": "aten::neg", "args": ["x"], "to": "z" },
        { "call": "aten::ones_like", "args": ["x"], "to": "one" },
        { "gradient": ["y", "z"], "gradients": ["one", "one"], "wrt": ["x"], "to": ["g"] },
        { "call": "aten::mul", "args": ["x", 1], "to": "w" },
        { "call": "aten::t_", "args": ["w"] },
    ]);
    let mut program = program(body);
    program["results"] = json!(["g", "w"]);
    let ran = Program::from_json(program.to_string().as_bytes()).unwrap().run(Device::CPU).unwrap();
    assert_eq!(ran.results["g"], json!({ "shape": [2, 3], "dtype": "f32", "values": ([2.0; 6]) }));
    assert_eq!(
        ran.results["w"]["shape"],
        json!([3, 2]),
        "what a change in place leaves goes by the same name"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        (
            json!([{ "call": "aten::mul", "args": ["x", "z"] }]),
            "body[0].args[1]: no tensor is called \"z\" here",
        ),
        (json!([{ "call": "aten::conjure", "args": ["x"] }]), "body[0].call: there is no operator"),
        (json!([{ "scope": "s", "do": [{ "cal": "aten::mul" }] }]), "body[0].do[0]: is no statement"),
        (json!([{ "call": "mul", "args": ["x", 1], "too": "y" }]), "body[0]: unknown member \"too\""),
        (json!([{ "module": "lair", "args": ["x"] }]), "body[0].module: no module is called \"lair\""),
        (json!([{ "repeat": -1, "do": [] }]), "body[0].repeat: expected an int from 0 to"),
        (
            json!([{ "call": "mul", "args": [{ "t": "t0", "k": 0 }] }]),
            "body[0].args[0]: tensors are given by",
        ),
        (json!([{ "call": "matmul", "args": ["x", "x"] }]), "body[0]: aten::m"),
        (json!([{ "fails": [{ "call": "mul", "args": ["x", "x"] }] }]), "body[0]: was to fail, and did not"),
        (json!([{ "threads": [[{ "profiler_step": true }]] }]), "body[0]"),
    ];
    for (body, expected) in cases {
        let reason = refusal(&program(body));
        assert!(reason.starts_with(expected), "{reason}");
    }
    assert!(
        refusal(&json!({ "program": 2, "body": [] })).starts_with("program: expected an int from 0 to 1")
    );
    assert_eq!(refusal(&json!({ "program": 1 })), "has no member \"body\"");
    let huge = json!({ "program": 1, "tensors": { "x": { "shape": [1 << 20, 1 << 20] } }, "body": [] });
    assert!(refusal(&huge).starts_with("tensors.x.shape: a tensor has at most"), "{}", refusal(&huge));
    let deep = (0..40).fold(json!([]), |inner, _| json!([{ "repeat": 1, "do": inner }]));
    assert!(refusal(&program(deep)).contains("blocks lie at most 32 deep"));
}

/// Every value of a good program in turn becomes something else.
#[test]
fn no_change_of_a_program_makes_it_panic() {
    let good = program(json!([
        { "scope": "outer", "do": [{ "module": "layer", "args": ["x"], "to": "y" }] },
        { "call": "aten::sum", "args": ["y"], "kwargs": { "dim": [0] }, "to": "s" },
        { "call": "aten::__getitem__", "args": ["s", { "slice": [0, null, 2] }], "to": "t" },
        { "backward": "t", "gradients": ["t"] },
        { "hook": "x", "as": "g", "do": [], "gives": "g" },
    ]));
    let others = [json!(null), json!(-1), json!(1e300), json!(""), json!([]), json!({}), json!(["x", "x"])];
    let mut tried = 0;
    for at in 0.. {
        let mut found = false;
        for other in &others {
            let mut changed = good.clone();
            let mut left = at;
            found |= replace(&mut changed, &mut left, other);
            if let Ok(program) = Program::from_json(changed.to_string().as_bytes()) {
                let _ = program.run(Device::CPU);
            }
            tried += 1;
        }
        if !found {
            break;
        }
    }
    assert!(tried > 200, "{tried}");
}

/// Puts `other` in the place of value number `left`.
fn replace(json: &mut Value, left: &mut usize, other: &Value) -> bool {
    if *left == 0 {
        *json = other.clone();
        return true;
    }
    *left -= 1;
    match json {
        Value::Array(list) => list.iter_mut().any(|inner| replace(inner, left, other)),
        Value::Object(members) => members.values_mut().any(|inner| replace(inner, left, other)),
        _ => false,
    }
}
