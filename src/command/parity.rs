//! `cresset parity`: recorded answers of PyTorch against ours.

use super::{Outcome, say};
use clap::{Args, Subcommand};
use cresset_parity::{Report, Row, Verdict, markdown};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// Replay recorded calls of operators: values, gradients, second gradients, errors
    Ops(Ops),
}

#[derive(Args)]
struct Ops {
    /// The folder with the recorded files, pairs of .json and .safetensors
    folder: PathBuf,
    /// Only this operator, e.g. `add`, in all its forms
    #[arg(long)]
    op: Option<String>,
    /// Where to compute
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Also write everything to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Also write the tables to this file, as a page of documentation
    #[arg(long)]
    markdown: Option<PathBuf>,
    /// How many cases that did not pass are told of per operator
    #[arg(long, default_value_t = 3)]
    reasons: usize,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Suite::Ops(ops) = &arguments.suite;
    let device = cresset::device(&ops.device)?;
    say(Report::HEADER)?;
    let mut told: Outcome = Ok(());
    let report = Report::replay(&ops.folder, ops.op.as_deref(), device, |row| {
        if told.is_ok() {
            told = tell(row, ops.reasons);
        }
    })?;
    told?;
    say(Report::HEADER)?;
    report.totals().iter().try_for_each(say)?;
    if let Some(path) = &ops.json {
        write(path, &serde_json::to_string_pretty(&report.json())?)?;
    }
    if let Some(path) = &ops.markdown {
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
