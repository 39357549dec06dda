//! `cresset bench`: the workloads that other libraries are measured with too.

mod compare;
mod gemm;
mod gpt;
mod harness;
mod lenet;
mod mlp;
mod npu;
mod optimizer;
mod profiler;
mod stream;
mod tiny;
mod training;

use super::{Outcome, say};
use clap::Args;
use harness::{Harness, Mode};
use std::path::PathBuf;

#[derive(Args)]
#[command(after_help = "\
Environment, for scripts that measure many programs alike:
  BENCH_THREADS    as --threads
  BENCH_ONLY       prefixes of names, separated by commas
  BENCH_BUDGET_MS  time per workload
  BENCH_MODE       bench; first: one small call, then exit; rss:NAME:STEPS: the most memory that so many steps need")]
pub(crate) struct Arguments {
    /// Only workloads whose name contains this, e.g. w2 or mlp
    filter: Option<String>,
    /// How many threads to compute with
    #[arg(long)]
    threads: Option<usize>,
    /// Write one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Measure nothing; print what these files have, of ours and of other programs, as one table
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["filter", "threads", "json"])]
    compare: Vec<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if !arguments.compare.is_empty() {
        return compare::run(&arguments.compare);
    }
    let mut harness = Harness::from_environment(arguments.threads, arguments.json)?;
    harness.filter = arguments.filter.clone();
    if harness.mode == Mode::First {
        return Ok(tiny::first()?);
    }
    let workloads = [
        gemm::run,
        tiny::run,
        stream::run,
        mlp::run,
        lenet::run,
        gpt::run,
        optimizer::run,
        profiler::run,
        npu::run,
    ];
    for measure in workloads {
        measure(&mut harness)?;
    }
    if let (0, Some(filter)) = (harness.measured, &arguments.filter) {
        let names = harness.left_out.join(", ");
        return Err(format!("bench: no workload has {filter:?} in its name; there are {names}").into());
    }
    Ok(())
}
