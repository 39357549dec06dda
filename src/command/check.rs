//! `cresset check-trace`: whether a trace is what its readers expect.

use super::{Outcome, say};
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Traces, .json or .json.gz
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Let warnings count: what torch's own traces do too, but some reader cannot use
    #[arg(long)]
    strict: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut bad = 0;
    for path in &arguments.traces {
        let report = cresset::profiler::check_trace(path)?;
        let passes = report.passes(arguments.strict);
        let verdict = if passes { "ok" } else { "broken" };
        say(format_args!("{}: {verdict}, {report}", path.display()))?;
        bad += usize::from(!passes);
    }
    match bad {
        0 => Ok(()),
        bad => Err(format!("check-trace: {bad} of {} traces are broken", arguments.traces.len()).into()),
    }
}
