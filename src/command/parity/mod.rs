//! `cresset parity`: recorded answers of PyTorch against ours.

mod program;
mod trace;

use super::{Outcome, say};
use clap::{Args, Subcommand};
use cresset::Device;
use cresset_parity::modules::{MODULES, replay_folder};
use cresset_parity::optim::{OPTIMIZERS, replay_optim};
use cresset_parity::train::{TRAININGS, replay_training};
use cresset_parity::{OPERATORS, Report, Row, Verdict, markdown, replay_malicious};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// Replay recorded calls of operators: values, gradients, second gradients, errors
    Ops {
        /// Only this operator, e.g. `add`, in all its forms
        #[arg(long)]
        op: Option<String>,
        #[command(flatten)]
        replay: Replay,
    },
    /// Run a program written in JSON under our profiler, to be compared with torch's run of it
    Program(program::Arguments),
    /// Replay recorded modules: values, gradients, buffers, errors
    Modules {
        /// Only this module, e.g. `Linear`
        #[arg(long)]
        module: Option<String>,
        #[command(flatten)]
        replay: Replay,
    },
    /// Replay recorded paths of optimizers, learning rates of schedulers, and clipped gradients
    Optim {
        /// Only this optimizer, e.g. `AdamW`, or `lr_schedulers` or `clip_grad`
        #[arg(long)]
        optimizer: Option<String>,
        #[command(flatten)]
        replay: Replay,
    },
    /// Train recorded models again, and compare every loss, the first gradients and the last weights
    Train {
        /// Only this model, e.g. `GPT`
        #[arg(long)]
        model: Option<String>,
        #[command(flatten)]
        replay: Replay,
    },
    /// Compare two traces of one program, call by call
    Trace(trace::Arguments),
    /// Give hostile and broken files to our readers, and compare what they say with the reference readers
    Malicious {
        /// The folder with the files and their index.json
        folder: PathBuf,
    },
}

#[derive(Args)]
struct Replay {
    /// The folder with the recorded files, pairs of .json and .safetensors
    folder: PathBuf,
    /// Where to compute
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Also write everything to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Also write the tables to this file, as a page of documentation
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// How many cases that did not pass are told of per file
    #[arg(long, default_value_t = 3)]
    reasons: usize,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.suite {
        Suite::Ops { op, replay } => answers(&OPERATORS, replay, |device, show| {
            Report::replay(&replay.folder, op.as_deref(), device, show)
        }),
        Suite::Modules { module, replay } => answers(&MODULES, replay, |device, show| {
            replay_folder(&replay.folder, module.as_deref(), device, show)
        }),
        Suite::Optim { optimizer, replay } => answers(&OPTIMIZERS, replay, |device, show| {
            replay_optim(&replay.folder, optimizer.as_deref(), device, show)
        }),
        Suite::Train { model, replay } => answers(&TRAININGS, replay, |device, show| {
            replay_training(&replay.folder, model.as_deref(), device, show)
        }),
        Suite::Program(arguments) => program::run(arguments),
        Suite::Trace(arguments) => trace::run(arguments),
        Suite::Malicious { folder } => malicious(folder),
    }
}

fn malicious(folder: &Path) -> Outcome {
    let mut told: Outcome = Ok(());
    let files = replay_malicious(folder, &mut |file| {
        if told.is_ok() {
            told = say(file);
        }
    })?;
    told?;
    match files.iter().filter(|file| !file.passed()).count() {
        0 => say(format_args!("all {} files were taken or refused as they should be", files.len())),
        failed => Err(format!("{failed} of {} files failed", files.len()).into()),
    }
}

/// Replays answers on the device that was asked for, tells of each file, and sums up.
fn answers(
    suite: &cresset_parity::Suite,
    replay: &Replay,
    run: impl FnOnce(Device, &mut dyn FnMut(&Row)) -> Outcome<Report>,
) -> Outcome {
    let device = cresset::device(&replay.device)?;
    say(Report::header(suite))?;
    let mut told: Outcome = Ok(());
    let report = run(device, &mut |row| {
        if told.is_ok() {
            told = tell(row, replay.reasons);
        }
    })?;
    told?;
    say(Report::header(suite))?;
    report.totals().iter().try_for_each(say)?;
    if let Some(path) = &replay.json {
        write(path, &serde_json::to_string_pretty(&report.json())?)?;
    }
    if let Some(path) = &replay.markdown {
        write(path, &markdown(&report))?;
    }
    let total = report.total("total", |_| true);
    match total.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} cases failed", total.cases).into()),
    }
}

fn write(path: &Path, text: &str) -> Outcome {
    Ok(std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?)
}

fn tell(row: &Row, limit: usize) -> Outcome {
    say(row)?;
    for (id, verdict) in row.reasons.iter().take(limit) {
        match verdict {
            Verdict::Failed(reason) => say(format_args!("    {id} failed: {reason}"))?,
            Verdict::Unsupported(reason) => say(format_args!("    {id} unsupported: {reason}"))?,
            Verdict::Passed { .. } => {}
        }
    }
    match row.reasons.len().saturating_sub(limit) {
        0 => Ok(()),
        more => say(format_args!("    and {more} more")),
    }
}
