//! `cresset infer`: what a trained model makes of new input.

use super::train::{Model, Task, saved_model};
use super::{Outcome, say};
use clap::Args;
use cresset::data::Csv;
use cresset::prelude::*;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Which model it is
    model: Model,
    /// Its weights: a .safetensors file, a checkpoint, or the directory that was given to `train --checkpoint`
    #[arg(long, value_name = "PATH")]
    weights: PathBuf,
    /// Where to compute: cpu, npu or npu:INDEX
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Digits to name: a CSV file with 64 pixels from 0 to 16 a line
    #[arg(long, value_name = "FILE", conflicts_with = "prompt")]
    digits: Option<PathBuf>,
    /// A text for gpt to go on from
    #[arg(long)]
    prompt: Option<String>,
    /// How many characters gpt writes
    #[arg(long, default_value_t = 300)]
    length: usize,
    /// How bold gpt is
    #[arg(long, default_value_t = 0.8)]
    temperature: f64,
    /// Where the random numbers start
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let device = device(&arguments.device)?;
    let task = Task::new(arguments.model)?;
    cresset::nn::load(&*task.model, saved_model(&arguments.weights)?)?;
    task.model.to(device)?;
    cresset::manual_seed(arguments.seed);
    if !(arguments.temperature > 0.0 && arguments.temperature.is_finite()) {
        return Err(
            format!("infer: --temperature is {}, expected a positive number", arguments.temperature).into()
        );
    }
    match (&arguments.digits, &arguments.prompt) {
        (Some(file), _) => {
            let table = Csv::default().read(file)?;
            let pixels = table.values();
            if pixels.shape()[1] < 64 {
                return Err(
                    format!("{}: {} numbers a line, expected 64", file.display(), pixels.shape()[1]).into()
                );
            }
            // A class after the pixels, as in the data that come along, is not looked at.
            let pixels = pixels.narrow(1, 0, 64)?.div(16.0)?.to(device)?;
            let named = task.classify(&pixels)?;
            named.iter().try_for_each(|(class, sure)| say(format_args!("{class}  {:.1} %", 100.0 * sure)))
        }
        (None, Some(prompt)) => say(task.write(prompt, arguments.length, arguments.temperature, device)?),
        (None, None) => Err("infer: expects --digits FILE, or for gpt a --prompt".into()),
    }
}
