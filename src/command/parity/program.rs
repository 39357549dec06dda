//! `cresset parity program`: a program written in JSON, run under our profiler.

use crate::command::{Outcome, say};
use clap::Args;
use cresset::Device;
use cresset_parity::program::Program;
use std::path::{Path, PathBuf};

/// What the tensors of a program may hold on the host.
const MOST_BYTES: u64 = 4 << 30;

#[derive(Args)]
pub(super) struct Arguments {
    /// The program; several with `--folder`
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Where to write the trace of one program; `.gz` at the end compresses it
    #[arg(long, required_unless_present = "folder", conflicts_with = "folder")]
    trace: Option<PathBuf>,
    /// Where to write PROGRAM.json.gz for each program
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Where to compute
    #[arg(long, default_value = "cpu")]
    device: String,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    cresset::tensor::limit_host_bytes(MOST_BYTES);
    let device = cresset::device(&arguments.device)?;
    match (&arguments.folder, &arguments.trace, &arguments.files[..]) {
        (Some(folder), _, files) => {
            std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            // One that fails is no reason to leave out the others.
            let failed = |file: &PathBuf| {
                let mut name = file.file_name().unwrap_or_default().to_owned();
                name.push(".gz");
                one(file, &folder.join(name), device).err().map(|reason| reason.to_string())
            };
            let failures: Vec<String> = files.iter().filter_map(failed).collect();
            if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
        }
        (None, Some(trace), [file]) => one(file, trace, device),
        _ => Err("parity program: --trace is for one program; use --folder for several".into()),
    }
}

fn one(file: &Path, trace: &Path, device: Device) -> Outcome {
    let program = Program::read(file)?;
    let ran = program.run(device).map_err(|reason| format!("{}: {reason}", file.display()))?;
    ran.profiler.export_chrome_trace(trace)?;
    say(format_args!("{}: {} events", trace.display(), ran.profiler.events()?.count()))
}
