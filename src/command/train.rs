//! `cresset train`: trains a model, says how good it is, and shows where the time went.

use super::progress::Progress;
use super::{Outcome, say};
use clap::{Args, ValueEnum};
use cresset::data::{self, DataLoader, Labelled, TensorDataset};
use cresset::optim::Options as _;
use cresset::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Args)]
pub(crate) struct Arguments {
    /// What to train
    model: Model,
    /// Where to train: cpu, npu or npu:INDEX
    #[arg(long, default_value = "cpu")]
    device: String,
    /// How often to go through the data
    #[arg(long, default_value_t = 20, allow_negative_numbers = true)]
    epochs: usize,
    /// Samples per step
    #[arg(long, default_value_t = 64, allow_negative_numbers = true)]
    batch: usize,
    /// The learning rate
    #[arg(long, default_value_t = 2e-3, allow_negative_numbers = true)]
    lr: f64,
    /// Where the random numbers start
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    seed: u64,
    /// Profile a few steps and write the trace to this directory
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,
    /// Write the loss of every step to this file, one number per line
    #[arg(long, value_name = "FILE")]
    losses: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Model {
    /// Three linear layers on 8 × 8 pixels of handwritten digits
    Mlp,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Model::Mlp = arguments.model;
    let device = device(&arguments.device)?;
    let (training, held_out) = {
        cresset::manual_seed(arguments.seed);
        split(&data::digits()?)?
    };
    check(arguments, device, training.len())?;
    prepare(arguments)?;
    let model = Sequential::new()
        .push(Linear::new(64, 128)?)
        .push(Relu)
        .push(Linear::new(128, 64)?)
        .push(Relu)
        .push(Linear::new(64, 10)?);
    model.to(device)?;
    say(format_args!("training an mlp on {} digits, on {}", training.len(), describe(device)))?;

    let started = Instant::now();
    let losses = fit(arguments, &model, &training, device)?;
    let seconds = started.elapsed().as_secs_f64();
    if let Some(file) = &arguments.losses {
        let lines: String = losses.iter().map(|loss| format!("{loss:?}\n")).collect();
        std::fs::write(file, lines).map_err(|error| cannot_write(file, error))?;
    }
    let accuracy = accuracy(&model, &held_out, device)? * 100.0;
    let (count, steps) = (held_out.len(), losses.len());
    say(format_args!("held-out accuracy {accuracy:.2} % of {count} digits, {steps} steps in {seconds:.1} s"))
}

/// Refuses what cannot be trained or profiled, before anything is written.
fn check(arguments: &Arguments, device: Device, samples: usize) -> Outcome {
    if arguments.epochs == 0 || arguments.batch == 0 {
        return Err("train: expects at least one epoch and one sample per step".into());
    }
    if device == Device::META {
        return Err("train: meta tensors have no elements to learn from; use cpu or npu".into());
    }
    // The optimizer knows which numbers it can work with.
    arguments.adam().check()?;
    let steps = arguments.epochs * samples.div_ceil(arguments.batch);
    if arguments.profile.is_some() && steps <= LEFT_OUT {
        return Err(format!("train: --profile leaves out {LEFT_OUT} steps, and there are {steps}; use more epochs or smaller batches").into());
    }
    Ok(())
}

impl Arguments {
    fn adam(&self) -> AdamOptions {
        AdamOptions { lr: self.lr, ..AdamOptions::default() }
    }
}

/// Makes sure that all results can be written, before time is spent on them.
fn prepare(arguments: &Arguments) -> Outcome {
    if let Some(directory) = &arguments.profile {
        std::fs::create_dir_all(directory).map_err(|error| cannot_write(directory, error))?;
        probe(directory)?;
    }
    match arguments.losses.as_deref().and_then(Path::parent) {
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

fn cannot_write(path: &Path, error: std::io::Error) -> String {
    format!("cannot write to {}: {error}", path.display())
}

/// Four fifths to train with and one to judge by, in random order.
fn split(all: &Labelled) -> Outcome<(Labelled, Labelled)> {
    let order: Vec<i64> = Tensor::randperm(all.len())?.to_vec()?;
    let (training, held_out) = order.split_at(all.len() * 4 / 5);
    let pick = |index: &[i64]| all.select(&Tensor::from_slice(index, [index.len()])?);
    Ok((pick(training)?, pick(held_out)?))
}

fn describe(device: Device) -> String {
    if device.is_cpu() {
        return "cpu".to_owned();
    }
    match cresset::npu::info() {
        Ok(info) => format!("{device} ({})", info.soc),
        Err(_) => device.to_string(),
    }
}

/// Trains and returns the loss of every step.
fn fit(arguments: &Arguments, model: &Sequential, training: &Labelled, device: Device) -> Outcome<Vec<f64>> {
    let mut optimizer = Adam::new(model.parameters(), arguments.adam())?;
    let rows = TensorDataset::new([training.features.clone(), training.classes.clone()])?;
    let loader = DataLoader::builder(rows).batch_size(arguments.batch).shuffle(arguments.seed).build()?;
    let steps = loader.len();
    let progress = Progress::new(arguments.epochs, steps);
    let mut profile = arguments.profile.as_deref().map(|path| Profile::start(path, device)).transpose()?;
    let mut losses = Vec::new();
    for epoch in 1..=arguments.epochs {
        for batch in loader.epoch(epoch as u64) {
            losses.push(step(model, &mut optimizer, batch?, device)?);
            if let Some(profile) = &mut profile {
                profile.step()?;
            }
            progress.step();
        }
        let last = &losses[losses.len() - steps..];
        progress.epoch(epoch, last.iter().sum::<f64>() / steps as f64);
    }
    drop(progress);
    if let Some(profile) = profile {
        profile.finish()?;
    }
    Ok(losses)
}

fn step(model: &Sequential, optimizer: &mut Adam, batch: [Tensor; 2], device: Device) -> Outcome<f64> {
    let [features, classes] = batch;
    let (features, classes) = (features.to(device)?, classes.to(device)?);
    optimizer.zero_grad();
    let loss = model.call(&features)?.cross_entropy(&classes)?;
    loss.backward()?;
    optimizer.step()?;
    Ok(loss.item()?.as_f64())
}

fn accuracy(model: &Sequential, held_out: &Labelled, device: Device) -> Outcome<f64> {
    let _guard = no_grad();
    let scores = model.call(&held_out.features.to(device)?)?;
    let right = scores.argmax(1, false)?.eq(&held_out.classes.to(device)?)?.sum()?;
    Ok(right.item()?.as_f64() / held_out.len() as f64)
}

/// Steps before the profile: the first ones are not typical.
const LEFT_OUT: usize = 4;

/// A window of steps under the profiler.
struct Profile<'a> {
    profiler: Profiler,
    directory: &'a Path,
    device: Device,
}

impl<'a> Profile<'a> {
    fn start(directory: &'a Path, device: Device) -> Outcome<Profile<'a>> {
        let profiler = Profiler::builder()
            .schedule(Schedule::new(LEFT_OUT as u64 - 1, 1, 5)?.repeat(1))
            .record_shapes(true)
            .profile_memory(true)
            .with_flops(true)
            .start()?;
        Ok(Profile { profiler, directory, device })
    }

    fn step(&mut self) -> Outcome {
        Ok(self.profiler.step()?)
    }

    fn finish(mut self) -> Outcome {
        self.profiler.stop()?;
        let trace = self.profiler.trace()?;
        let path = self.directory.join("mlp.pt.trace.json");
        trace.export_chrome_trace(&path)?;
        let report = self.directory.join("mlp.html");
        trace.html_report().peak(self.device, cresset::peak(self.device)?).write(&report)?;
        let mut where_to_open = format!(
            "report: {}\n  opens in any browser\ntrace: {}\n  open it at https://ui.perfetto.dev (nothing is uploaded), in chrome://tracing or speedscope",
            report.display(),
            path.display()
        );
        if trace.device_events().len() > 0 {
            let path = self.directory.join("mlp.cuda.pt.trace.json");
            trace.export_chrome_trace_as_cuda(&path)?;
            where_to_open += &format!(
                "\ntrace: {}\n  the same for HolisticTraceAnalysis, which knows launches by CUDA's names only",
                path.display()
            );
        }
        say(self.profiler.key_averages()?.table().sort_by("self_cpu_time_total")?.row_limit(20))?;
        say(where_to_open)
    }
}
