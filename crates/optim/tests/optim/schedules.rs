//! Learning rates over time: rules that make no sense, and those that were saved and taken up again.

use cresset_optim::schedule::*;
use cresset_optim::*;

fn sgd() -> Sgd {
    let weight = Tensor::ones([1], ()).unwrap().with_grad().unwrap();
    Sgd::new(vec![weight], SgdOptions { lr: 0.1, momentum: 0.9, ..Default::default() }).unwrap()
}

type Start = fn(&mut Sgd) -> Result<Box<dyn Scheduler>>;

fn started(rule: impl Schedule + 'static, sgd: &mut Sgd) -> Result<Box<dyn Scheduler>> {
    Ok(Box::new(rule.start(sgd)?))
}

/// Every scheduler, by torch's name.
const ALL: &[(&str, Start)] = &[
    ("LambdaLR", |sgd| started(Lambda::new(|epoch| 0.95f64.powi(epoch as i32)), sgd)),
    ("MultiplicativeLR", |sgd| started(Multiplicative::new(|_| 0.95), sgd)),
    ("StepLR", |sgd| started(StepEvery { step_size: 3, gamma: 0.5 }, sgd)),
    ("MultiStepLR", |sgd| started(MultiStep { milestones: vec![2, 8, 20], gamma: 0.5 }, sgd)),
    ("ConstantLR", |sgd| started(Constant { factor: 0.25, total_iters: 9 }, sgd)),
    ("LinearLR", |sgd| started(Linear { start_factor: 0.1, end_factor: 0.9, total_iters: 9 }, sgd)),
    ("ExponentialLR", |sgd| started(Exponential { gamma: 0.9 }, sgd)),
    ("PolynomialLR", |sgd| started(Polynomial { total_iters: 20, power: 2.0 }, sgd)),
    ("CosineAnnealingLR", |sgd| started(CosineAnnealing { t_max: 9, eta_min: 0.01 }, sgd)),
    ("CosineAnnealingWarmRestarts", |sgd| {
        started(CosineAnnealingWarmRestarts { t_0: 3, t_mult: 2, eta_min: 0.01 }, sgd)
    }),
    ("CyclicLR", |sgd| {
        let scale = Some(CyclicScale::OfCycle(|cycle| 1.0 / cycle));
        started(Cyclic { step_size_up: 4, scale, ..Default::default() }, sgd)
    }),
    ("OneCycleLR", |sgd| started(OneCycle { total_steps: 40, ..Default::default() }, sgd)),
    ("SWALR", |sgd| started(Swa { swa_lr: vec![0.01], anneal_epochs: 9, anneal_strategy: Anneal::Cos }, sgd)),
    ("SequentialLR", |sgd| {
        let warm = started(Linear { start_factor: 0.1, end_factor: 1.0, total_iters: 5 }, sgd)?;
        let fall = started(CosineAnnealing { t_max: 20, eta_min: 0.01 }, sgd)?;
        Ok(Box::new(Sequential::new(vec![warm, fall], vec![5], sgd)?))
    }),
    ("ChainedScheduler", |sgd| {
        let warm = started(Constant { factor: 0.1, total_iters: 4 }, sgd)?;
        let fall = started(Exponential { gamma: 0.9 }, sgd)?;
        Ok(Box::new(Chained::new(vec![warm, fall], sgd)?))
    }),
];

#[test]
fn every_scheduler_goes_on_where_it_was_saved() {
    for (name, start) in ALL {
        let (mut one, mut two) = (sgd(), sgd());
        let mut first = start(&mut one).unwrap();
        (0..7).for_each(|_| first.step(&mut one).unwrap());
        let mut second = start(&mut two).unwrap();
        two.load_state_dict(&one.state_dict().unwrap()).unwrap();
        second.load_state_dict(&first.state_dict()).unwrap();
        for step in 7..37 {
            first.step(&mut one).unwrap();
            second.step(&mut two).unwrap();
            let of = |sgd: &Sgd| (sgd.lr().to_bits(), sgd.option(0, "momentum"));
            assert_eq!(of(&one), of(&two), "{name} at step {step}");
        }
        assert_eq!((first.epoch(), first.lrs()), (37, second.lrs()), "{name}");
    }
}

#[test]
fn a_plateau_goes_on_where_it_was_saved() {
    let (mut one, mut two) = (sgd(), sgd());
    let make = || {
        let mut plateau = ReduceOnPlateau::new(0.5, 2);
        plateau.cooldown = 2;
        plateau
    };
    let (mut first, mut second) = (make(), make());
    for step in 0..40 {
        if step == 17 {
            two.load_state_dict(&one.state_dict().unwrap()).unwrap();
            second.load_state_dict(&first.state_dict()).unwrap();
        }
        let measure = if step < 5 { 1.0 / f64::from(step + 1) } else { 1.0 };
        first.step(&mut one, measure).unwrap();
        if step >= 17 {
            second.step(&mut two, measure).unwrap();
            assert_eq!(one.lr().to_bits(), two.lr().to_bits(), "step {step}");
        }
    }
    assert!(one.lr() < 0.01);
}

#[test]
fn a_height_of_one_s_own_takes_the_place_of_the_mode() {
    let lrs = |rule: Cyclic| {
        let mut sgd = sgd();
        let mut scheduler = rule.start(&mut sgd).unwrap();
        let step = |_| {
            scheduler.step(&mut sgd).unwrap();
            sgd.lr()
        };
        (0..20).map(step).collect::<Vec<f64>>()
    };
    let base = Cyclic { step_size_up: 3, gamma: 0.9, ..Default::default() };
    let halved = Some(CyclicScale::OfCycle(|cycle| 1.0 / 2f64.powf(cycle - 1.0)));
    let by_mode = lrs(Cyclic { mode: CyclicMode::Triangular2, ..base.clone() });
    assert_eq!(lrs(Cyclic { scale: halved, ..base.clone() }), by_mode);
    let fading = Some(CyclicScale::OfStep(|step| 0.9f64.powf(step)));
    let by_mode = lrs(Cyclic { mode: CyclicMode::ExpRange, ..base.clone() });
    assert_eq!(lrs(Cyclic { scale: fading, ..base }), by_mode);
}

#[test]
fn rules_that_make_no_sense_are_refused_by_name_and_range() {
    let told = |result: Result<Box<dyn Scheduler>>| result.err().expect("an error").to_string();
    let s = &mut sgd();
    let no_lambdas = Lambda { functions: Vec::new() };
    let cosine = |t_max, eta_min| CosineAnnealing { t_max, eta_min };
    let restarts = |t_0, t_mult| CosineAnnealingWarmRestarts { t_0, t_mult, eta_min: 0.0 };
    let swa = |swa_lr| Swa { swa_lr, anneal_epochs: 1, anneal_strategy: Anneal::Cos };
    let linear = |start_factor, end_factor, total_iters| Linear { start_factor, end_factor, total_iters };
    let one = || OneCycle { total_steps: 9, ..Default::default() };
    let cyclic = || Cyclic { step_size_up: 4, ..Default::default() };
    let all = [
        (told(started(no_lambdas, s)), "LambdaLR: there are 0 functions, expected 1 or 1"),
        (
            told(started(Multiplicative { functions: Vec::new() }, s)),
            "MultiplicativeLR: there are 0 functions, expected 1 or 1",
        ),
        (
            told(started(StepEvery { step_size: 0, gamma: 0.1 }, s)),
            "StepLR: step_size is 0, expected at least 1",
        ),
        (
            told(started(StepEvery { step_size: 1, gamma: f64::NAN }, s)),
            "StepLR: gamma is NaN, expected a finite number",
        ),
        (
            told(started(MultiStep { milestones: vec![1], gamma: f64::INFINITY }, s)),
            "MultiStepLR: gamma is inf, expected a finite number",
        ),
        (
            told(started(Constant { factor: 1.5, total_iters: 5 }, s)),
            "ConstantLR: factor is 1.5, expected from 0 to 1",
        ),
        (
            told(started(linear(0.0, 1.0, 5), s)),
            "LinearLR: start_factor is 0, expected above 0 and at most 1",
        ),
        (told(started(linear(0.5, -1.0, 5), s)), "LinearLR: end_factor is -1, expected from 0 to 1"),
        (told(started(linear(0.5, 1.0, 0), s)), "LinearLR: total_iters is 0, expected at least 1"),
        (
            told(started(Exponential { gamma: f64::NAN }, s)),
            "ExponentialLR: gamma is NaN, expected a finite number",
        ),
        (
            told(started(Polynomial { total_iters: 0, power: 1.0 }, s)),
            "PolynomialLR: total_iters is 0, expected at least 1",
        ),
        (
            told(started(Polynomial { total_iters: 1, power: f64::NAN }, s)),
            "PolynomialLR: power is NaN, expected a finite number",
        ),
        (told(started(cosine(0, 0.0), s)), "CosineAnnealingLR: t_max is 0, expected at least 1"),
        (
            told(started(cosine(1, f64::NAN), s)),
            "CosineAnnealingLR: eta_min is NaN, expected a finite number",
        ),
        (told(started(restarts(0, 1), s)), "CosineAnnealingWarmRestarts: t_0 is 0, expected at least 1"),
        (told(started(restarts(1, 0), s)), "CosineAnnealingWarmRestarts: t_mult is 0, expected at least 1"),
        (told(started(swa(vec![0.1, 0.2]), s)), "SWALR: there are 2 of swa_lr, expected 1 or 1"),
        (told(started(swa(vec![f64::NAN]), s)), "SWALR: swa_lr is NaN, expected a finite number"),
        (
            told(started(Cyclic { step_size_up: 0, ..cyclic() }, s)),
            "CyclicLR: step_size_up is 0, expected at least 1",
        ),
        (
            told(started(Cyclic { max_lr: Vec::new(), ..cyclic() }, s)),
            "CyclicLR: there are 0 of max_lr, expected 1 or 1",
        ),
        (
            told(started(OneCycle { total_steps: 0, ..one() }, s)),
            "OneCycleLR: total_steps is 0, expected at least 1",
        ),
        (
            told(started(OneCycle { pct_start: 1.5, ..one() }, s)),
            "OneCycleLR: pct_start is 1.5, expected from 0 to 1",
        ),
        (
            told(started(OneCycle { final_div_factor: 0.0, ..one() }, s)),
            "OneCycleLR: final_div_factor is 0, expected a finite number above 0",
        ),
    ];
    for (told, expected) in all {
        assert_eq!(told, expected);
    }
    let error = ReduceOnPlateau::new(1.0, 2).step(s, 1.0).unwrap_err().to_string();
    assert_eq!(error, "ReduceLROnPlateau: factor is 1, expected below 1");
    let error = Sequential::new(vec![], vec![], s).err().unwrap().to_string();
    assert_eq!(error, "SequentialLR: there are no parts, expected at least one");
    let part = started(Exponential { gamma: 0.9 }, s).unwrap();
    let error = Sequential::new(vec![part], vec![3], s).err().unwrap().to_string();
    assert_eq!(error, "SequentialLR: there are 1 milestones, expected 0");
    let error = Chained::new(vec![], s).err().unwrap().to_string();
    assert_eq!(error, "ChainedScheduler: there are no parts, expected at least one");
}

#[test]
fn a_cycle_ends_with_its_last_step_and_needs_a_momentum() {
    let mut sgd = sgd();
    let rule = OneCycle { total_steps: 2, max_lr: vec![0.1], ..Default::default() };
    let mut scheduler = rule.clone().start(&mut sgd).unwrap();
    scheduler.step(&mut sgd).unwrap();
    scheduler.step(&mut sgd).unwrap();
    let error = scheduler.step(&mut sgd).unwrap_err().to_string();
    assert_eq!(error, "OneCycleLR: step 3 of a schedule of 2, expected no more");
    let weight = Tensor::ones([1], ()).unwrap().with_grad().unwrap();
    let mut rprop = Rprop::new(vec![weight], RpropOptions::default()).unwrap();
    let error = rule.start(&mut rprop).err().unwrap().to_string();
    assert!(error.contains("Rprop has no momentum to be cycled"), "{error}");
}

#[test]
fn schedules_that_never_end_are_no_trouble() {
    let mut sgd = sgd();
    let mut cosine = CosineAnnealing { t_max: usize::MAX, eta_min: 0.0 }.start(&mut sgd).unwrap();
    let rule = CosineAnnealingWarmRestarts { t_0: 1, t_mult: usize::MAX, eta_min: 0.0 };
    let mut restarts = rule.start(&mut sgd).unwrap();
    for _ in 0..5 {
        cosine.step(&mut sgd).unwrap();
        restarts.step(&mut sgd).unwrap();
    }
    assert_eq!(sgd.lr(), 0.1);
}

#[test]
fn averages_are_taken_by_any_rule() {
    use cresset_optim::average::{Average, Weighting};
    let weight = Tensor::new([4.0f32]).unwrap();
    let batches = Tensor::new([7i64]).unwrap();
    let all = [weight.clone(), batches.clone()];
    let mut average = Average::new(&all, Weighting::Equal).unwrap();
    for value in [4.0, 8.0, 16.0] {
        weight.fill_(value).unwrap();
        batches.add_(1).unwrap();
        // A quarter of the way, whatever the count.
        average.update_by(&all, |average, value, _| average.lerp(value, 0.25)).unwrap();
    }
    assert_eq!(average.parameters()[0].to_vec::<f32>().unwrap(), [4.0 + 1.0 + 2.75]);
    assert_eq!(average.parameters()[1].to_vec::<i64>().unwrap(), [10], "counts have no average");
    let other = [Tensor::zeros([2], ()).unwrap(), batches];
    let error = average.copy_to(&other).unwrap_err().to_string();
    assert_eq!(error, "Average: a parameter has shape [2], expected [1]");
    assert_eq!(average.count(), 3);
}
