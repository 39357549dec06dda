//! The `cresset` command.

#![forbid(unsafe_code)]

mod command;

use std::io::{Error, ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match command::run() {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough, as in `cresset doctor | head -1`.
        Err(error) if error.downcast_ref().is_some_and(|e: &Error| e.kind() == ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            // There is nobody left to tell if this fails too.
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}
