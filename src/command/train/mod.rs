//! `cresset train`: trains a model, says how good it is, and shows where the time went.
//!
//! - `task` is what is trained, on what, and how it is judged;
//! - `fit` is the loop, with checkpoints and a way out by Ctrl-C;
//! - `curve` is the loss over time, as lines and as a picture;
//! - `profile` is a window of steps under the profiler;
//! - `launch` starts several processes that train together, and `team` is what each of them is part of.

mod curve;
mod fit;
mod launch;
mod profile;
mod task;
mod team;

pub(super) use task::{Model, Task, saved_model};

use super::{Outcome, say};
use clap::Args;
use cresset::data::Dataset as _;
use cresset::distributed::Rendezvous;
use cresset::optim::Options as _;
use cresset::prelude::*;
use fit::{End, Fit};
use std::path::{Path, PathBuf};
use std::time::Instant;
use team::Team;

#[derive(Args)]
pub(crate) struct Arguments {
    /// What to train
    model: Model,
    /// Where to train: cpu, npu or npu:INDEX
    #[arg(long, default_value = "cpu")]
    device: String,
    /// How often to go through the data [default: 20 for mlp and rnn, 15 for cnn, 2 for gpt]
    #[arg(long, allow_negative_numbers = true)]
    epochs: Option<usize>,
    /// Samples per step [default: 64, 16 for gpt]
    #[arg(long, allow_negative_numbers = true)]
    batch: Option<usize>,
    /// The learning rate at the start; it falls to 0 along a cosine
    #[arg(long, default_value_t = 2e-3, allow_negative_numbers = true)]
    lr: f64,
    /// What products of matrices are computed in: bf16 is mixed precision
    #[arg(long, default_value = "f32")]
    dtype: Precision,
    /// Where the random numbers start
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
    /// Profile a few steps and write tables, traces and pictures to this directory
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,
    /// Save the training state to this directory after each epoch, and when Ctrl-C is pressed
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Save the training state also after so many steps
    #[arg(long, value_name = "STEPS", requires = "checkpoint")]
    save_every: Option<u64>,
    /// Go on from the newest checkpoint
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// Write the loss of each step to this file as JSON lines, and as a picture beside it (.svg)
    #[arg(long, value_name = "FILE")]
    curve: Option<PathBuf>,
    /// Train on so many devices, each with a process of its own and its part of every batch
    #[arg(long, value_name = "RANKS", value_parser = clap::value_parser!(u32).range(1..=64))]
    nproc: Option<u32>,
    /// Exchange gradients in pieces of so many KiB while others are still computed
    #[arg(long, value_name = "KIB", requires = "nproc", value_parser = clap::value_parser!(u32).range(1..))]
    bucket: Option<u32>,
    /// Give up when another rank does not come within so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, requires = "nproc")]
    timeout: u64,
    /// Stop at the first operator that gives NaN or infinity, forward or backward, and say where it was called; slow
    #[arg(long)]
    detect_anomaly: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Precision {
    F32,
    Bf16,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let rendezvous = Rendezvous::from_env()?;
    match (&rendezvous, arguments.nproc) {
        (None, Some(ranks)) => launch::run(arguments, ranks),
        _ => train(arguments, rendezvous.as_ref()),
    }
}

/// Trains, alone or as one of several ranks.
fn train(arguments: &Arguments, rendezvous: Option<&Rendezvous>) -> Outcome {
    let device = match rendezvous {
        Some(rendezvous) => team::device_of(rendezvous, &arguments.device)?,
        None => device(&arguments.device)?,
    };
    cresset::manual_seed(arguments.seed);
    let task = Task::new(arguments.model)?;
    let plan = Plan::new(arguments, &task, device)?;
    let is_first = rendezvous.is_none_or(|rendezvous| rendezvous.rank == 0);
    if is_first {
        prepare(arguments)?;
    }
    task.model.to(device)?;
    let team = rendezvous
        .map(|rendezvous| Team::join(rendezvous, &task.model, device, arguments.bucket))
        .transpose()?;
    let ranks = team.as_ref().map_or(String::new(), |team| format!("{} ranks, the first on ", team.size()));
    say(format_args!("training {} on {}, on {ranks}{}", task.about(), task.samples(), describe(device)))?;
    let _anomaly = arguments.detect_anomaly.then(cresset::tensor::autograd::detect_anomaly_in_results);
    let started = Instant::now();
    let mut fit = Fit::new(&task, plan, device, team)?;
    let end = fit.run()?;
    let (steps, seconds) = (fit.steps_taken(), started.elapsed().as_secs_f64());
    if !is_first {
        return Ok(());
    }
    if let Some(file) = &arguments.curve {
        curve::write(file, &fit.curve, task.about())?;
    }
    match end {
        End::Interrupted(Some(checkpoint)) => {
            let model = arguments.model;
            return say(format_args!(
                "stopped after step {}; go on with: cresset train {model} --resume --checkpoint {}",
                fit.step,
                checkpoint.display()
            ));
        }
        End::Interrupted(None) => {
            return say(format_args!(
                "stopped after step {}; nothing was saved, there is no --checkpoint",
                fit.step
            ));
        }
        End::Finished => {}
    }
    say(format_args!("{}, {steps} steps in {seconds:.1} s", task.judge(device)?))?;
    if let Some(sample) = task.sample(device)? {
        say(format_args!("\n{sample}\n"))?;
    }
    Ok(())
}

/// All numbers of a run, checked.
pub(super) struct Plan<'a> {
    arguments: &'a Arguments,
    epochs: usize,
    batch: usize,
}

impl<'a> Plan<'a> {
    /// Refuses what cannot be trained or profiled, before anything is written.
    fn new(arguments: &'a Arguments, task: &Task, device: Device) -> Outcome<Plan<'a>> {
        let epochs = arguments.epochs.unwrap_or(arguments.model.epochs());
        let batch = arguments.batch.unwrap_or(arguments.model.batch());
        if epochs == 0 || batch == 0 {
            return Err("train: expects at least one epoch and one sample per step".into());
        }
        if device == Device::META {
            return Err("train: meta tensors have no elements to learn from; use cpu or npu".into());
        }
        if batch > task.training.len() {
            return Err(format!(
                "train: --batch is {batch}, expected at most the {} there are",
                task.samples()
            )
            .into());
        }
        let plan = Plan { arguments, epochs, batch };
        // The optimizer knows which numbers it can work with.
        plan.adam().check()?;
        let (steps, least) = (epochs * task.training.len().div_ceil(batch), profile::LEFT_OUT);
        if arguments.profile.is_some() && steps <= least {
            return Err(format!(
                "train: --profile leaves out {least} steps, and there are {steps}; use more epochs or smaller batches"
            )
            .into());
        }
        Ok(plan)
    }

    fn adam(&self) -> AdamWOptions {
        AdamWOptions { lr: self.arguments.lr, ..AdamWOptions::default() }
    }

    /// What must be alike for a run to go on where another stopped.
    fn identity(&self) -> Vec<(String, String)> {
        let Plan { arguments, epochs, batch } = self;
        let entry = |name: &str, value: String| (name.to_owned(), value);
        vec![
            entry("model", arguments.model.to_string()),
            entry("epochs", epochs.to_string()),
            entry("batch", batch.to_string()),
            entry("lr", format!("{:?}", arguments.lr)),
            entry("dtype", format!("{:?}", arguments.dtype).to_lowercase()),
            entry("seed", arguments.seed.to_string()),
        ]
    }
}

/// Makes sure that all results can be written, before time is spent on them.
fn prepare(arguments: &Arguments) -> Outcome {
    for directory in [&arguments.profile, &arguments.checkpoint].into_iter().flatten() {
        std::fs::create_dir_all(directory).map_err(|error| cannot_write(directory, error))?;
        probe(directory)?;
    }
    match arguments.curve.as_deref().and_then(Path::parent) {
        Some(directory) if directory.as_os_str().is_empty() => probe(Path::new(".")),
        Some(directory) => probe(directory),
        None => Ok(()),
    }
}

/// Writes a file into `directory` and takes it away again.
fn probe(directory: &Path) -> Outcome {
    let file = directory.join(".cresset-probe");
    std::fs::write(&file, b"").map_err(|error| cannot_write(directory, error))?;
    std::fs::remove_file(&file).map_err(|error| cannot_write(directory, error))?;
    Ok(())
}

/// Writes a file that is there whole or not at all.
fn write_whole(path: &Path, text: &str) -> Outcome {
    cresset::nn::replace_file(path, text.as_bytes()).map_err(|error| cannot_write(path, error))?;
    Ok(())
}

fn cannot_write(path: &Path, error: std::io::Error) -> String {
    format!("cannot write to {}: {error}", path.display())
}

pub(super) fn describe(device: Device) -> String {
    if device.is_cpu() {
        return "cpu".to_owned();
    }
    match cresset::npu::info() {
        Ok(info) => format!("{device} ({})", info.soc),
        Err(_) => device.to_string(),
    }
}
