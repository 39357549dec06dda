//! `cresset parity program`: a program written in JSON, run under our profiler.

use crate::command::{Outcome, say};
use clap::Args;
use cresset_parity::program::Program;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// The program
    file: PathBuf,
    /// Where to write the trace; `.gz` at the end compresses it
    #[arg(long)]
    trace: PathBuf,
    /// Where to compute
    #[arg(long, default_value = "cpu")]
    device: String,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let device = cresset::device(&arguments.device)?;
    let program = Program::read(&arguments.file)?;
    let told = |reason| format!("{}: {reason}", arguments.file.display());
    let mut ran = program.run(device).map_err(told)?;
    let table = ran.profiler.key_averages()?.table().row_limit(None).to_string();
    ran.profiler.add_metadata("table", &table)?;
    ran.profiler.export_chrome_trace(&arguments.trace)?;
    say(format_args!("{}: {} events", arguments.trace.display(), ran.profiler.events()?.count()))
}
