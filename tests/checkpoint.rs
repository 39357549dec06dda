//! Training that was stopped, written to files and taken up again.

use cresset::nn::{self, BatchNorm1d};
use cresset::optim::schedule::{
    CosineAnnealing, Linear as Warm, Schedule, ScheduleState, Scheduler, Sequential as After,
};
use cresset::optim::{Optimizer, StateDict};
use cresset::prelude::*;
use std::path::PathBuf;

struct Run {
    model: Sequential,
    optimizer: AdamW,
    scheduler: After,
}

impl Run {
    fn new() -> cresset::Result<Run> {
        let model =
            Sequential::new().push(Linear::new(4, 8)?).push(BatchNorm1d::new(8)?).push(Linear::new(8, 3)?);
        let mut optimizer = AdamW::new(model.parameters(), AdamWOptions { lr: 0.05, ..Default::default() })?;
        let warm = Warm { start_factor: 0.1, end_factor: 1.0, total_iters: 5 }.start(&mut optimizer)?;
        let fall = CosineAnnealing { t_max: 100, eta_min: 0.001 }.start(&mut optimizer)?;
        let scheduler = After::new(vec![Box::new(warm), Box::new(fall)], vec![5], &mut optimizer)?;
        Ok(Run { model, optimizer, scheduler })
    }

    fn step(&mut self, step: usize) -> cresset::Result<f64> {
        let numbers = (0..24).map(|i| ((step * 24 + i) as f32).sin()).collect::<Vec<f32>>();
        let (x, y) = (Tensor::from_vec(numbers, [6, 4])?, Tensor::new([0i64, 1, 2, 0, 1, 2])?);
        self.optimizer.zero_grad();
        let loss = self.model.call(&x)?.cross_entropy(&y)?;
        loss.backward()?;
        self.optimizer.step()?;
        self.scheduler.step(&mut self.optimizer)?;
        Ok(loss.item()?.as_f64())
    }
}

#[test]
fn a_run_goes_on_from_its_files_bit_for_bit() -> cresset::Result<()> {
    let file = |name: &str| {
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("checkpoint-{name}.safetensors"))
    };
    let mut first = Run::new()?;
    for step in 0..8 {
        first.step(step)?;
    }
    nn::save(&first.model, file("model"))?;
    nn::save_state(&first.optimizer.state_dict()?.to_tensors()?, file("optimizer"))?;
    nn::save_state(&first.scheduler.state_dict().to_tensors()?, file("scheduler"))?;

    let mut second = Run::new()?;
    nn::load(&second.model, file("model"))?;
    second.optimizer.load_state_dict(&StateDict::from_tensors(nn::load_state(file("optimizer"))?)?)?;
    second.scheduler.load_state_dict(&ScheduleState::from_tensors(nn::load_state(file("scheduler"))?)?)?;
    assert_eq!(second.scheduler.state_dict(), first.scheduler.state_dict());
    for step in 8..108 {
        assert_eq!(first.step(step)?.to_bits(), second.step(step)?.to_bits(), "the loss of step {step}");
    }
    let bits = |run: &Run| -> Vec<u32> {
        let all = run.model.state_dict().into_iter().filter(|(_, tensor)| tensor.dtype() == DType::F32);
        all.flat_map(|(_, tensor)| tensor.detach().unwrap().to_vec::<f32>().unwrap())
            .map(f32::to_bits)
            .collect()
    };
    assert_eq!(bits(&first), bits(&second));
    Ok(())
}
