//! Faults that are injected on purpose, and what a program has left then; docs/faults.md lists them all.
//!
//! - `calls` lets every single call of the device fail, one after the other;
//! - `device` loses a device under a running profile;
//! - `processes` forks, and ends with a session that still runs;
//! - `panics` lets the code of users panic wherever we call it;
//! - `memory` lets host memory end at every point of a step;
//! - `files` gives changed files to every reader of data and weights;
//! - `backward` goes deeper than a stack, and runs passes inside of passes;
//! - `load` trains and profiles on many threads at once, and records as fast as it can;
//! - `growth` does the same thing many times, and looks at the memory of the process;
//! - `table` holds docs/faults.md against the tests that it names.

mod backward;
mod calls;
mod device;
mod files;
mod growth;
mod load;
mod memory;
mod panics;
mod processes;
mod table;

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Marks the process that a test started to be alone in.
const ALONE: &str = "CRESSET_TEST_ALONE";
/// How often or how long, as the environment says for long runs (`cargo run -p xtask -- soak`), or `short`.
fn amount(variable: &str, short: u64) -> u64 {
    std::env::var(variable).map_or(short, |text| text.parse().expect("a whole number"))
}

/// Runs `body` in a process of its own on the simulated device: it is about what a process has one of.
/// `test` is the path of the calling test below this module.
fn alone(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if is_alone(test) {
        return body();
    }
    let output = start(test, variables);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{test}: {text}");
    // What a long run is asked for (`cargo xtask soak`).
    text.lines().filter(|line| line.contains("figures: ")).for_each(|line| println!("{line}"));
}

fn is_alone(test: &str) -> bool {
    std::env::var(ALONE).is_ok_and(|name| name == test)
}

/// Starts the test `test` alone, and waits for its end.
fn start(test: &str, variables: &[(&str, &str)]) -> Output {
    let mut child = Command::new(std::env::current_exe().expect("a test knows its program"))
        .args([&format!("faults::{test}"), "--exact", "--nocapture"])
        .env(ALONE, test)
        .env("CRESSET_NPU", "sim")
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a test can be started again");
    // Whoever takes longer hangs.
    let end = Instant::now() + Duration::from_secs(amount("CRESSET_SOAK_PATIENCE", 600));
    while child.try_wait().unwrap().is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    let hangs = child.try_wait().unwrap().is_none();
    if hangs {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(!hangs, "{test} does not end: {output:?}");
    output
}
