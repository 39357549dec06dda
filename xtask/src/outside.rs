//! Programs of others on the simulated device, unmodified.

use crate::{Result, cache, toolkit};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Subcommand)]
pub(crate) enum Client {
    /// PyTorch with Huawei's torch_npu: operators, models, streams and memory, data parallel training.
    TorchNpu(Options),
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which parts to run.
    #[arg(long, value_enum, num_args = 1.., default_values = ["runtime", "models", "distributed", "ops"])]
    parts: Vec<Part>,
    /// Build the simulated device without all optimisations, which is done sooner.
    #[arg(long)]
    debug: bool,
    /// Further arguments for the operators' program, e.g. `-- --op matmul --samples 3`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// One program in `tests/outside/torch_npu`.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Part {
    /// Streams, events, memory, random numbers, mixed precision.
    Runtime,
    /// Four models that train.
    Models,
    /// Two processes that train together.
    Distributed,
    /// Every operator that torch has test inputs for.
    Ops,
}

/// The pair that works with nothing but packages from the registry.
const PACKAGES: &[&str] =
    &["torch==2.9.0", "torch_npu==2.9.0.post9", "numpy", "pyyaml", "expecttest", "hypothesis", "pytest"];

pub(crate) fn run(client: &Client) -> Result {
    let Client::TorchNpu(options) = client;
    let Some(python) = environment()? else { return Ok(()) };
    let folder = cache::folder("toolkit")?;
    toolkit::make(&folder, &toolkit::build(!options.debug)?)?;
    let results = cache::folder("results")?;
    let mut failed = 0;
    for part in &options.parts {
        failed += match part {
            Part::Runtime => lines(&python, &folder, "runtime.py")?,
            Part::Models => lines(&python, &folder, "models.py")?,
            Part::Distributed => lines(&python, &folder, "distributed.py")?,
            Part::Ops => operators(&python, &folder, &results, &options.arguments)?,
        };
    }
    if failed > 0 {
        return Err(format!("{failed} failures").into());
    }
    Ok(())
}

/// A Python environment with torch and torch_npu; none, with a line on the terminal, if the registry does not
/// give them.
fn environment() -> Result<Option<PathBuf>> {
    let folder = cache::folder("torch_npu")?.join("2.9.0.post9");
    let (python, whole) = (folder.join("bin/python"), folder.join("whole"));
    if whole.exists() {
        return Ok(Some(python));
    }
    println!("installing {} into {}", PACKAGES.join(" "), folder.display());
    cache::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let install = Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES).output()?;
    if !install.status.success() {
        let text = String::from_utf8_lossy(&install.stderr);
        println!("skipped: the package registry did not give them: {}", text.lines().last().unwrap_or(""));
        return Ok(None);
    }
    fs::write(whole, PACKAGES.join("\n"))?;
    Ok(Some(python))
}

/// A program of `tests/outside/torch_npu`, which finds the simulated device where it looks for a real one.
fn program(python: &Path, folder: &Path, name: &str) -> Command {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/outside/torch_npu");
    let mut command = Command::new(python);
    command.arg(tests.join(name)).envs(toolkit::environment(folder));
    command.env("CRESSET_SIM_DEVICES", "2").env("TORCH_DEVICE_BACKEND_AUTOLOAD", "0");
    command
}

/// Runs a program that prints a line of JSON per check; prints a row for each, gives the number of failures.
fn lines(python: &Path, folder: &Path, name: &str) -> Result<usize> {
    let output = program(python, folder, name).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let facts: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    println!("\n{name}");
    let mut failed = 0;
    for fact in &facts {
        let name =
            ["check", "model"].iter().find_map(|key| fact[key].as_str()).unwrap_or("?").replace('_', " ");
        let is_ok = fact["ok"].as_bool().unwrap_or(false);
        failed += !is_ok as usize;
        let rank = fact["rank"].as_u64().map_or(String::new(), |rank| format!(" (rank {rank})"));
        let worst = fact["worst"].as_f64();
        let note = worst.map_or(String::new(), |worst| format!(", losses differ by {worst:.1e} at most"));
        println!("  {} {name}{rank}{note}", if is_ok { "ok    " } else { "FAILED" });
        if let Some(error) = fact["error"].as_str() {
            error.lines().take(6).for_each(|line| println!("         {line}"));
        }
    }
    if facts.is_empty() || !output.status.success() && failed == 0 {
        println!("  FAILED: ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        failed += 1;
    }
    Ok(failed)
}

/// Runs the operators and prints what `report.py` makes of the lines; gives the number of failing operators.
fn operators(python: &Path, folder: &Path, results: &Path, arguments: &[String]) -> Result<usize> {
    let (raw, names) = (results.join("ops.jsonl"), results.join("exported.txt"));
    let exported: BTreeSet<String> = toolkit::functions();
    fs::write(&names, exported.into_iter().collect::<Vec<_>>().join("\n"))?;
    let mut run = program(python, folder, "ops.py");
    // On this chip torch_npu has no older way, operators by name, so that what is missing is said at once.
    run.env("CRESSET_SIM_SOC", "Ascend950PR_9599").arg("--out").arg(&raw).args(arguments);
    cache::run(&mut run)?;
    let table = results.join("ops.md");
    let status = program(python, folder, "report.py").arg(&raw).arg(&names).arg(&table).status()?;
    println!("table: {}", table.display());
    Ok(status.code().unwrap_or(1) as usize)
}
