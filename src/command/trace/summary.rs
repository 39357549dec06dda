//! `cresset trace summary`: totals per operator, as torch's tables have them.

use crate::command::{Outcome, say};
use clap::Args;
use cresset::trace::{Grouping, Summary};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Traces, .json or .json.gz
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Largest first by this figure, e.g. `self_device_time_total`; `none` for the order of the file
    #[arg(long, default_value = "self_cpu_time_total")]
    sort_by: String,
    /// At most so many rows; -1 for all
    #[arg(long, default_value_t = 20, allow_negative_numbers = true)]
    row_limit: i64,
    /// One row per name and shapes of the arguments
    #[arg(long)]
    by_shape: bool,
    /// One row per name and innermost so many frames of the recorded stack
    #[arg(long, default_value_t = 0, value_name = "FRAMES")]
    by_stack: usize,
    /// Calls of Python and of modules have rows, too
    #[arg(long)]
    python: bool,
    /// Only rows whose first call lay in no other
    #[arg(long)]
    top_level: bool,
    /// All times in one unit: us, ms or s
    #[arg(long, value_parser = ["us", "ms", "s"])]
    time_unit: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let grouping = Grouping {
        by_input_shape: arguments.by_shape,
        by_stack: arguments.by_stack,
        include_python: arguments.python,
    };
    for path in &arguments.traces {
        let summary = Summary::read(path, grouping)?;
        let mut table = summary.table().row_limit(usize::try_from(arguments.row_limit).ok());
        if arguments.sort_by != "none" {
            table = table.sort_by(&arguments.sort_by)?;
        }
        if let Some(unit) = &arguments.time_unit {
            table = table.time_unit(unit);
        }
        table = table.top_level_events_only(arguments.top_level);
        say(format_args!("{}: {}{table}", path.display(), summary.heading()))?;
    }
    Ok(())
}
