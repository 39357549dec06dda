//! `cresset bench`: the workloads that other libraries are measured with too.

mod harness;
mod workloads;

use super::Outcome;
use clap::Args;
use harness::{Harness, Mode};

/// The same settings can come from the environment, for scripts that measure many programs
/// alike: `BENCH_THREADS`, `BENCH_ONLY` (prefixes of names), `BENCH_BUDGET_MS` (time per
/// workload) and `BENCH_MODE` (`bench`; `first`: one small call, then exit; `rss:NAME:STEPS`:
/// the most memory that so many steps need).
#[derive(Args)]
pub(crate) struct Arguments {
    /// Only workloads whose name contains this, e.g. w2 or mlp
    filter: Option<String>,
    /// How many threads to compute with; kernels use one so far, whatever is allowed
    #[arg(long)]
    threads: Option<usize>,
    /// Write one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let mut harness = Harness::from_environment(arguments.threads, arguments.json)?;
    harness.filter = arguments.filter.clone();
    if harness.mode == Mode::First {
        return Ok(workloads::first()?);
    }
    workloads::run_all(&mut harness)?;
    if harness.measured == 0 && arguments.filter.is_some() {
        return Err(
            "bench: no workload has such a name; run `cresset bench` without a filter to see all".into()
        );
    }
    Ok(())
}
