//! A model that learns to read digits: `cargo run --release --example 04_training`.

use cresset::Result;
use cresset::data::{DataLoader, TensorDataset, digits};
use cresset::nn::clip_grad_norm;
use cresset::optim::schedule::{CosineAnnealing, Schedule as _, Scheduler as _};
use cresset::prelude::*;
use cresset::tensor::autograd::without_grad;

const EPOCHS: u64 = 8;

/// The share of samples that are put into the right class.
fn accuracy(model: &Sequential, x: &Tensor, y: &Tensor) -> Result<f64> {
    model.eval();
    let right = without_grad(|| model.call(x)?.argmax(1, false)?.eq(y)?.to_dtype(DType::F64)?.mean())?;
    model.train();
    Ok(right.item()?.as_f64())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    manual_seed(0);
    // 1 797 digits come along; every fifth is kept for judging.
    let all = digits()?;
    let (judged, trained): (Vec<i64>, Vec<i64>) = (0..all.len() as i64).partition(|i| i % 5 == 0);
    let judged = all.select(&Tensor::new(judged)?)?;
    let trained = all.select(&Tensor::new(trained)?)?;

    let model = Sequential::new().push(Linear::new(64, 64)?).push(Relu).push(Linear::new(64, 10)?);
    let mut optimizer = AdamW::new(model.parameters(), AdamWOptions { lr: 0.01, ..Default::default() })?;
    let loader = DataLoader::builder(TensorDataset::new([trained.features, trained.classes])?)
        .batch_size(32)
        .shuffle(0)
        .build()?;
    let steps = EPOCHS as usize * loader.len();
    let mut rate = CosineAnnealing { t_max: steps, eta_min: 0.0 }.start(&mut optimizer)?;

    for epoch in 0..EPOCHS {
        let mut sum = 0.0;
        for batch in loader.epoch(epoch) {
            let [x, y] = batch?;
            optimizer.zero_grad();
            let loss = model.call(&x)?.cross_entropy(&y)?;
            loss.backward()?;
            clip_grad_norm(&model.parameters(), 1.0)?;
            optimizer.step()?;
            rate.step(&mut optimizer)?;
            sum += loss.item()?.as_f64();
        }
        println!("epoch {epoch}: loss {:.3}", sum / loader.len() as f64);
    }
    let share = accuracy(&model, &judged.features, &judged.classes)?;
    println!("{:.1} % of {} digits that it never saw", 100.0 * share, judged.len());
    Ok(())
}
