//! Training in mixed precision, held against torch 2.15: the same model, data, clipping and scaler.

use cresset_nn::{Forward, Linear, Module, Relu, Sequential, clip_grad_norm};
use cresset_optim::{AdamW, AdamWOptions, GradScaler, GradScalerOptions, Optimizer};
use cresset_tensor::{DType, Result, Tensor, autocast, no_grad};

fn wave(phase: f64, shape: &[usize]) -> Result<Tensor> {
    let count = shape.iter().product();
    let elements: Vec<f32> =
        (0..count).map(|i: usize| ((i as f64 * 0.7 + phase).sin() * 0.5) as f32).collect();
    Tensor::from_vec(elements, shape)
}

struct Ran {
    losses: Vec<f64>,
    scales: Vec<f64>,
    bias: Vec<f32>,
}

fn train(lower: DType) -> Result<Ran> {
    let model = Sequential::new().push(Linear::new(6, 8)?).push(Relu).push(Linear::new(8, 3)?);
    let parameters = model.parameters();
    for (number, parameter) in parameters.iter().enumerate() {
        let _guard = no_grad();
        parameter.copy_(&wave(0.1 + number as f64 / 10.0, parameter.shape())?)?;
    }
    let (x, classes) =
        (wave(0.9, &[16, 6])?.mul(8)?, Tensor::new((0..16).map(|i| i % 3).collect::<Vec<i64>>())?);
    let mut optimizer = AdamW::new(parameters.clone(), AdamWOptions { lr: 0.05, ..Default::default() })?;
    let options = GradScalerOptions { init_scale: 1048576.0, growth_interval: 3, ..Default::default() };
    let mut scaler = GradScaler::new(options)?;
    let (mut losses, mut scales) = (Vec::new(), Vec::new());
    for _ in 0..12 {
        optimizer.zero_grad();
        let loss = autocast(lower, || model.call(&x)?.cross_entropy(&classes))?;
        scaler.scale(&loss)?.backward()?;
        scaler.unscale(&optimizer)?;
        clip_grad_norm(&parameters, 1.0)?;
        scaler.step(&mut optimizer)?;
        scaler.update()?;
        losses.push(loss.item()?.as_f64());
        scales.push(scaler.get_scale());
    }
    Ok(Ran { losses, scales, bias: parameters[3].detach()?.to_vec()? })
}

/// The tolerance of torch's own tests for the lower precision.
fn check(got: &[f64], expected: &[f64], share: f64) {
    assert_eq!(got.len(), expected.len());
    for (step, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!(
            (got - expected).abs() <= 1e-5 + share * expected.abs(),
            "{step}: {got}, torch has {expected}"
        );
    }
}

#[test]
fn steps_with_gradients_beyond_f16_are_left_out_until_the_scale_fits() -> Result<()> {
    let ran = train(DType::F16)?;
    let scales = [
        524288.0, 262144.0, 131072.0, 65536.0, 32768.0, 32768.0, 32768.0, 65536.0, 65536.0, 65536.0,
        131072.0, 131072.0,
    ];
    assert_eq!(ran.scales, scales);
    let losses = [
        1.279174, 1.279174, 1.279174, 1.279174, 1.279174, 1.279174, 0.379233, 0.132947, 0.044008, 0.015045,
        0.005864, 0.002437,
    ];
    check(&ran.losses, &losses, 1e-3);
    let bias: Vec<f64> = ran.bias.iter().map(|&x| x.into()).collect();
    check(&bias, &[0.31371, 0.13855, 0.64418], 1e-3);
    Ok(())
}

#[test]
fn bf16_has_the_range_and_learns_from_the_first_step() -> Result<()> {
    let ran = train(DType::BF16)?;
    let scales: Vec<f64> = (0..12).map(|step: i32| 2f64.powi(20 + (step + 1) / 3)).collect();
    assert_eq!(ran.scales, scales);
    let losses = [
        1.280059, 0.379642, 0.132205, 0.044045, 0.015063, 0.005825, 0.002409, 0.001068, 0.000489, 0.000239,
        0.000124, 6.4e-05,
    ];
    check(&ran.losses, &losses, 1.6e-2);
    Ok(())
}
