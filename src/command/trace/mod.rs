//! `cresset trace`: what can be done with a trace that is a file.

mod check;
mod diff;
mod merge;
mod stacks;
mod summary;

use super::Outcome;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Sum up per operator, as torch's tables do
    Summary(summary::Arguments),
    /// Check against what readers of traces expect
    Check(check::Arguments),
    /// Say what became slower or faster between runs
    Diff(diff::Arguments),
    /// Put the traces of several ranks into one
    Merge(merge::Arguments),
    /// Write collapsed stacks, for flame graphs
    Stacks(stacks::Arguments),
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.action {
        Action::Summary(arguments) => summary::run(arguments),
        Action::Check(arguments) => check::run(arguments),
        Action::Diff(arguments) => diff::run(arguments),
        Action::Merge(arguments) => merge::run(arguments),
        Action::Stacks(arguments) => stacks::run(arguments),
    }
}
