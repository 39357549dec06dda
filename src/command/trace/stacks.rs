//! `cresset trace stacks`: collapsed stacks, for flame graphs.

use crate::command::Outcome;
use clap::Args;
use cresset::trace::{Frames, Keep, Slices, Weight, stacks, write_stacks};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

#[derive(Args)]
pub(super) struct Arguments {
    /// Traces, .json or .json.gz; their stacks are added up
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Weigh by the time of the work on devices, not of the host
    #[arg(long)]
    device: bool,
    /// Take the stacks that were recorded with operators, not what lies in what
    #[arg(long)]
    recorded: bool,
    /// Write to this file, not to the terminal
    #[arg(long, short)]
    output: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let frames = if arguments.recorded { Frames::Recorded } else { Frames::Nesting };
    let weight = if arguments.device { Weight::Device } else { Weight::Host };
    let mut sums = BTreeMap::new();
    for path in &arguments.traces {
        let trace = Slices::read(path, Keep { stacks: arguments.recorded, ..Keep::default() })?;
        for (stack, nanos) in stacks(&trace, frames, weight) {
            *sums.entry(stack).or_insert(0) += nanos;
        }
    }
    if sums.is_empty() {
        return Err(nothing(arguments).into());
    }
    match &arguments.output {
        None => Ok(write_stacks(&sums, &mut std::io::stdout().lock())?),
        Some(path) => {
            let fault = |error| format!("cannot write {}: {error}", path.display());
            let mut file = BufWriter::new(File::create(path).map_err(fault)?);
            write_stacks(&sums, &mut file).and_then(|()| file.flush()).map_err(fault)?;
            Ok(())
        }
    }
}

fn nothing(arguments: &Arguments) -> &'static str {
    match (arguments.recorded, arguments.device) {
        (true, _) => {
            "trace stacks: no operator has a recorded stack; leave --recorded out to see what lies in what"
        }
        (false, true) => "trace stacks: there is no work on devices",
        (false, false) => "trace stacks: there are no slices",
    }
}
