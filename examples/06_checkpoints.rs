//! Training that stops and goes on, bit for bit: `cargo run --example 06_checkpoints`.

use cresset::checkpoint::{Checkpoints, TrainingState};
use cresset::prelude::*;
use cresset::tensor::ops::Reduction;

/// What a run needs from its start to its end.
struct Run {
    model: Sequential,
    optimizer: AdamW,
    step: u64,
}

impl Run {
    fn new() -> cresset::Result<Run> {
        let model = Sequential::new().push(Linear::new(8, 16)?).push(Tanh).push(Linear::new(16, 1)?);
        let optimizer = AdamW::new(model.parameters(), AdamWOptions { lr: 0.01, ..Default::default() })?;
        Ok(Run { model, optimizer, step: 0 })
    }

    /// Trains until `last`, on numbers drawn by chance.
    fn until(&mut self, last: u64) -> cresset::Result<f64> {
        let mut loss = f64::NAN;
        while self.step < last {
            let x = Tensor::randn([32, 8], ())?;
            self.optimizer.zero_grad();
            let error = self.model.call(&x)?.mse_loss(&x.sum_dims(&[1], true)?, Reduction::Mean)?;
            error.backward()?;
            self.optimizer.step()?;
            self.step += 1;
            loss = error.item()?.as_f64();
        }
        Ok(loss)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("cresset-06-{}", std::process::id()));
    let checkpoints = Checkpoints::new(&folder)?.keep(2);

    // One run goes through, and saves itself on the way.
    manual_seed(1);
    let mut straight = Run::new()?;
    for step in [10, 20, 30] {
        straight.until(step)?;
        checkpoints.save(&straight.model, &TrainingState::of(straight.step, &straight.optimizer)?)?;
    }
    let expected = straight.until(50)?;
    println!("kept: {:?}", checkpoints.all()?.iter().map(|kept| kept.step()).collect::<Vec<_>>());

    // Another, of other weights and after other random numbers, takes it up at step 30.
    manual_seed(99);
    let mut resumed = Run::new()?;
    let newest = checkpoints.newest()?.ok_or("nothing was saved")?;
    resumed.step = newest.restore(&resumed.model, &mut resumed.optimizer)?.step;
    println!("from step {}", resumed.step);
    let loss = resumed.until(50)?;
    println!("equal, bit for bit: {}", loss.to_bits() == expected.to_bits());

    // A file that was damaged since is noticed, and the one before is used.
    let weights = newest.model();
    let mut bytes = std::fs::read(&weights)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&weights, bytes)?;
    println!("newest that is whole: {:?}", checkpoints.newest()?.map(|whole| whole.step()));
    Ok(std::fs::remove_dir_all(folder)?)
}
