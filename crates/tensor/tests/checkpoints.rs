//! Checkpoints: the same gradients, from tensors computed again.

use cresset_tensor::autograd::{GradCheck, Pass, backward, checkpoint, grad, gradcheck, gradgradcheck};
use cresset_tensor::{DType, Result, Tensor, manual_seed};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn leaf(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap().with_grad().unwrap()
}

fn f64s(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

fn segment(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    x.mul(w)?.tanh()?.mul(x)?.exp()
}

#[test]
fn gradients_are_those_without_a_checkpoint_also_of_what_was_captured() {
    let (x, w) = (leaf(&[0.3, -0.8]), leaf(&[1.5, 0.5]));
    segment(&x.mul(1.0).unwrap(), &w).unwrap().sum().unwrap().backward().unwrap();
    let expected = (f64s(&x.grad().unwrap()), f64s(&w.grad().unwrap()));
    x.clear_grad();
    w.clear_grad();
    let captured = w.clone();
    let input = x.mul(1.0).unwrap();
    let y = checkpoint(move |x| segment(&x[0], &captured), &[input]).unwrap();
    assert_eq!(y.grad_fn(), Some("ExpBackward0"));
    y.sum().unwrap().backward().unwrap();
    assert_eq!((f64s(&x.grad().unwrap()), f64s(&w.grad().unwrap())), expected);
}

#[test]
fn a_function_is_run_once_more_per_pass_and_not_at_all_without_one() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let x = leaf(&[0.5]);
    let y = checkpoint(
        move |x| {
            counted.fetch_add(1, Relaxed);
            x[0].exp()?.tanh()?.exp()
        },
        &[&x],
    )
    .unwrap();
    assert_eq!(runs.load(Relaxed), 1);
    backward(&[(&y, None)], Pass { retain_graph: true, ..Pass::default() }).unwrap();
    assert_eq!(runs.load(Relaxed), 2);
    let once = f64s(&x.grad().unwrap())[0];
    y.backward().unwrap();
    assert_eq!(runs.load(Relaxed), 3);
    assert_eq!(f64s(&x.grad().unwrap()), [2.0 * once]);
}

#[test]
fn random_numbers_are_the_same_again_and_others_go_on_undisturbed() {
    manual_seed(7);
    let x = leaf(&[1.0; 4]);
    let noisy = |x: &[Tensor]| {
        let noise = Tensor::rand([4], DType::F64)?;
        x[0].mul(&noise)?.exp()?.mul(&noise)
    };
    let y = checkpoint(noisy, &[&x]).unwrap();
    let product = grad(&[(&y.sum().unwrap(), None)], &[&x], Pass::default()).unwrap().remove(0).unwrap();
    // The slope is the value times the noise, and the value is noise e^noise.
    let noise = |value: f64| (0..60).fold(0.5, |n: f64, _| n - (n * n.exp() - value) / ((1.0 + n) * n.exp()));
    let expected: Vec<f64> = f64s(&y).into_iter().map(|value| value * noise(value)).collect();
    assert!(
        f64s(&product).iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9),
        "{product} {expected:?}"
    );
}

#[test]
fn checkpoints_nest_and_have_second_gradients() {
    let nested = |x: &[Tensor]| {
        checkpoint(
            |x| {
                let inner = checkpoint(|x| x[0].tanh()?.exp(), &[x[0].mul(&x[0])?])?;
                inner.mul(&x[0])?.exp()
            },
            x,
        )
    };
    let x = leaf(&[0.3, -0.8]);
    gradcheck(nested, &[&x], GradCheck::default()).unwrap();
    gradgradcheck(nested, &[x], GradCheck::default()).unwrap();
}

#[test]
fn several_outputs_and_inputs_without_gradients_pass_through() {
    let (x, index) = (leaf(&[1.0, 2.0]), Tensor::new([1i64, 1]).unwrap());
    let [a, b] =
        checkpoint(|x| Ok([x[0].exp()?.index_select(0, &x[1])?, x[0].mul(&x[0])?]), &[&x, &index]).unwrap();
    a.add(&b).unwrap().sum().unwrap().backward().unwrap();
    let expected = [2.0, 2.0 * 2f64.exp() + 4.0];
    assert!(f64s(&x.grad().unwrap()).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn a_function_is_stopped_where_the_last_tensor_is_there() {
    let ends = Arc::new(AtomicUsize::new(0));
    let counted = ends.clone();
    let x = leaf(&[0.5, -1.0]);
    let y = checkpoint(
        move |x| {
            let y = x[0].exp()?.mul(&x[0])?.add(1.0)?;
            counted.fetch_add(1, Relaxed);
            Ok(y)
        },
        &[&x],
    )
    .unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(ends.load(Relaxed), 1, "the second time the product is as far as it gets");
    let wanted: Vec<f64> = [0.5f64, -1.0].iter().map(|x| x.exp() * (1.0 + x)).collect();
    assert_eq!(f64s(&x.grad().unwrap()), wanted);
}

#[test]
fn an_input_that_was_changed_meanwhile_is_noticed() {
    let x = leaf(&[1.0]);
    let input = x.mul(1.0).unwrap();
    let y = checkpoint(|x| x[0].exp()?.exp(), &[&input]).unwrap();
    input.add_(1.0).unwrap();
    let error = y.backward().unwrap_err();
    assert!(error.to_string().contains("was changed in place by aten::add_"), "{error}");
}

#[test]
fn a_function_that_does_something_else_the_second_time_is_an_error() {
    let runs = AtomicUsize::new(0);
    let x = leaf(&[1.0, 2.0]);
    let fickle = move |x: &[Tensor]| match runs.fetch_add(1, Relaxed) {
        0 => x[0].exp()?.exp(),
        _ => x[0].neg(),
    };
    let y = checkpoint(fickle, &[x]).unwrap();
    let error = y.sum().unwrap().backward().unwrap_err();
    assert!(error.to_string().contains("a checkpointed function did not do the same again"), "{error}");
}
