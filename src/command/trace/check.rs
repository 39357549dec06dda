//! `cresset trace check`: whether a trace is what its readers expect.

use crate::command::{Outcome, say};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Traces, .json or .json.gz
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Let warnings count: what torch's own traces do too, but some reader cannot use
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let mut bad = 0;
    for path in &arguments.traces {
        let report = cresset::trace::check_trace(path)?;
        let passes = report.passes(arguments.strict);
        let verdict = if passes { "ok" } else { "broken" };
        say(format_args!("{}: {verdict}, {report}", path.display()))?;
        bad += usize::from(!passes);
    }
    match bad {
        0 => Ok(()),
        bad => Err(format!("trace check: {bad} of {} traces are broken", arguments.traces.len()).into()),
    }
}
