//! Graphs that are deeper than a stack, and passes inside of passes.

use cresset::prelude::*;
use cresset::tensor::autograd::enable_grad;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs `body` on a stack of 2 MiB.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(body).unwrap().join().unwrap();
}

#[test]
fn a_graph_of_a_million_calls_is_dropped_while_a_panic_unwinds() {
    on_a_small_stack(|| {
        let outcome = catch_unwind(|| {
            let mut y = Tensor::new(1.0f64).unwrap().with_grad().unwrap().mul(1.0).unwrap();
            for _ in 0..1_000_000 {
                y = y.add(0.0).unwrap();
            }
            resume_unwind(Box::new(y.numel()))
        });
        assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&1usize));
    });
}

/// A hook that runs a backward pass, whose hook runs another, and so on.
fn nested(depth: usize, reached: Arc<AtomicUsize>) {
    let x = Tensor::new([1.0f64]).unwrap().with_grad().unwrap();
    let y = x.mul(3.0).unwrap();
    y.register_hook(move |_| {
        reached.fetch_add(1, Relaxed);
        if depth > 1 {
            // As in torch, nothing is recorded inside a pass unless it is asked for.
            let _recording = enable_grad();
            nested(depth - 1, reached.clone());
        }
        Ok(None)
    })
    .unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [3.0]);
}

#[test]
fn backward_passes_run_inside_each_other_a_hundred_deep() {
    on_a_small_stack(|| {
        let reached = Arc::new(AtomicUsize::new(0));
        nested(100, reached.clone());
        assert_eq!(reached.load(Relaxed), 100);
    });
}

#[test]
fn a_pass_that_panicked_deep_inside_leaves_the_graph_usable() {
    let x = Tensor::new([2.0f64]).unwrap().with_grad().unwrap();
    let y = x.mul(&x).unwrap();
    let first = AtomicUsize::new(0);
    let hook = y.register_hook(move |_| {
        if first.fetch_add(1, Relaxed) == 0 { resume_unwind(Box::new(())) } else { Ok(None) }
    });
    let loss = y.exp().unwrap().sum().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| loss.backward())).is_err());
    assert!(x.grad().is_none());
    // What the pass had used up is an error to use again, and a fresh graph is as good as ever.
    let _ = loss.backward();
    hook.unwrap().remove();
    x.clear_grad();
    x.mul(&x).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f64>().unwrap(), [4.0]);
}
