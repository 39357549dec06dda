//! `cresset parity trace`: two traces of one program, call by call.

use super::write;
use crate::command::{Outcome, say};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Our trace, .json or .json.gz; or a folder of them
    ours: PathBuf,
    /// Torch's trace of the same program; or a folder of traces with the same names
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
    let Arguments { ours, theirs, json, threshold, limit } = arguments;
    let (percent, exported) = if ours.is_dir() && theirs.is_dir() {
        let report = cresset_parity::compare_folders(ours, theirs)?;
        say(report.show(*limit))?;
        (report.percent(), report.json())
    } else {
        let report = cresset_parity::compare_traces(ours, theirs)?;
        say(report.show(*limit))?;
        (report.percent(), report.json())
    };
    if let Some(path) = json {
        write(path, &serde_json::to_string_pretty(&exported)?)?;
    }
    if percent < *threshold {
        return Err(format!("parity trace: {percent:.2} % are the same, expected {threshold} %").into());
    }
    Ok(())
}
