//! `cresset parity trace`: two traces of one program, call by call.

use super::write;
use crate::command::{Outcome, say};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Our trace, .json or .json.gz
    ours: PathBuf,
    /// Torch's trace of the same program
    theirs: PathBuf,
    /// Also write everything to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// Fail if less than this percentage of any column is the same
    #[arg(long, default_value_t = 100.0)]
    threshold: f64,
    /// How many kinds of differences are told
    #[arg(long, default_value_t = 30)]
    limit: usize,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let report = cresset_parity::compare_traces(&arguments.ours, &arguments.theirs)?;
    say(report.show(arguments.limit))?;
    if let Some(path) = &arguments.json {
        write(path, &serde_json::to_string_pretty(&report.json())?)?;
    }
    let (percent, threshold) = (report.percent(), arguments.threshold);
    if percent < threshold {
        return Err(format!("parity trace: {percent:.2} % are the same, expected {threshold} %").into());
    }
    Ok(())
}
