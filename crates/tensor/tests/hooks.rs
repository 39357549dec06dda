//! What programs hang on the graph: hooks, retained gradients, and the search for anomalies.

use cresset_tensor::autograd::{
    Pass, at_end_of_backward, backward, detect_anomaly, detect_anomaly_in_results, grad,
};
use cresset_tensor::{Cause, DType, Error, Tensor};
use std::sync::{Arc, Mutex};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap().with_grad().unwrap()
}

fn f64s(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

/// What hooks wrote down, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn write(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[test]
fn a_hook_sees_the_whole_gradient_and_may_replace_it_until_removed() {
    let x = leaf(&[3.0]);
    let log = Log::default();
    let noted = log.clone();
    let hook = x.register_hook(move |gradient| {
        noted.write(format!("{:?}", f64s(gradient)));
        gradient.mul(10.0).map(Some)
    });
    let hook = hook.unwrap();
    let run = || (&x * &x).unwrap().sum().unwrap().backward().unwrap();
    run();
    assert_eq!(log.lines(), ["[6.0]"]);
    assert_eq!(f64s(&x.grad().unwrap()), [60.0]);
    hook.remove();
    run();
    assert_eq!(log.lines(), [""; 0]);
    assert_eq!(f64s(&x.grad().unwrap()), [66.0]);
}

#[test]
fn hooks_run_in_the_order_of_torch() {
    let log = Log::default();
    let note = |line: &'static str| {
        let log = log.clone();
        move || log.write(line)
    };
    let x = leaf(&[1.0]);
    let y = x.mul(2.0).unwrap();
    let (first, second) = (note("tensor, first"), note("tensor, second"));
    let (before, after) = (note("before"), note("after"));
    let node = y.grad_node().unwrap();
    node.register_hook(move |_, _| {
        after();
        Ok(None)
    });
    node.register_prehook(move |_| {
        before();
        Ok(None)
    });
    y.register_hook(move |_| {
        first();
        Ok(None)
    })
    .unwrap();
    y.register_hook(move |_| {
        second();
        Ok(None)
    })
    .unwrap();
    let (at_leaf, accumulated) = (note("leaf"), note("accumulated"));
    x.register_post_accumulate_grad_hook(move |leaf| {
        accumulated();
        assert_eq!(f64s(&leaf.grad().unwrap()), [2.0]);
        Ok(())
    })
    .unwrap();
    x.register_hook(move |_| {
        at_leaf();
        Ok(None)
    })
    .unwrap();
    let pass = Pass { retain_graph: true, ..Pass::default() };
    backward(&[(&y, None)], pass).unwrap();
    assert_eq!(log.lines(), ["tensor, first", "tensor, second", "before", "after", "leaf", "accumulated"]);
    grad(&[(&y, None)], &[&y], pass).unwrap();
    assert_eq!(log.lines(), ["tensor, first", "tensor, second"]);
}

#[test]
fn hooks_of_a_node_may_replace_what_goes_in_and_comes_out() {
    let (x, w) = (leaf(&[2.0]), leaf(&[5.0]));
    let y = x.mul(&w).unwrap();
    let node = y.grad_node().unwrap();
    assert_eq!(node.name(), "MulBackward0");
    let next: Vec<_> = node.next().into_iter().flatten().collect();
    assert_eq!(next.len(), 2);
    assert!(next[1].0.leaf().unwrap().same_as(&w));
    node.register_prehook(|grads| Ok(Some(vec![Some(grads[0].as_ref().unwrap().mul(3.0)?)].into())));
    node.register_hook(|inputs, outputs| {
        assert_eq!(f64s(outputs[0].as_ref().unwrap()), [3.0]);
        Ok(Some(vec![inputs[0].clone(), None].into()))
    });
    y.backward().unwrap();
    assert_eq!(f64s(&x.grad().unwrap()), [15.0]);
    assert!(w.grad().is_none());
}

#[test]
fn a_hook_that_gives_nonsense_is_an_error() {
    let x = leaf(&[2.0]);
    let y = x.mul(3.0).unwrap();
    x.register_hook(|_| Tensor::zeros([2], DType::F64).map(Some)).unwrap();
    assert_eq!(y.backward().unwrap_err().cause(), Cause::Shape);
    let z = x.mul(3.0).unwrap();
    z.grad_node().unwrap().register_hook(|_, _| Ok(Some(Default::default())));
    let error = z.backward().unwrap_err();
    assert_eq!(error.to_string(), "MulBackward0: a hook after the node gave 0 gradients instead of 2");
    let plain = Tensor::new([1.0f64]).unwrap();
    assert_eq!(plain.register_hook(|_| Ok(None)).err().unwrap().cause(), Cause::Graph);
    assert_eq!(z.register_post_accumulate_grad_hook(|_| Ok(())).err().unwrap().cause(), Cause::Graph);
}

#[test]
fn computed_tensors_keep_their_gradient_if_asked_to() {
    let x = leaf(&[2.0]);
    let y = x.mul(3.0).unwrap();
    y.retain_grad().unwrap();
    y.retain_grad().unwrap();
    let z = y.mul(&y).unwrap();
    backward(&[(&z, None)], Pass { retain_graph: true, ..Pass::default() }).unwrap();
    assert_eq!(f64s(&y.grad().unwrap()), [12.0]);
    z.backward().unwrap();
    assert_eq!(f64s(&y.grad().unwrap()), [24.0]);
    assert_eq!(Tensor::new([1.0f64]).unwrap().retain_grad().unwrap_err().cause(), Cause::Graph);
}

#[test]
fn a_retained_gradient_is_that_of_the_tensor_after_a_change() {
    let x = leaf(&[2.0]);
    let y = x.mul(1.0).unwrap();
    y.retain_grad().unwrap();
    y.mul_(5.0).unwrap();
    y.mul(7.0).unwrap().backward().unwrap();
    assert_eq!((f64s(&y.grad().unwrap()), f64s(&x.grad().unwrap())), (vec![7.0], vec![35.0]));
}

#[test]
fn a_retained_gradient_of_a_view_is_that_after_a_change_of_its_base() {
    let x = leaf(&[2.0, 3.0]);
    let y = x.mul(1.0).unwrap();
    let view = y.view([2, 1]).unwrap();
    view.retain_grad().unwrap();
    y.mul_(5.0).unwrap();
    view.mul(7.0).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(f64s(&view.grad().unwrap()), [7.0, 7.0]);
    assert_eq!(f64s(&x.grad().unwrap()), [35.0, 35.0]);
}

#[test]
fn hooks_run_on_the_thread_that_runs_the_pass() {
    let x = leaf(&[1.0]);
    let y = x.mul(2.0).unwrap();
    let log = Log::default();
    let noted = log.clone();
    y.register_hook(move |_| {
        noted.write(std::thread::current().name().unwrap_or_default());
        Ok(None)
    })
    .unwrap();
    let pass = std::thread::Builder::new().name("pass".to_owned()).spawn(move || y.backward());
    pass.unwrap().join().unwrap().unwrap();
    assert_eq!(log.lines(), ["pass"]);
}

#[test]
fn an_anomaly_names_the_node_the_forward_call_and_its_stack() {
    let x = leaf(&[-1.0]);
    let _guard = detect_anomaly();
    let y = x.sqrt().unwrap();
    let error = y.backward().unwrap_err();
    assert_eq!(error.cause(), Cause::Anomaly);
    let text = error.to_string();
    assert!(
        text.starts_with(
            "SqrtBackward0: returned NaN in the gradient of input 0; the forward call was aten::sqrt, made here:\n"
        ),
        "{text}"
    );
    assert!(text.contains("an_anomaly_names_the_node"), "{text}");
}

#[test]
fn a_failing_derivative_names_its_forward_call_while_anomalies_are_looked_for() {
    let x = leaf(&[1.0, 2.0]);
    let guard = detect_anomaly();
    let y = x.mul(1.0).unwrap();
    let z = y.mul(&y).unwrap();
    y.add_(1.0).unwrap();
    let error = z.sum().unwrap().backward().unwrap_err().to_string();
    assert!(error.contains("was changed in place by aten::add_"), "{error}");
    assert!(error.contains("the forward call was aten::mul, made here:"), "{error}");
    drop(guard);
    let silent = leaf(&[-1.0]);
    silent.sqrt().unwrap().backward().unwrap();
    assert!(f64s(&silent.grad().unwrap())[0].is_nan());
}

/// The first line of the error, which the stack follows.
fn told<T>(outcome: cresset_tensor::Result<T>) -> String {
    let error = outcome.err().expect("an anomaly");
    assert_eq!(error.cause(), Cause::Anomaly);
    let text = error.to_string();
    assert!(text.contains("the_first_call_that_makes_nan"), "{text}");
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn the_first_call_that_makes_nan_or_infinity_of_finite_numbers_is_named() {
    let x = Tensor::new([[1.0f32, 0.0], [4.0, -1.0]]).unwrap();
    let zeros = Tensor::zeros([2], ()).unwrap();
    let _guard = detect_anomaly_in_results();
    let sqrt =
        "aten::sqrt: gave NaN at [1, 1] of shape [2, 2], of finite inputs of shape [2, 2]; called here:";
    assert_eq!(told(x.sqrt()), sqrt);
    assert_eq!(told(x.detach().unwrap().with_grad().unwrap().sqrt()), sqrt, "recorded, too");
    assert_eq!(
        told(x.div(&zeros)),
        "aten::div: gave inf at [0, 0] of shape [2, 2], of finite inputs of shapes [2, 2] and [2]; called here:"
    );
    assert_eq!(
        told(x.copy().unwrap().log_()),
        "aten::log_: gave -inf at [0, 1] of shape [2, 2], of finite inputs of shape [2, 2]; called here:"
    );
    // Inside of what is made of others, the one that did it.
    let large = Tensor::full([2, 2], 1e38, ()).unwrap();
    assert!(told(large.linear(&large, None)).starts_with("aten::mm: gave inf at [0, 0]"));
    assert!(told(large.to_dtype(DType::F16)).contains("gave inf"));
}

#[test]
fn infinity_that_was_written_or_came_in_is_no_anomaly_of_a_call() {
    let x = Tensor::new([1.0f32, f32::NAN]).unwrap();
    let mask = Tensor::new([true, false]).unwrap();
    let ones = Tensor::ones([2], ()).unwrap();
    let guard = detect_anomaly_in_results();
    assert!(f64s(&x.exp().unwrap().double().unwrap())[1].is_nan());
    let masked = ones.masked_fill(&mask, f64::NEG_INFINITY).unwrap();
    assert_eq!(f64s(&masked.softmax(0).unwrap().double().unwrap()), [0.0, 1.0]);
    Tensor::full([2], f64::INFINITY, ()).unwrap();
    // Memory without contents is nobody's result.
    Tensor::empty([2], ()).unwrap().fill_(1.0).unwrap();
    Tensor::empty([2], ()).unwrap().view([2, 1]).unwrap();
    drop(guard);
    assert!(f64s(&ones.mul(-1.0).unwrap().sqrt().unwrap().double().unwrap())[0].is_nan());
}

#[test]
fn an_anomaly_inside_of_a_derivative_names_its_operator_and_the_forward_call() {
    let x = leaf(&[0.0]);
    let _guard = detect_anomaly_in_results();
    let y = x.sqrt().unwrap();
    let error = y.backward().unwrap_err();
    let text = error.to_string();
    assert_eq!((error.cause(), error.op()), (Cause::Anomaly, "aten::div"), "{text}");
    assert!(text.contains("gave inf at [0] of shape [1]"), "{text}");
    assert!(text.contains("the forward call was aten::sqrt, made here:"), "{text}");
}

#[test]
fn what_hooks_ask_for_happens_once_the_outermost_pass_has_ended() {
    let x = leaf(&[1.0, 2.0]);
    let log = Log::default();
    let (asked, inner) = (log.clone(), leaf(&[3.0]));
    x.register_post_accumulate_grad_hook(move |leaf| {
        let (log, leaf) = (asked.clone(), leaf.clone());
        at_end_of_backward(move || {
            log.write(format!("ended with {:?}", f64s(&leaf.grad().unwrap())));
            Ok(())
        })?;
        // A pass within the pass does not end it.
        cresset_tensor::autograd::with_grad_enabled(true, || inner.mul(2.0)?.sum()?.backward())?;
        asked.write("hook");
        Ok(())
    })
    .unwrap();
    x.mul(3.0).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(log.lines(), ["hook", "ended with [3.0, 3.0]"]);

    let text = at_end_of_backward(|| Ok(())).unwrap_err().to_string();
    assert!(text.contains("no backward pass runs on this thread"), "{text}");
}

#[test]
fn what_hooks_asked_for_is_dropped_with_a_pass_that_fails_and_its_failure_is_that_of_the_pass() {
    let x = leaf(&[1.0, 2.0]);
    let fails = Arc::new(Mutex::new("pass"));
    let (how, happened) = (fails.clone(), Arc::new(Mutex::new(0)));
    let count = happened.clone();
    x.register_post_accumulate_grad_hook(move |_| {
        let (count, how) = (count.clone(), *how.lock().unwrap());
        at_end_of_backward(move || {
            *count.lock().unwrap() += 1;
            if how == "end" { Err(Error::new(Cause::Argument, "end", "told to")) } else { Ok(()) }
        })?;
        if how == "pass" { Err(Error::new(Cause::Argument, "hook", "told to")) } else { Ok(()) }
    })
    .unwrap();
    let pass = || x.sum().unwrap().backward();
    assert!(pass().is_err());
    assert_eq!(*happened.lock().unwrap(), 0, "the pass failed before it ended");
    *fails.lock().unwrap() = "end";
    assert!(pass().unwrap_err().to_string().contains("end: told to"));
    *fails.lock().unwrap() = "nothing";
    pass().unwrap();
    assert_eq!(*happened.lock().unwrap(), 2, "nothing of the failed pass was left over");
}
