//! Code of users that panics, wherever we call it: the panic reaches the caller, and everything else goes on.

use cresset::dispatch::observe;
use cresset::prelude::*;
use cresset::tensor::autograd::{Context, Function, checkpoint};
use cresset::tensor::op::kernel_table;
use cresset::tensor::{Backward, Cause, Error, Grads, Kernel, Op, Result, Saves, Spec, grads};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Panics without a message on the terminal.
fn panics<T>() -> T {
    resume_unwind(Box::new("told to"))
}

fn leaf() -> Tensor {
    Tensor::new([1.0f64, 2.0]).unwrap().with_grad().unwrap()
}

/// Panics in one of its directions.
struct Panics {
    forward: bool,
}

impl Function for Panics {
    const NAME: &'static str = "Panics";
    const BACKWARD: &'static str = "PanicsBackward";

    fn forward(&self, _ctx: &mut Context, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        if self.forward { panics() } else { Ok(vec![inputs[0].mul(2.0)?]) }
    }

    fn backward(&self, _ctx: &Backward<'_>) -> Result<Grads> {
        panics()
    }
}

/// An operator whose kernel panics.
#[derive(Clone, Copy)]
struct Falls;

impl Op for Falls {
    const NAME: &'static str = "mine::falls";
    const BACKWARD: &'static str = "FallsBackward0";
    const SAVES: Saves = Saves::Nothing;
    type Inputs<'a> = [&'a Tensor; 1];
    type Output = Tensor;

    fn backward(&self, ctx: &Backward<'_>) -> Result<Grads> {
        grads!(ctx; ctx.grad().clone())
    }
}

impl Kernel for Falls {
    kernel_table!(Falls);

    fn infer(&self, [x]: [&Tensor; 1]) -> Result<Spec> {
        Ok(Spec::like(x))
    }

    fn cpu(&self, _: [&Tensor; 1], _: &Tensor) -> Result<()> {
        panics()
    }
}

/// A layer that panics.
#[derive(Module)]
struct Layer;

impl Forward for Layer {
    type Output = Tensor;

    fn forward(&self, _: &Tensor) -> Result<Tensor> {
        panics()
    }
}

type Case = (&'static str, fn() -> Result<()>);

/// Everywhere that a tensor program hands us code.
const CASES: &[Case] = &[
    ("a kernel", || Falls.call([&leaf()]).map(drop)),
    ("a layer", || Sequential::new().push(Layer).call(&leaf()).map(drop)),
    ("a function", || Panics { forward: true }.apply(&[&leaf()]).map(drop)),
    ("a derivative", || Panics { forward: false }.apply(&[&leaf()])?[0].sum()?.backward()),
    ("a checkpoint", || checkpoint(|_| panics::<Result<Tensor>>(), &[&leaf()]).map(drop)),
    ("a hook of a tensor", || {
        let x = leaf();
        x.register_hook(|_| panics())?;
        x.exp()?.sum()?.backward()
    }),
    ("a hook of a leaf that has its gradient", || {
        let x = leaf();
        x.register_post_accumulate_grad_hook(|_| panics())?;
        x.exp()?.sum()?.backward()
    }),
    ("hooks of a node", || {
        let y = leaf().exp()?;
        let node = y.grad_node().expect("it was computed");
        node.register_prehook(|_| panics());
        y.sum()?.backward()
    }),
    ("a part without gradients", || {
        let _off = no_grad();
        panics()
    }),
];

/// What any program does, many times.
fn a_thousand_calls() {
    let x = leaf();
    for _ in 0..250 {
        let y = x.mul(&x).unwrap().sum().unwrap();
        y.backward().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [2.0, 4.0]);
        x.clear_grad();
    }
}

#[test]
fn a_panic_in_any_closure_reaches_the_caller_and_a_thousand_calls_after_it_succeed() {
    for (name, case) in CASES {
        let caught = catch_unwind(case).expect_err(name);
        assert_eq!(caught.downcast_ref(), Some(&"told to"), "{name}");
        assert!(cresset::tensor::autograd::is_grad_enabled(), "{name} left a mode behind");
        a_thousand_calls();
    }
}

#[test]
fn a_panic_in_any_closure_of_a_profiled_program_keeps_the_profile() {
    for (name, case) in CASES {
        let mut profiler = Profiler::builder().all_threads(false).start().unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| record_function("around").run(case)));
        assert!(caught.is_err(), "{name}");
        leaf().neg().unwrap();
        profiler.stop().unwrap();
        let events: Vec<_> = profiler.events().unwrap().collect();
        assert!(events.iter().all(|event| event.is_finished()), "{name}: something was left open");
        let failed = |name| events.iter().find(|event| event.name() == name).unwrap().is_failed();
        assert!(failed("around") && !failed("aten::neg"), "{name}");
    }
    let _ = observe::is_watched();
}

/// An error of the user's own.
#[derive(Debug)]
struct Mine(u32);

impl std::fmt::Display for Mine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mine, number {}", self.0)
    }
}

impl std::error::Error for Mine {}

#[test]
fn an_error_of_a_users_closure_in_a_backward_pass_comes_back_with_its_source() {
    let x = leaf();
    x.register_hook(|_| Err(Error::device_failure("mine", Mine(7)).because(Cause::Argument))).unwrap();
    let y = x.exp().unwrap().sum().unwrap();
    let error = y.backward().unwrap_err();
    assert_eq!(error.cause(), Cause::Argument);
    let source = std::error::Error::source(&error).expect("the user's error is behind it");
    assert_eq!(source.downcast_ref::<Mine>().unwrap().0, 7);
    assert!(x.grad().is_none(), "a pass that failed leaves no gradient where it did not arrive");
    a_thousand_calls();
}
