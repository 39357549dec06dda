//! `cresset parity`: recorded answers of PyTorch against ours.

use super::{Outcome, say};
use clap::{Args, Subcommand};
use cresset_parity::{Report, Row, Verdict};
use std::path::PathBuf;

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
    for tier in [1, 2] {
        let total = report.total(&format!("tier {tier}"), Some(tier));
        if total.cases > 0 {
            say(&total)?;
        }
    }
    let total = report.total("total", None);
    say(&total)?;
    if let Some(path) = &ops.json {
        let text = serde_json::to_string_pretty(&report.json())?;
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    match total.failed {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} cases failed", total.cases).into()),
    }
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
