//! What is recorded and what is not: guards, closures, and inference mode.

use cresset_tensor::autograd::{
    enable_grad, in_inference_mode, inference_mode, is_grad_enabled, is_inference_mode, no_grad,
    with_grad_enabled, without_grad,
};
use cresset_tensor::{Cause, Tensor};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap().with_grad().unwrap()
}

#[test]
fn guards_and_closures_switch_recording_off_and_on() {
    let x = leaf(&[1.0]);
    let recorded = || x.mul(2.0).unwrap().requires_grad();
    assert!(recorded() && is_grad_enabled());
    assert!(!without_grad(recorded));
    let guard = no_grad();
    assert!(!recorded() && !is_grad_enabled());
    assert!(with_grad_enabled(true, recorded));
    {
        let _inner = enable_grad();
        assert!(recorded());
    }
    assert!(!recorded());
    drop(guard);
    assert!(recorded());
}

#[test]
fn guards_that_end_out_of_order_leave_no_trace() {
    let outer = no_grad();
    let inner = enable_grad();
    drop(outer);
    assert!(is_grad_enabled());
    drop(inner);
    assert!(is_grad_enabled());
}

#[test]
fn a_closure_that_panics_leaves_the_mode_as_it_was() {
    let caught = std::panic::catch_unwind(|| without_grad(|| panic!("on purpose")));
    assert!(caught.is_err() && is_grad_enabled());
}

#[test]
fn nothing_is_recorded_in_inference_mode_whatever_else_is_said() {
    let x = leaf(&[1.0]);
    let _guard = inference_mode();
    assert!(is_inference_mode() && !is_grad_enabled());
    let _asked = enable_grad();
    assert!(!x.mul(2.0).unwrap().requires_grad());
}

#[test]
fn tensors_of_inference_mode_stay_outside_every_graph() {
    let x = leaf(&[1.0]);
    let made = in_inference_mode(|| x.mul(2.0)).unwrap();
    assert!(made.is_inference() && !x.is_inference());
    assert_eq!(made.set_requires_grad(true).unwrap_err().cause(), Cause::Graph);
    let error = x.mul(&made).unwrap_err();
    assert!(
        error.to_string().starts_with(
            "aten::mul: a tensor of shape [1] made in inference mode cannot be saved for the gradient"
        ),
        "{error}"
    );
    // A sum keeps nothing, and a copy is a tensor like any other.
    x.add(&made).unwrap().backward().unwrap();
    x.mul(&made.copy().unwrap()).unwrap().backward().unwrap();
}

#[test]
fn tensors_of_inference_mode_change_only_there() {
    let made = in_inference_mode(|| Tensor::new([1.0f64])).unwrap();
    let error = made.add_(1.0).unwrap_err();
    assert!(error.to_string().starts_with("aten::add_: a tensor made in inference mode"), "{error}");
    assert!(without_grad(|| made.add_(1.0)).is_err());
    assert!(made.view([1, 1]).unwrap().add_(1.0).is_err());
    in_inference_mode(|| made.add_(1.0)).unwrap();
    assert_eq!(made.to_vec::<f64>().unwrap(), [2.0]);
}

#[test]
fn a_view_made_in_inference_mode_is_of_its_bases_kind() {
    let plain = Tensor::new([1.0f64, 2.0]).unwrap();
    let view = in_inference_mode(|| plain.view([2, 1])).unwrap();
    assert!(!view.is_inference());
    view.add_(1.0).unwrap();
    let error = view.copy_(&leaf(&[1.0]).view([1, 1]).unwrap()).unwrap_err();
    assert!(error.to_string().contains("a view made in inference mode cannot be changed"), "{error}");
}
