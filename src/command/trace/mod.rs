//! `cresset trace`: what can be done with a trace that is a file.

mod check;

use super::Outcome;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Check traces against what their readers expect
    Check(check::Arguments),
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.action {
        Action::Check(arguments) => check::run(arguments),
    }
}
