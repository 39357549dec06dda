//! The command and the tests: built once, and run as a user would.

use crate::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) struct Programs {
    release: bool,
    target: PathBuf,
}

/// The packages whose tests are run; all at once, so that features are the same for all.
const PACKAGES: [&str; 5] = ["cresset", "cresset-npu", "cresset-parity", "cresset-tensor", "cresset-trace"];

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

impl Programs {
    pub(super) fn new(release: bool) -> Programs {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        Programs { release, target }
    }

    /// Builds the command and all tests.
    pub(super) fn build(&self) -> Result {
        if self.cargo().arg("--no-run").status()?.success() {
            Ok(())
        } else {
            Err("the tests cannot be built".into())
        }
    }

    fn cargo(&self) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root()).args(["test", "--quiet", "--tests"]);
        cargo.args(PACKAGES.iter().flat_map(|package| ["-p", package]));
        if self.release {
            cargo.arg("--release");
        }
        cargo
    }

    /// The command, to be given arguments.
    pub(super) fn cresset(&self) -> Command {
        Command::new(self.target.join(if self.release { "release" } else { "debug" }).join("cresset"))
    }

    /// A folder of this name, empty.
    pub(super) fn scratch(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join("soak").join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Runs all tests with `filter` in their names; what they print of themselves.
    pub(super) fn tests(&self, filter: &str, variables: &[(&str, String)]) -> Result<String> {
        let variables = variables.iter().map(|(name, value)| (*name, value.as_str()));
        // A day, for tests that take themselves for hung after ten minutes.
        let variables = variables.chain([("CRESSET_SOAK_PATIENCE", "86400")]);
        let output =
            self.cargo().args([filter, "--", "--nocapture", "--test-threads=1"]).envs(variables).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let passed: u64 = text.lines().filter_map(passed).sum();
        if passed == 0 {
            return Err(format!("no test is called {filter}").into());
        }
        let said: Vec<&str> =
            text.lines().filter_map(|line| line.split_once("figures: ")).map(|(_, said)| said).collect();
        Ok(if said.is_empty() { format!("{passed} tests passed") } else { said.join("; ") })
    }
}

/// How many tests passed, by the line that says so.
fn passed(line: &str) -> Option<u64> {
    line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok()
}
