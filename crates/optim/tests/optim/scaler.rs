//! Scaled losses, and averages.

use cresset_optim::average::{Average, Weighting};
use cresset_optim::*;
use cresset_tensor::DType;

fn parameter(value: f32) -> Tensor {
    Tensor::new([value]).unwrap().with_grad().unwrap()
}

#[test]
fn infinite_gradients_leave_the_step_out_and_halve_the_scale() {
    let x = parameter(1.0);
    let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { lr: 1.0, ..Default::default() }).unwrap();
    let options = GradScalerOptions { init_scale: 8.0, growth_interval: 2, ..Default::default() };
    let mut scaler = GradScaler::new(options).unwrap();
    x.set_grad(Tensor::new([f32::INFINITY]).unwrap()).unwrap();
    assert!(!scaler.step(&mut sgd).unwrap());
    scaler.update().unwrap();
    assert_eq!((scaler.get_scale(), x.to_vec::<f32>().unwrap()), (4.0, vec![1.0]));
    for expected in [4.0, 8.0, 8.0, 16.0] {
        x.set_grad(Tensor::new([0.0f32]).unwrap()).unwrap();
        assert!(scaler.step(&mut sgd).unwrap());
        scaler.update().unwrap();
        assert_eq!(scaler.get_scale(), expected);
    }
    let mut other = GradScaler::new(options).unwrap();
    other.load_state_dict(scaler.state_dict()).unwrap();
    assert_eq!(other.state_dict(), scaler.state_dict());
    assert_eq!((other.state_dict().scale, other.state_dict().growth_tracker), (16.0, 0));
}

#[test]
fn gradients_are_unscaled_once() {
    let x = parameter(1.0);
    let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { lr: 1.0, ..Default::default() }).unwrap();
    let mut scaler = GradScaler::new(GradScalerOptions::default()).unwrap();
    scaler.scale(&x.mul(3.0).unwrap().sum().unwrap()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [3.0 * 65536.0]);
    scaler.unscale(&sgd).unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [3.0]);
    assert!(scaler.unscale(&sgd).is_err());
    scaler.step(&mut sgd).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [-2.0]);
    let backoff = GradScalerOptions { backoff_factor: 1.0, ..Default::default() };
    let error = GradScaler::new(backoff).err().unwrap().to_string();
    assert_eq!(error, "GradScaler: backoff_factor is 1, expected above 0 and below 1");
}

#[test]
fn moving_averages_forget() {
    let x = parameter(0.0);
    let mut average = Average::new(std::slice::from_ref(&x), Weighting::Decay(0.5)).unwrap();
    for value in [8.0, 0.0, 4.0] {
        average.update(&[Tensor::new([value as f32]).unwrap()]).unwrap();
    }
    assert_eq!(average.parameters()[0].to_vec::<f32>().unwrap(), [4.0]);
    assert_eq!(average.count(), 3);
    average.copy_to(std::slice::from_ref(&x)).unwrap();
    assert_eq!(x.to_vec::<f32>().unwrap(), [4.0]);
    assert!(average.update(&[]).is_err());
    assert!(Average::new(&[x], Weighting::Decay(2.0)).is_err());
}

/// Scales as torch 2.15 has them, in single precision.
#[test]
fn optimizers_that_share_a_scaler_are_stepped_by_their_own_gradients() {
    let (x, y) = (parameter(1.0), parameter(1.0));
    let sgd = |x: &Tensor| Sgd::new(vec![x.clone()], SgdOptions { lr: 1.0, ..Default::default() }).unwrap();
    let (mut first, mut second) = (sgd(&x), sgd(&y));
    let options = GradScalerOptions {
        init_scale: 7.0,
        growth_factor: 1.1,
        backoff_factor: 0.3,
        growth_interval: 2,
        enabled: true,
    };
    let mut scaler = GradScaler::new(options).unwrap();
    scaler.scale(&x.sum().unwrap()).unwrap().backward().unwrap();
    scaler.scale(&y.mul(f64::INFINITY).unwrap().sum().unwrap()).unwrap().backward().unwrap();
    assert!(scaler.step(&mut first).unwrap());
    assert!(!scaler.step(&mut second).unwrap());
    assert_eq!((x.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap()), (vec![0.0], vec![1.0]));
    let twice = scaler.step(&mut first).unwrap_err().to_string();
    assert_eq!(twice, "GradScaler: the step was taken already, expected once between updates");
    let late = scaler.unscale(&first).unwrap_err().to_string();
    assert_eq!(late, "GradScaler: the step was taken already, expected gradients to be unscaled before");
    scaler.update().unwrap();
    assert_eq!(scaler.get_scale(), 2.0999999046325684);
    for expected in [2.0999999046325684, 2.309999942779541, 2.309999942779541, 2.5409998893737793] {
        x.set_grad(Tensor::new([0.5f32]).unwrap()).unwrap();
        assert!(scaler.step(&mut first).unwrap());
        scaler.update().unwrap();
        assert_eq!(scaler.get_scale(), expected);
    }
}

#[test]
fn gradients_that_are_not_numbers_leave_the_step_out_too() {
    let x = parameter(1.0);
    let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { lr: 1.0, ..Default::default() }).unwrap();
    let mut scaler = GradScaler::new(GradScalerOptions { init_scale: 8.0, ..Default::default() }).unwrap();
    x.set_grad(Tensor::new([f32::NAN]).unwrap()).unwrap();
    scaler.unscale(&sgd).unwrap();
    assert!(x.grad().unwrap().to_vec::<f32>().unwrap()[0].is_nan());
    assert!(!scaler.step(&mut sgd).unwrap());
    scaler.update().unwrap();
    assert_eq!((scaler.get_scale(), x.to_vec::<f32>().unwrap()), (4.0, vec![1.0]));
}

#[test]
fn a_scale_can_be_set_between_steps() {
    let x = parameter(1.0);
    let mut sgd = Sgd::new(vec![x.clone()], SgdOptions { lr: 0.5, ..Default::default() }).unwrap();
    let mut scaler = GradScaler::new(GradScalerOptions::default()).unwrap();
    scaler.scale(&x.sum().unwrap()).unwrap().backward().unwrap();
    scaler.step(&mut sgd).unwrap();
    scaler.update_to(8.0).unwrap();
    assert_eq!((scaler.get_scale(), scaler.state_dict().growth_tracker), (8.0, 0));
    sgd.zero_grad();
    scaler.scale(&x.sum().unwrap()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [8.0]);
    assert!(scaler.step(&mut sgd).unwrap(), "the step before is forgotten");
    let error = scaler.update_to(f64::NAN).unwrap_err().to_string();
    assert_eq!(error, "GradScaler: scale is NaN, expected above 0");
}

#[test]
fn a_scaler_that_saw_no_gradients_says_so() {
    let x = parameter(1.0);
    let mut sgd = Sgd::new(vec![x.clone()], SgdOptions::default()).unwrap();
    let mut scaler = GradScaler::new(GradScalerOptions::default()).unwrap();
    let nothing = scaler.step(&mut sgd).unwrap_err().to_string();
    assert_eq!(
        nothing,
        "GradScaler: no parameter of the optimizer has a gradient, expected a backward pass before"
    );
    let early = scaler.update().unwrap_err().to_string();
    assert_eq!(
        early,
        "GradScaler: no gradients were looked at, expected step() or unscale() before update()"
    );
    let half = Tensor::ones([1], DType::F16).unwrap().with_grad().unwrap();
    half.set_grad(Tensor::ones([1], DType::F16).unwrap()).unwrap();
    let narrow = Sgd::new(vec![half], SgdOptions::default()).unwrap();
    let refused = scaler.unscale(&narrow).unwrap_err().to_string();
    assert_eq!(refused, "GradScaler: a gradient is f16, expected parameters in single precision");
    let mut off = GradScaler::new(GradScalerOptions { enabled: false, ..Default::default() }).unwrap();
    off.update().unwrap();
    assert_eq!(off.get_scale(), 1.0);
}

#[test]
fn a_saved_scaler_goes_on_with_its_numbers() {
    let options = GradScalerOptions { init_scale: 8.0, growth_factor: 3.0, ..Default::default() };
    let saved = GradScaler::new(options).unwrap().state_dict();
    let mut other = GradScaler::new(GradScalerOptions::default()).unwrap();
    other.load_state_dict(saved).unwrap();
    assert_eq!((other.state_dict(), other.options().growth_factor), (saved, 3.0));
    let broken = GradScalerState { growth_factor: 0.5, ..saved };
    let error = other.load_state_dict(broken).unwrap_err().to_string();
    assert_eq!(error, "GradScaler: growth_factor is 0.5, expected above 1");
    assert_eq!(other.state_dict(), saved);
}
