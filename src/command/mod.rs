//! What the command can do, and how it is asked.

mod bench;
mod doctor;
mod infer;
mod parity;
mod progress;
mod trace;
mod train;

use clap::{CommandFactory, Parser, Subcommand};
use std::fmt::Display;
use std::io::Write;

/// Whatever went wrong, told to the user in one line.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Prints a line; unlike `println!`, it fails rather than panics when nobody reads on.
fn say(line: impl Display) -> Outcome {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}

/// Train models in Rust, and see every operator.
#[derive(Parser)]
#[command(name = "cresset", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model on data that comes along
    Train(train::Arguments),
    /// Ask a trained model: name digits, or write text
    Infer(infer::Arguments),
    /// Say which devices there are and which library serves them
    Doctor,
    /// Compare with recorded answers of PyTorch
    Parity(parity::Arguments),
    /// Read traces, torch's or ours: sum up, check, compare, flame graphs
    Trace(trace::Arguments),
    /// Measure workloads
    Bench(bench::Arguments),
    /// Print a script that completes commands in a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

pub(crate) fn run() -> Outcome {
    match Cli::parse().command {
        Command::Train(arguments) => train::run(&arguments),
        Command::Infer(arguments) => infer::run(&arguments),
        Command::Doctor => doctor::run(),
        Command::Parity(arguments) => parity::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "cresset", &mut std::io::stdout());
            Ok(())
        }
    }
}
