//! Modules as a user sees them.

use cresset_nn::{Linear, Module, Relu, Sequential, Tensor};

fn model() -> Sequential {
    Sequential::new().push(Linear::new(3, 4).unwrap()).push(Relu).push(Linear::without_bias(4, 2).unwrap())
}

#[test]
fn parameters_are_named_by_where_they_are() {
    let named = model().named_parameters();
    let names: Vec<_> = named.iter().map(|(name, tensor)| (name.as_str(), tensor.shape().to_vec())).collect();
    assert_eq!(names, [("0.weight", vec![4, 3]), ("0.bias", vec![4]), ("2.weight", vec![2, 4])]);
    assert!(named.iter().all(|(_, tensor)| tensor.requires_grad() && tensor.is_leaf()));
}

#[test]
fn a_linear_layer_is_what_its_parameters_say() {
    let layer = Linear::new(2, 1).unwrap();
    let state = vec![
        ("weight".to_owned(), Tensor::new([[2.0f32, 3.0]]).unwrap()),
        ("bias".to_owned(), Tensor::new([1.0f32]).unwrap()),
    ];
    layer.load_state(&state).unwrap();
    let out = layer.forward(&Tensor::new([[10.0f32, 100.0]]).unwrap()).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [321.0]);
}

#[test]
fn a_new_layer_starts_within_torch_s_bounds() {
    let weight = Linear::new(16, 64).unwrap().weight().to_vec::<f32>().unwrap();
    assert!(weight.iter().all(|w| w.abs() <= 0.25));
    assert!(weight.iter().any(|w| *w > 0.2) && weight.iter().any(|w| *w < -0.2));
}

#[test]
fn a_state_that_does_not_fit_lists_every_fault_and_changes_nothing() {
    let model = model();
    let before = model.parameters()[0].to_vec::<f32>().unwrap();
    let state = vec![
        ("0.weight".to_owned(), Tensor::zeros([4, 3], ()).unwrap()),
        ("2.weight".to_owned(), Tensor::zeros([2, 5], ()).unwrap()),
        ("3.weight".to_owned(), Tensor::zeros([1], ()).unwrap()),
    ];
    let error = model.load_state(&state).unwrap_err().to_string();
    assert_eq!(
        error,
        "load_state: 0.bias is missing; 2.weight has shape [2, 5], expected [2, 4]; 3.weight is unknown"
    );
    assert_eq!(model.parameters()[0].to_vec::<f32>().unwrap(), before);
}

#[test]
fn sizes_of_zero_are_refused() {
    let error = Linear::new(0, 3).err().unwrap();
    assert_eq!(error.to_string(), "Linear: expects at least one input and one output, not 0 and 3");
}

#[test]
fn zero_grad_forgets_gradients() {
    let model = model();
    model.forward(&Tensor::ones([2, 3], ()).unwrap()).unwrap().sum().unwrap().backward().unwrap();
    assert!(model.parameters().iter().all(|parameter| parameter.grad().is_some()));
    model.zero_grad();
    assert!(model.parameters().iter().all(|parameter| parameter.grad().is_none()));
}
