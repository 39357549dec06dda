//! Chores of the project: checks of the simulated device against headers and programs of others, and long tests.
//!
//! `cargo xtask abi` compares our tables of C functions with the vendor's headers, `cargo xtask toolkit`
//! makes a folder that programs for Ascend take for an installation, `cargo xtask outside` runs such
//! programs on it, `cargo xtask fuzz` gives readers changed files for a while, `cargo xtask soak` runs the tests of faults
//! that take long.

#![forbid(unsafe_code)]

mod abi;
mod cache;
mod fuzz;
mod outside;
mod soak;
mod toolkit;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Compare every function, constant and structure that we declare with the vendor's headers.
    Abi(abi::Options),
    /// Make a folder of libraries that programs for Ascend load, all of them the simulated device.
    Toolkit(toolkit::Options),
    /// Run programs of others on the simulated device.
    #[command(subcommand)]
    Outside(outside::Client),
    /// Give changed files, sizes and indices to those who read them, for so many seconds.
    Fuzz(fuzz::Options),
    /// Run the long tests of faults: kills, load, growth, changed files.
    Soak(soak::Options),
}

/// What a chore says when it cannot go on.
type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Abi(options) => abi::run(&options),
        Chore::Toolkit(options) => toolkit::run(&options),
        Chore::Outside(client) => outside::run(&client),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Soak(options) => soak::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
