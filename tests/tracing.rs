//! What is traced beside operators: functions with a derivative of their own, and hooks.

use cresset::prelude::*;
use cresset::profiler::{Phase, Trace};
use cresset::tensor::autograd::{Context, Function, Pass, grad};
use cresset::tensor::{Backward, Grads, Result, grads};

/// Twice the input, as a function from outside.
struct Twice;

impl Function for Twice {
    const NAME: &'static str = "Twice";
    const BACKWARD: &'static str = "TwiceBackward";

    fn forward(&self, _ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        Ok(vec![inputs[0].add(inputs[0])?])
    }

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().add(ctx.grad())?)
    }
}

fn profile(body: impl FnOnce() -> Result<()>) -> Trace {
    let mut profiler = Profiler::builder().all_threads(false).start().unwrap();
    body().unwrap();
    profiler.stop().unwrap();
    profiler.into_trace().unwrap()
}

/// The names of events from the outermost to `name`.
fn path(trace: &Trace, name: &str, phase: Phase) -> Vec<String> {
    let mut event =
        trace.events().find(|event| event.name() == name && event.phase() == phase).unwrap_or_else(|| {
            panic!("no {name} in {:?}", trace.events().map(|e| e.name().to_owned()).collect::<Vec<_>>())
        });
    let mut names = vec![event.name().to_owned()];
    while let Some(parent) = event.parent() {
        names.insert(0, parent.name().to_owned());
        event = parent;
    }
    names
}

#[test]
fn a_function_of_ones_own_is_a_call_a_node_and_a_link_between_them() {
    let x = Tensor::new([1.0f32]).unwrap().with_grad().unwrap();
    let trace = profile(|| Twice.apply(&[&x])?[0].backward());
    assert_eq!(path(&trace, "aten::add", Phase::Forward), ["Twice", "aten::add"]);
    assert_eq!(
        path(&trace, "aten::add", Phase::Backward),
        ["autograd::engine::evaluate_function: TwiceBackward", "TwiceBackward", "aten::add"]
    );
    let links: Vec<_> = trace.links().map(|(a, b)| (a.name().to_owned(), b.name().to_owned())).collect();
    assert_eq!(links, [("Twice".to_owned(), "TwiceBackward".to_owned())]);
}

#[test]
fn what_a_hook_calls_is_inside_the_node_whose_gradient_it_sees() {
    let x = Tensor::new([1.0f32]).unwrap().with_grad().unwrap();
    let y = x.exp().unwrap();
    y.register_hook(|grad| grad.neg().map(Some)).unwrap();
    let trace = profile(|| y.backward());
    assert_eq!(
        path(&trace, "aten::neg", Phase::Backward),
        ["autograd::engine::evaluate_function: ExpBackward0", "aten::neg"]
    );
}

#[test]
fn a_leaf_whose_gradient_is_asked_for_is_evaluated_but_keeps_nothing() {
    let x = Tensor::new([1.0f32]).unwrap().with_grad().unwrap();
    let y = x.exp().unwrap();
    let trace = profile(|| grad(&[(&y, None)], &[&x], Pass::default()).map(drop));
    let leaf = "torch::autograd::AccumulateGrad";
    let names: Vec<&str> =
        trace.events().map(|event| event.name()).filter(|name| name.ends_with(leaf)).collect();
    assert_eq!(names, ["autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"]);
}
