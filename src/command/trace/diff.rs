//! `cresset trace diff`: what became slower or faster between runs.

use crate::command::{Outcome, say};
use clap::Args;
use cresset::trace::{Change, Diff, Grouping, Metric, Runs, Summary};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Two traces, or those of several runs before `--`
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Traces of several runs after the change
    #[arg(last = true)]
    after: Vec<PathBuf>,
    /// What to compare
    #[arg(long, default_value = "self_cpu_time_total", value_parser = Metric::NAMES)]
    by: String,
    /// Compare the times of one step, for runs of different lengths
    #[arg(long)]
    per_step: bool,
    /// At most so many rows
    #[arg(long, default_value_t = 30)]
    row_limit: usize,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Fail if the whole, or a name that takes one percent of it, became slower by more than this
    #[arg(long, value_name = "PERCENT")]
    fail_above: Option<f64>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let (before, after) = match (&arguments.traces[..], &arguments.after[..]) {
        ([before, after], []) => (std::slice::from_ref(before), std::slice::from_ref(after)),
        (_, []) => {
            return Err("trace diff: needs two traces, A B, or several on each side, A... -- B...".into());
        }
        (before, after) => (before, after),
    };
    let read = |paths: &[PathBuf]| -> Outcome<Vec<Summary>> {
        paths.iter().map(|path| Ok(Summary::read(path, Grouping::default())?)).collect()
    };
    let diff = Diff::of(&read(before)?, &read(after)?, Metric::named(&arguments.by)?, arguments.per_step);
    if arguments.json {
        say(serde_json::to_string_pretty(&export(&diff))?)?;
    } else {
        say(diff.table(arguments.row_limit))?;
    }
    let Some(percent) = arguments.fail_above else { return Ok(()) };
    let slower = diff.slower_than(percent);
    if slower.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = slower.iter().map(|change| change.name.as_str()).collect();
    Err(format!("trace diff: slower by more than {percent} %: {}", names.join(", ")).into())
}

fn export(diff: &Diff) -> Value {
    let runs = |runs: &Runs| json!({"nanoseconds": runs.times, "calls": runs.counts, "median": runs.time()});
    let row = |row: &Change| {
        json!({"name": row.name, "on_device": row.on_device, "verdict": row.verdict.as_str(),
            "before": runs(&row.before), "after": runs(&row.after), "difference": row.difference(),
            "percent": row.percent()})
    };
    json!({"metric": diff.metric.as_str(), "total": row(&diff.total), "rows": diff.rows.iter().map(row).collect::<Vec<_>>()})
}
