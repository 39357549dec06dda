//! Scaled losses, averages, and schedules that are saved.

use cresset_optim::average::{Average, Weighting};
use cresset_optim::schedule::*;
use cresset_optim::*;

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
    scaler.update();
    assert_eq!((scaler.get_scale(), x.to_vec::<f32>().unwrap()), (4.0, vec![1.0]));
    for expected in [4.0, 8.0, 8.0, 16.0] {
        x.set_grad(Tensor::new([0.0f32]).unwrap()).unwrap();
        assert!(scaler.step(&mut sgd).unwrap());
        scaler.update();
        assert_eq!(scaler.get_scale(), expected);
    }
    let mut other = GradScaler::new(options).unwrap();
    other.load_state_dict(scaler.state_dict()).unwrap();
    assert_eq!(other.state_dict(), GradScalerState { scale: 16.0, growth_tracker: 0 });
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

#[test]
fn a_saved_schedule_goes_on_where_it_was() {
    let make = || {
        Sgd::new(vec![parameter(1.0)], SgdOptions { lr: 0.1, momentum: 0.9, ..Default::default() }).unwrap()
    };
    let start = |sgd: &mut Sgd| {
        let warm = Linear { start_factor: 0.1, end_factor: 1.0, total_iters: 5 }.start(sgd).unwrap();
        let fall = CosineAnnealing { t_max: 20, eta_min: 0.01 }.start(sgd).unwrap();
        Sequential::new(vec![Box::new(warm), Box::new(fall)], vec![5], sgd).unwrap()
    };
    let (mut one, mut two) = (make(), make());
    let mut first = start(&mut one);
    for _ in 0..7 {
        first.step(&mut one).unwrap();
    }
    let mut second = start(&mut two);
    two.load_state_dict(&one.state_dict().unwrap()).unwrap();
    second.load_state_dict(&first.state_dict()).unwrap();
    for _ in 0..30 {
        first.step(&mut one).unwrap();
        second.step(&mut two).unwrap();
        assert_eq!(one.lrs(), two.lrs());
    }
    assert_eq!((first.epoch(), first.lrs()), (37, one.lrs()));
}

#[test]
fn schedules_that_make_no_sense_are_refused() {
    let mut sgd = Sgd::new(vec![parameter(1.0)], SgdOptions::default()).unwrap();
    let error = StepEvery { step_size: 0, gamma: 0.1 }.start(&mut sgd).err().unwrap().to_string();
    assert_eq!(error, "StepLR: step_size is 0, expected at least 1");
    let rule = OneCycle { total_steps: 2, max_lr: vec![0.1], ..Default::default() };
    let mut scheduler = rule.clone().start(&mut sgd).unwrap();
    scheduler.step(&mut sgd).unwrap();
    scheduler.step(&mut sgd).unwrap();
    let error = scheduler.step(&mut sgd).unwrap_err().to_string();
    assert_eq!(error, "OneCycleLR: step 3 of a schedule of 2, expected no more");
    let mut rprop = Rprop::new(vec![parameter(1.0)], RpropOptions::default()).unwrap();
    let error = rule.start(&mut rprop).err().unwrap().to_string();
    assert!(error.contains("Rprop has no momentum to be cycled"), "{error}");
    assert!(Sequential::new(vec![], vec![], &mut sgd).is_err());
}
