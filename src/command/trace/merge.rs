//! `cresset trace merge`: the traces of several ranks as one, to be seen together.

use crate::command::Outcome;
use clap::Args;
use cresset::trace::merge_traces;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Traces of all ranks, .json or .json.gz
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Write to this file, not to the terminal
    #[arg(long, short)]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.output {
        None => Ok(merge_traces(&arguments.traces, &mut BufWriter::new(std::io::stdout().lock()))?),
        Some(path) => {
            let fault = |error| format!("cannot write {}: {error}", path.display());
            let file = File::create(path).map_err(fault)?;
            Ok(merge_traces(&arguments.traces, &mut BufWriter::new(file))?)
        }
    }
}
