//! Clipped gradients against what torch makes of the same ones.

use cresset_nn::{
    Result, Tensor, TotalNorm, clip_grad_norm, clip_grad_norm_with, clip_grad_value, get_total_norm,
};

/// Gradients of 3, -4 and 12, and a parameter without.
fn parameters() -> Vec<Tensor> {
    let leaf = |count: usize| Tensor::zeros([count], ()).unwrap().with_grad().unwrap();
    let parameters = vec![leaf(2), leaf(1), leaf(1)];
    parameters[0].set_grad(Tensor::new([3.0f32, -4.0]).unwrap()).unwrap();
    parameters[1].set_grad(Tensor::new([12.0f32]).unwrap()).unwrap();
    parameters
}

fn gradients(parameters: &[Tensor]) -> Vec<f32> {
    parameters.iter().filter_map(Tensor::grad).flat_map(|grad| grad.to_vec::<f32>().unwrap()).collect()
}

fn close(got: &[f32], expected: &[f32]) -> bool {
    got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-4)
}

#[test]
fn gradients_are_scaled_by_any_norm_of_all_together() {
    for (norm_type, total, expected) in [
        (2.0, 13.0, [0.2308, -0.3077, 0.9231]),
        (1.0, 19.0, [0.1579, -0.2105, 0.6316]),
        (f64::INFINITY, 12.0, [0.25, -0.3333, 1.0]),
        (f64::NEG_INFINITY, 3.0, [1.0, -1.3333, 4.0]),
        (0.0, 2.0, [1.5, -2.0, 6.0]),
        (0.5, 51.7846, [0.0579, -0.0772, 0.2317]),
        (3.0, 12.2071, [0.2458, -0.3277, 0.9830]),
    ] {
        let parameters = parameters();
        let how = TotalNorm { norm_type, error_if_nonfinite: true };
        let norm = clip_grad_norm_with(&parameters, 1.0, how).unwrap().item().unwrap().as_f64();
        assert!((norm - total).abs() < 1e-4, "order {norm_type}: {norm}");
        assert!(close(&gradients(&parameters), &expected), "order {norm_type}: {:?}", gradients(&parameters));
        assert!(parameters[2].grad().is_none());
    }
}

#[test]
fn small_gradients_stay_as_they_are() {
    let parameters = parameters();
    assert_eq!(clip_grad_norm(&parameters, 100.0).unwrap().item().unwrap().as_f64(), 13.0);
    assert_eq!(gradients(&parameters), [3.0, -4.0, 12.0]);
    let nothing: Result<Tensor> = clip_grad_norm(&[], 1.0);
    assert_eq!(nothing.unwrap().item().unwrap().as_f64(), 0.0);
}

#[test]
fn a_norm_that_is_not_finite_is_an_error_on_demand_and_changes_nothing() {
    let parameters = parameters();
    parameters[1].set_grad(Tensor::new([f32::INFINITY]).unwrap()).unwrap();
    let how = TotalNorm { error_if_nonfinite: true, ..TotalNorm::default() };
    let error = clip_grad_norm_with(&parameters, 1.0, how).unwrap_err();
    assert_eq!(error.to_string(), "get_total_norm: the norm of order 2 is inf");
    assert_eq!(gradients(&parameters), [3.0, -4.0, f32::INFINITY]);
    assert!(get_total_norm(&[parameters[1].grad().unwrap()], TotalNorm::default()).is_ok());
    clip_grad_norm(&parameters, 1.0).unwrap();
    let after = gradients(&parameters);
    assert!(after[..2] == [0.0, 0.0] && after[2].is_nan());
}

#[test]
fn elements_are_limited_one_by_one() {
    let parameters = parameters();
    clip_grad_value(&parameters, 3.5).unwrap();
    assert_eq!(gradients(&parameters), [3.0, -3.5, 3.5]);
}
